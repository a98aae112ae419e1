/* SPDX-License-Identifier: Apache-2.0 */
#include "trace-ranks.h"

#include <stdlib.h>
#include <string.h>

#define RANK_MOST 1000000

/* Digits of `text` as a number; -1: none, or too many. */
static gint32 number_at(const gchar *text, gsize *ret_digits)
{
    gsize n = strspn(text, "0123456789");
    *ret_digits = n;
    if (n == 0 || n > 9)
        return -1;
    gint64 v = g_ascii_strtoll(text, NULL, 10);
    return v <= RANK_MOST ? (gint32)v : -1;
}

/* The last `word` that a number follows: "rank_3", "rank-03", "rank[3]", "rank3". */
static gint32 number_after(const gchar *name, const gchar *word)
{
    gint32 found = -1;
    for (const gchar *p = name; (p = strstr(p, word)); p++) {
        const gchar *number = p + strlen(word);
        gsize digits;
        if (p > name && g_ascii_isalpha(p[-1])) /* "crank3" */
            continue;
        gsize between = strspn(number, "_-.=[(# ");
        number += between > 2 ? 0 : between;
        gint32 v = number_at(number, &digits);
        found = v >= 0 ? v : found;
    }
    return found;
}

/* The last number of a name without what stands behind its first dot. */
static gint32 last_number(const gchar *name)
{
    gsize end = strcspn(name, "."), at = end;
    while (at > 0 && g_ascii_isdigit(name[at - 1]))
        at--;
    g_autofree gchar *digits = g_strndup(name + at, end - at);
    gsize n;
    return number_at(digits, &n);
}

gint32 rs_trace_rank_of_text(const gchar *text)
{
    static const gchar *const words[] = {"rank", "worker"};
    g_autofree gchar *lower = g_ascii_strdown(text, -1);
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        gint32 v = number_after(lower, words[i]);
        if (v >= 0)
            return v;
    }
    return -1;
}

gint32 rs_trace_rank_of_name(const gchar *path)
{
    g_autofree gchar *base = g_path_get_basename(path), *name = g_ascii_strdown(base, -1);
    gint32 v = rs_trace_rank_of_text(name);
    if (v >= 0)
        return v;
    return strstr(name, "rank") ? last_number(name) : -1; /* "trace_rank_node-0_3.json" */
}

/* ---- several files ---- */

typedef struct {
    guint file;
    GString *skeleton; /* the name with # for each number */
    GArray *numbers;   /* gint32, -1 where it is none of a rank */
} Name;

static void read_name(Name *n, const gchar *path, guint file)
{
    n->file = file;
    g_autofree gchar *base = g_path_get_basename(path);
    n->skeleton = g_string_new(NULL);
    n->numbers = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (const gchar *p = base; *p;) {
        gsize digits;
        gint32 v = number_at(p, &digits);
        if (digits == 0) {
            g_string_append_c(n->skeleton, *p++);
            continue;
        }
        g_string_append_c(n->skeleton, '#');
        g_array_append_val(n->numbers, v);
        p += digits;
    }
}

static gboolean differs(const Name *names, guint n, guint k)
{
    for (guint i = 1; i < n; i++)
        if (g_array_index(names[i].numbers, gint32, k) !=
            g_array_index(names[0].numbers, gint32, k))
            return TRUE;
    return FALSE;
}

/* The one place in which the names, of one skeleton, differ; G_MAXUINT. */
static guint find_place(const Name *names, guint n)
{
    guint place = G_MAXUINT;
    for (guint k = 0; k < names[0].numbers->len; k++) {
        if (!differs(names, n, k))
            continue;
        if (place != G_MAXUINT)
            return G_MAXUINT;
        place = k;
    }
    return place;
}

/* Numbers of ranks begin at 0 or 1 and have few holes. `names`: of one skeleton. */
static void guess(gint32 *ranks, const Name *names, guint n)
{
    guint place = n > 1 ? find_place(names, n) : G_MAXUINT;
    gint32 least = G_MAXINT32, most = -1;
    for (guint i = 0; place != G_MAXUINT && i < n; i++) {
        gint32 v = g_array_index(names[i].numbers, gint32, place);
        least = MIN(least, v);
        most = MAX(most, v);
    }
    if (least < 0 || least > 1 || most < 0 || (guint)most > 8 * n)
        return;
    for (guint i = 0; i < n; i++)
        ranks[names[i].file] = g_array_index(names[i].numbers, gint32, place);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    const Name *x = a, *y = b;
    gint order = strcmp(x->skeleton->str, y->skeleton->str);
    return order ? order : x->file < y->file ? -1 : x->file > y->file;
}

/* Of files of several skeletons those of the most frequent one are the ranks. */
static void guess_most(gint32 *ranks, Name *names, guint n)
{
    guint best = 0, best_n = 0;
    qsort(names, n, sizeof *names, compare_names);
    for (guint from = 0, to; from < n; from = to) {
        for (to = from + 1;
             to < n && g_str_equal(names[to].skeleton->str, names[from].skeleton->str); to++)
            ;
        if (to - from > best_n) {
            best = from;
            best_n = to - from;
        }
    }
    guess(ranks, names + best, best_n);
}

/* "rank0/trace.json", "rank1/trace.json": the folders', where each has its own. */
static gboolean by_folders(gint32 *ranks, const gchar *const *paths, guint n)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autofree gint32 *found = g_new(gint32, n);
    for (guint i = 0; i < n; i++) {
        g_autofree gchar *folder = g_path_get_dirname(paths[i]);
        g_autofree gchar *name = g_path_get_basename(folder);
        found[i] = rs_trace_rank_of_text(name);
        if (found[i] < 0 || !g_hash_table_add(seen, GINT_TO_POINTER(found[i])))
            return FALSE;
    }
    memcpy(ranks, found, n * sizeof *found);
    return TRUE;
}

gint32 *rs_trace_ranks_new(const gchar *const *paths, guint n)
{
    gint32 *ranks = g_new(gint32, n + 1);
    gboolean any = FALSE;
    for (guint i = 0; i < n; i++) {
        ranks[i] = rs_trace_rank_of_name(paths[i]);
        any |= ranks[i] >= 0;
    }
    if (any || n < 2 || by_folders(ranks, paths, n))
        return ranks;
    g_autofree Name *names = g_new0(Name, n);
    for (guint i = 0; i < n; i++)
        read_name(&names[i], paths[i], i);
    guess_most(ranks, names, n);
    for (guint i = 0; i < n; i++) {
        g_string_free(names[i].skeleton, TRUE);
        g_array_unref(names[i].numbers);
    }
    return ranks;
}
