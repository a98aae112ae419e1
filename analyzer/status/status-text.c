/* SPDX-License-Identifier: Apache-2.0 */
/* status-text.c - the status for people: what is wrong first, then who is in what. */
#include "escape.h"
#include "plural.h"
#include "status.h"

#define RANGES_MAX 12
#define ROWS_MAX   64

/* "0-2, 5, 8-63". */
static void append_ranks(GString *out, const RsModel *m, const GArray *ranks)
{
    guint shown = 0;
    for (guint i = 0, k; i < ranks->len; i = k) {
        gint32 from = rs_model_rank(m, g_array_index(ranks, guint32, i))->rank, to = from;
        for (k = i + 1; k < ranks->len; k++, to++)
            if (rs_model_rank(m, g_array_index(ranks, guint32, k))->rank != to + 1)
                break;
        if (shown++ == RANGES_MAX) {
            g_string_append(out, ", ...");
            return;
        }
        g_string_append_printf(out, "%s%d", i ? ", " : "", from);
        if (to > from)
            g_string_append_printf(out, to > from + 1 ? "-%d" : ", %d", to);
    }
}

static gchar *dup_seconds(gint64 ns)
{
    return g_strdup_printf("%.3f s", (gdouble)MAX(ns, 0) / 1e9);
}

static const gchar *state_name(RsEnding ending)
{
    return ending == RS_ENDING_CLEAN ? "ended" : rs_ending_name(ending);
}

/* ---- what is wrong ---- */

static gchar *dup_place(const RsStatus *s, guint32 rank)
{
    const RsModel *m = s->model;
    const RsRank *r = rs_model_rank(m, rank);
    return g_strdup_printf("rank %d (%s, pid %" G_GINT64_FORMAT ")", r->rank,
                           rs_model_str(m, g_array_index(m->hosts, RsHost, r->host).name), r->pid);
}

/* "is in MPI_Recv from rank 3, since 12.345 s". */
static gchar *dup_doing(const RsStatus *s, guint32 rank)
{
    const RsModel *m = s->model;
    const RsRankStatus *r = &s->ranks[rank];
    static const gchar *const states[RS_ENDING_COUNT] = {
        [RS_ENDING_UNKNOWN] = "was last seen", [RS_ENDING_CLEAN] = "has ended",
        [RS_ENDING_EXITED] = "exited",         [RS_ENDING_ABORTED] = "has called MPI_Abort",
        [RS_ENDING_KILLED] = "was killed",     [RS_ENDING_RUNNING] = "is",
    };
    const gchar *state = states[rs_model_rank(m, rank)->ending];
    g_autofree gchar *call = r->call == RS_NONE ? NULL : rs_ending_dup_call(m, r->call);
    g_autofree gchar *time = dup_seconds(call ? r->call_ns : r->last_ns);
    if (call)
        return g_strdup_printf("%s in %s, for %s", state, call, time);
    if (rs_model_rank(m, rank)->ending == RS_ENDING_CLEAN)
        return g_strdup(state);
    if (r->last == RS_NONE)
        return g_strdup_printf("%s in no recorded call", state);
    g_autofree gchar *last = rs_ending_dup_call(m, r->last);
    return g_strdup_printf("%s in no recorded call, for %s since %s", state, time, last);
}

static void append_root(GString *out, const RsStatus *s, guint32 rank)
{
    guint n;
    guint32 longest = rs_status_longest_wait(s, rank, &n);
    g_autofree gchar *place = dup_place(s, rank), *doing = dup_doing(s, rank);
    g_string_append_printf(out, "MISSING   %s %s\n", place, doing);
    if (longest == RS_NONE)
        return;
    g_autofree gchar *call = rs_ending_dup_call(s->model, s->ranks[longest].call);
    g_autofree gchar *time = dup_seconds(s->ranks[longest].call_ns);
    g_string_append_printf(out, "          %u rank%s for it, the longest rank %d, for %s in %s\n",
                           n, n == 1 ? " waits" : "s wait", rs_model_rank(s->model, longest)->rank,
                           time, call);
}

static void append_cycle(GString *out, const RsStatus *s)
{
    for (guint i = 0; i < s->cycle->len; i++) {
        guint32 rank = g_array_index(s->cycle, guint32, i);
        guint32 next = g_array_index(s->cycle, guint32, (i + 1) % s->cycle->len);
        g_autofree gchar *doing = dup_doing(s, rank);
        g_string_append_printf(out, "%s rank %d %s: it waits for rank %d\n",
                               i ? "         " : "DEADLOCK ", rs_model_rank(s->model, rank)->rank,
                               doing, rs_model_rank(s->model, next)->rank);
    }
}

