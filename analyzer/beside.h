/* SPDX-License-Identifier: Apache-2.0 */
/* beside.h - finds the other parts of Ringscope relative to this program's own file, never by PATH.
 */
#ifndef RS_ANALYZER_BESIDE_H
#define RS_ANALYZER_BESIDE_H

#include <glib.h>

G_BEGIN_DECLS

/* The first of `places` (NULL-terminated, relative to this program's folder) that exists, absolute.
 * NULL and RS_ERROR where none does. Returned: free it. */
gchar *rs_beside_find(const gchar *const *places, GError **error);

gchar *rs_beside_find_tracer(GError **error); /* libringscope.so */
gchar *rs_beside_find_viewer(GError **error); /* ringscope-viewer */

G_END_DECLS
#endif
