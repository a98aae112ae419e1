/* SPDX-License-Identifier: Apache-2.0 */
/* plural.h - "1 rank", "2 ranks": every count in a message has a noun that fits it. */
#ifndef RS_ANALYZER_PLURAL_H
#define RS_ANALYZER_PLURAL_H

#include <glib.h>

G_BEGIN_DECLS

/* What a noun after the count `n` ends on: "" for 1, else "s". */
static inline const gchar *rs_plural(guint64 n)
{
    return n == 1 ? "" : "s";
}

G_END_DECLS
#endif
