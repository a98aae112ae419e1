/* SPDX-License-Identifier: Apache-2.0 */
#include "left-out.h"

#include <string.h>

#define NAMED_MAX 3 /* of many */

typedef struct {
    gchar *why;
    GPtrArray *paths;
} LeftOut;

static void free_left_out(gpointer data)
{
    LeftOut *l = data;
    g_free(l->why);
    g_ptr_array_unref(l->paths);
    g_free(l);
}

RsLeftOut *rs_left_out_new(void)
{
    return g_ptr_array_new_with_free_func(free_left_out);
}

void rs_left_out_add(RsLeftOut *list, const gchar *path, const gchar *why)
{
    LeftOut *l = NULL;
    for (guint i = 0; i < list->len && !l; i++) {
        LeftOut *known = g_ptr_array_index(list, i);
        l = g_str_equal(known->why, why) ? known : NULL;
    }
    if (!l) {
        l = g_new0(LeftOut, 1);
        l->why = g_strdup(why);
        l->paths = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(list, l);
    }
    g_ptr_array_add(l->paths, g_strdup(path));
}

/* "a.rsc, b.rsc, c.rsc, ...": within `folder` by name alone. */
static gchar *dup_names(const GPtrArray *paths, const gchar *folder)
{
    GString *names = g_string_new(NULL);
    for (guint i = 0; i < MIN(paths->len, NAMED_MAX); i++) {
        const gchar *path = g_ptr_array_index(paths, i);
        g_autofree gchar *own = g_path_get_dirname(path), *name = g_path_get_basename(path);
        g_string_append_printf(names, "%s%s", i ? ", " : "",
                               g_str_equal(own, folder) ? name : path);
    }
    g_string_append(names, paths->len > NAMED_MAX ? ", ..." : "");
    return g_string_free(names, FALSE);
}

void rs_left_out_warn(const RsLeftOut *list, RsBuilder *b, const gchar *what)
{
    for (guint i = 0; i < list->len; i++) {
        const LeftOut *l = g_ptr_array_index(list, i);
        const gchar *first = g_ptr_array_index(l->paths, 0);
        g_autofree gchar *folder = g_path_get_dirname(first), *names = dup_names(l->paths, folder);
        if (l->paths->len == 1)
            rs_builder_warn(b, first, 0, "%s: left out", l->why);
        else
            rs_builder_warn(b, folder, 0, "%u %s left out (%s): %s", l->paths->len, what, names,
                            l->why);
    }
}

const gchar *rs_left_out_reason(const GError *error, const gchar *path)
{
    const gchar *text = error->message;
    gsize n = strlen(path);
    return g_str_has_prefix(text, path) && g_str_has_prefix(text + n, ": ") ? text + n + 2 : text;
}
