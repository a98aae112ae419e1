/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

G_DEFINE_QUARK(rs - error - quark, rs_error)

RsModel *rs_run_open(const gchar *const *paths, RsProgress progress, gpointer data, GError **error)
{
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: captures can't be read yet",
                paths[0] ? paths[0] : "");
    return NULL;
}
