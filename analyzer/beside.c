/* SPDX-License-Identifier: Apache-2.0 */
#include "beside.h"

#include <errno.h>

#include "run.h"

gchar *rs_beside_find(const gchar *const *places, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree gchar *self = g_file_read_link("/proc/self/exe", &cause);
    g_autofree gchar *folder = self ? g_path_get_dirname(self) : g_strdup(".");
    for (guint i = 0; places[i]; i++) {
        g_autofree gchar *path = g_canonicalize_filename(places[i], folder);
        if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
            return g_steal_pointer(&path);
    }
    g_autofree gchar *name = g_path_get_basename(places[0]);
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                "%s was not found beside %s: was it built, and installed with it?", name, folder);
    return NULL;
}

gchar *rs_beside_find_tracer(GError **error)
{
    static const gchar *const places[] = {
        "../tracer/libringscope.so", /* the build folder */
        "../lib/ringscope/libringscope.so",
        "../" RS_LIBDIR "/ringscope/libringscope.so",
        "libringscope.so",
        NULL,
    };
    return rs_beside_find(places, error);
}

gchar *rs_beside_find_viewer(GError **error)
{
    static const gchar *const places[] = {
        "../viewer/ringscope-viewer", /* the build folder */
        "ringscope-viewer",
        NULL,
    };
    return rs_beside_find(places, error);
}