static GArray *ranks_without_capture(const RsModel *m)
{
    GArray *ranks = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->missing)
            g_array_append_val(ranks, i);
    return ranks;
}

static gint64 longest_call(const RsStatus *s)
{
    gint64 longest = 0;
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        longest = MAX(longest, s->ranks[i].call_ns);
    return longest;
}

static gboolean all_ended(const RsModel *m)
{
    for (guint32 i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->ending != RS_ENDING_CLEAN || rs_model_rank(m, i)->missing)
            return FALSE;
    return TRUE;
}

static void append_verdict(GString *out, const RsStatus *s)
{
    g_autoptr(GArray) none = ranks_without_capture(s->model);
    if (none->len) {
        g_string_append(out, "UNKNOWN   no capture here of rank ");
        append_ranks(out, s->model, none);
        g_string_append(out, ": on another host, or never started\n");
    }
    if (s->cycle)
        append_cycle(out, s);
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        if (s->roots[i])
            append_root(out, s, i);
    if (all_ended(s->model)) {
        g_string_append(out, "OK        all ranks have ended\n");
    } else if (!s->cycle && !s->n_roots) {
        g_autofree gchar *longest = dup_seconds(longest_call(s));
        g_string_append_printf(out,
                               "OK        nobody is known to wait long for a rank that doesn't "
                               "come; the longest call lasts for %s\n",
                               longest);
    }
    g_string_append_c(out, '\n');
}

/* ---- who is in what ---- */

typedef struct {
    gchar *key; /* state and call */
    GArray *ranks;
    gint64 least_ns, most_ns;
    guint32 first; /* RsRank index */
} Group;

static void free_group(gpointer data)
{
    Group *g = data;
    g_free(g->key);
    g_array_unref(g->ranks);
    g_free(g);
}

/* In no call that is known, and what it does was last recorded before its capture was off. */
static gboolean is_unseen(const RsStatus *s, guint32 rank)
{
    return s->ranks[rank].call == RS_NONE && rs_model_rank(s->model, rank)->unseen &&
           rs_model_rank(s->model, rank)->ending != RS_ENDING_CLEAN;
}

static gchar *dup_key(const RsStatus *s, guint32 rank, gboolean each)
{
    const RsRankStatus *r = &s->ranks[rank];
    guint32 event = r->call != RS_NONE ? r->call : r->last;
    g_autofree gchar *call = event == RS_NONE ? g_strdup("") : rs_ending_dup_call(s->model, event);
    return g_strdup_printf("%d/%d/%d/%s/%d", rs_model_rank(s->model, rank)->ending,
                           r->call != RS_NONE, is_unseen(s, rank), call, each ? (gint)rank : -1);
}

static void add_to_group(GPtrArray *groups, GHashTable *by_key, const RsStatus *s, guint32 rank,
                         gboolean each)
{
    gchar *key = dup_key(s, rank, each);
    const RsRankStatus *r = &s->ranks[rank];
    gint64 ns = r->call != RS_NONE ? r->call_ns : r->last_ns;
    Group *g = g_hash_table_lookup(by_key, key);
    if (!g) {
        g = g_new0(Group, 1);
        *g = (Group){key, g_array_new(FALSE, FALSE, sizeof(guint32)), ns, ns, rank};
        g_ptr_array_add(groups, g);
        g_hash_table_insert(by_key, key, g);
    } else {
        g_free(key);
    }
    g_array_append_val(g->ranks, rank);
    g->least_ns = MIN(g->least_ns, ns);
    g->most_ns = MAX(g->most_ns, ns);
}

static void append_group(GString *out, const RsStatus *s, const Group *g)
{
    const RsModel *m = s->model;
    const RsRankStatus *r = &s->ranks[g->first];
    GString *ranks = g_string_new(NULL);
    append_ranks(ranks, m, g->ranks);
    rs_text_pad(out, ranks->str, 24);
    g_string_free(ranks, TRUE);
    g_string_append(out, "  ");
    rs_text_pad(out, state_name(rs_model_rank(m, g->first)->ending), 9);
    guint32 event = r->call != RS_NONE ? r->call : r->last;
    g_autofree gchar *call = event == RS_NONE ? NULL : rs_ending_dup_call(m, event);
    g_autofree gchar *least = dup_seconds(g->least_ns), *most = dup_seconds(g->most_ns);
    g_autofree gchar *time =
        g_str_equal(least, most) ? g_strdup(most) : g_strdup_printf("%s to %s", least, most);
    if (r->call != RS_NONE)
        g_string_append_printf(out, "in %s, for %s\n", call, time);
    else if (is_unseen(s, g->first))
        g_string_append(out, "not known: its capture is switched off, or was until a moment ago\n");
    else if (call)
        g_string_append_printf(out, "out of %s, for %s\n", call, time);
    else
        g_string_append(out, rs_model_rank(m, g->first)->ending == RS_ENDING_CLEAN
                                 ? "\n"
                                 : "no recorded call\n");
}

