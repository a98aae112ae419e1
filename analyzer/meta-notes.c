/* SPDX-License-Identifier: Apache-2.0 */
#include "meta-notes.h"

#include <string.h>

#define RANKS_SHOWN 8

/* The text to show of "<who>/<key>" = value: a setting's names it, a feature's does not. NULL where
 * the pair is no note. Returned: free it. */
static gchar *dup_text(const gchar *slash, const gchar *value)
{
    if (g_str_has_prefix(slash, "/setting."))
        return g_strdup(value);
    if (g_str_has_prefix(slash, "/off."))
        return g_strdup_printf("%s was off: %s", slash + strlen("/off."), value);
    if (g_str_has_prefix(slash, "/unobserved.") && g_str_has_prefix(value, "used "))
        return g_strdup_printf("%s was used past the tracer, so its calls are missing; the report "
                               "says what to do: %s",
                               slash + strlen("/unobserved."), value + strlen("used "));
    return NULL;
}

static gint compare_who(gconstpointer a, gconstpointer c)
{
    const gchar *x = *(const gchar *const *)a, *y = *(const gchar *const *)c;
    gint64 m = g_ascii_strtoll(x, NULL, 10), n = g_ascii_strtoll(y, NULL, 10);
    return m != n ? (m > n) - (m < n) : strcmp(x, y);
}

static gchar *join(GPtrArray *who)
{
    GString *s = g_string_new(NULL);
    g_ptr_array_sort(who, compare_who);
    for (guint i = 0; i < who->len && i < RANKS_SHOWN; i++) {
        const gchar *name = g_ptr_array_index(who, i);
        g_string_append_printf(s, "%s%s%s", i ? ", " : "", g_ascii_isdigit(name[0]) ? "rank " : "",
                               name);
    }
    if (who->len > RANKS_SHOWN)
        g_string_append_printf(s, " and %u more", who->len - RANKS_SHOWN);
    return g_string_free(s, FALSE);
}

/* text -> those who gave it */
static GHashTable *collect(GHashTable *meta)
{
    GHashTable *notes =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, meta);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        const gchar *slash = strchr(key, '/');
        gchar *text = slash ? dup_text(slash, value) : NULL;
        if (!text)
            continue;
        GPtrArray *who = g_hash_table_lookup(notes, text);
        if (!who) {
            who = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(notes, g_strdup(text), who);
        }
        g_ptr_array_add(who, g_strndup(key, (gsize)(slash - (const gchar *)key)));
        g_free(text);
    }
    return notes;
}

void rs_meta_notes_warn(RsBuilder *b)
{
    g_autoptr(GHashTable) notes = collect(b->model->meta);
    g_autoptr(GList) texts = g_list_sort(g_hash_table_get_keys(notes), (GCompareFunc)strcmp);
    for (GList *l = texts; l; l = l->next) {
        g_autofree gchar *who = join(g_hash_table_lookup(notes, l->data));
        rs_builder_warn(b, "", 0, "%s (%s)", (const gchar *)l->data, who);
    }
}