static void append_stack(GString *out, const RsStatus *s, const Group *g)
{
    for (guint i = 0; i < g->ranks->len; i++) {
        guint32 rank = g_array_index(g->ranks, guint32, i);
        const GPtrArray *stack = s->ranks[rank].stack;
        for (guint k = 0; stack && k < stack->len; k++)
            g_string_append_printf(out, "    rank %d  #%-2u %s\n",
                                   rs_model_rank(s->model, rank)->rank, k,
                                   (const gchar *)g_ptr_array_index(stack, k));
    }
}

static void append_groups(GString *out, const RsStatus *s, gboolean each)
{
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(free_group);
    g_autoptr(GHashTable) by_key = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        if (!rs_model_rank(s->model, i)->missing)
            add_to_group(groups, by_key, s, i, each);
    g_string_append(out, "rank                      state    what\n");
    guint most = each ? groups->len : ROWS_MAX;
    for (guint i = 0; i < MIN(groups->len, most); i++) {
        append_group(out, s, g_ptr_array_index(groups, i));
        append_stack(out, s, g_ptr_array_index(groups, i));
    }
    if (groups->len > most)
        g_string_append_printf(out, "... and %u more: --each, or --format json\n",
                               groups->len - most);
}

/* ---- how far each is on its communicators ---- */

/* Entries [from, to) of one communicator. */
static void append_comm(GString *out, const RsStatus *s, guint from, guint to)
{
    const RsModel *m = s->model;
    const RsProgressAt *at = &g_array_index(s->progress, RsProgressAt, 0);
    const RsComm *c = &g_array_index(m->comms, RsComm, at[from].comm);
    g_string_append_printf(out, "%s (%d ranks):", c->name ? rs_model_str(m, c->name) : "unnamed",
                           c->size);
    for (guint i = from, k; i < to; i = k) {
        g_autoptr(GArray) ranks = g_array_new(FALSE, FALSE, sizeof(guint32));
        for (k = i; k < to && at[k].number == at[i].number; k++)
            g_array_append_val(ranks, at[k].rank);
        g_string_append_printf(out, "%s number %u: rank%s ", i > from ? ";" : "", at[i].number,
                               rs_plural(ranks->len));
        append_ranks(out, m, ranks);
    }
    g_string_append_c(out, '\n');
}

/* Communicators on which not all are at the same collective. */
static void append_behind(GString *out, const RsStatus *s)
{
    const RsProgressAt *at = (const RsProgressAt *)(void *)s->progress->data;
    gboolean any = FALSE;
    for (guint i = 0, k; i < s->progress->len; i = k) {
        for (k = i; k < s->progress->len && at[k].comm == at[i].comm; k++)
            ;
        if (at[i].number == at[k - 1].number)
            continue;
        if (!any)
            g_string_append(out, "\nNot all at the same collective\n\n");
        any = TRUE;
        append_comm(out, s, i, k);
    }
}

static void append_header(GString *out, const RsStatus *s)
{
    const RsModel *m = s->model;
    guint n[RS_ENDING_COUNT] = {0};
    for (guint32 i = 0; i < m->ranks->len; i++)
        if (!rs_model_rank(m, i)->missing)
            n[rs_model_rank(m, i)->ending]++;
    g_string_append_printf(out, "%s: %d rank%s", s->name, m->world_size, rs_plural(m->world_size));
    for (guint e = RS_ENDING_COUNT; e-- > 0;)
        if (n[e])
            g_string_append_printf(out, ", %u %s", n[e], state_name(e));
    g_string_append(out, "\n\n");
}

static gchar *dup_escaped(const gchar *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        gchar *plain = rs_escape_dup_text(lines[i]);
        g_free(lines[i]);
        lines[i] = plain;
    }
    return g_strjoinv("\n", lines);
}

gchar *rs_status_text(const RsStatus *s, gboolean each)
{
    g_autoptr(GString) out = g_string_new(NULL);
    append_header(out, s);
    append_verdict(out, s);
    append_groups(out, s, each);
    append_behind(out, s);
    if (s->no_stacks)
        g_string_append_printf(out, "\nStacks: %s\n", s->no_stacks);
    return dup_escaped(out->str);
}
