/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mismatch.c - ranks that meet in one collective with different calls: mismatched-collective, and
 * order-divergence where they make the same two calls in another order.
 *
 * Rule: members of one (communicator, number) whose operation, type, count or root don't fit
 * (rs_model_calls_agree). The ranks that are told are those outside the largest group that agrees;
 * of two equal ones, outside that of the lowest rank. Told is the first on each communicator: what
 * comes after it is shifted by it, unless other ranks are the odd ones there, which is told beside.
 * Swapped: the odd rank's call at that number is the others' at the next, and the other way round.
 * Cost: none is known: MPI says nothing of what happens then (a hang, a wrong result, an abort).
 */
#include "analyses.h"
#include "endings.h"
#include "plural.h"

#include <string.h>

#define SAID_MAX   8
#define LOOKED_MAX 64 /* at collectives after the first that does not fit */

/* Members of one instance that agree, by the first of them. */
typedef struct {
    guint32 event; /* of its lowest member */
    GArray *ranks; /* guint32 RsRank indices */
} Group;

static void clear_group(gpointer data)
{
    g_array_unref(((Group *)data)->ranks);
}

static GArray *group_members(const RsModel *m, const RsInstance *inst)
{
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(Group));
    g_array_set_clear_func(groups, clear_group);
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    for (guint32 k = 0; k < n; k++) {
        guint32 event = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (event == RS_NONE)
            continue;
        guint g = 0;
        while (g < groups->len &&
               !rs_model_calls_agree(m, g_array_index(groups, Group, g).event, event))
            g++;
        if (g == groups->len) {
            Group new = {event, g_array_new(FALSE, FALSE, sizeof(guint32))};
            g_array_append_val(groups, new);
        }
        guint32 rank = rs_model_rank_of(m, event);
        g_array_append_val(g_array_index(groups, Group, g).ranks, rank);
    }
    return groups;
}

static guint find_largest(const GArray *groups)
{
    guint largest = 0;
    for (guint i = 1; i < groups->len; i++)
        if (g_array_index(groups, Group, i).ranks->len >
            g_array_index(groups, Group, largest).ranks->len)
            largest = i;
    return largest;
}

/* "MPI_Reduce of 4 MPI_INT, MPI_SUM, root 2". */
static gchar *dup_call(const RsModel *m, guint32 event)
{
    const RsSig *s = rs_model_sig(m, event);
    GString *t = g_string_new(rs_model_str(m, s->name));
    if (s->dtype)
        g_string_append_printf(t, " of %" G_GUINT64_FORMAT " %s", s->count,
                               rs_model_str(m, s->dtype));
    if (s->redop)
        g_string_append_printf(t, ", %s", rs_model_str(m, s->redop));
    if (s->peer >= 0)
        g_string_append_printf(t, ", root %d", s->peer);
    return g_string_free(t, FALSE);
}

static gchar *dup_ranks(const RsModel *m, const GArray *ranks)
{
    GString *t = g_string_new(ranks->len == 1 ? "rank " : "ranks ");
    for (guint i = 0; i < ranks->len && i < SAID_MAX; i++)
        g_string_append_printf(t, "%s%d", i ? ", " : "",
                               rs_model_rank(m, g_array_index(ranks, guint32, i))->rank);
    if (ranks->len > SAID_MAX)
        g_string_append_printf(t, " and %u more", ranks->len - SAID_MAX);
    return g_string_free(t, FALSE);
}

/* The event of `rank` in an instance, RS_NONE. */
static guint32 event_of(const RsModel *m, const RsInstance *inst, guint32 rank)
{
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    for (guint32 k = 0; k < n; k++) {
        guint32 event = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (event != RS_NONE && rs_model_rank_of(m, event) == rank)
            return event;
    }
    return RS_NONE;
}

/* Two groups that make each other's next call. */
static gboolean is_swapped(const RsModel *m, const GArray *groups, const RsInstance *next)
{
    if (groups->len != 2 || !next)
        return FALSE;
    const Group *a = &g_array_index(groups, Group, 0), *b = &g_array_index(groups, Group, 1);
    guint32 next_a = event_of(m, next, g_array_index(a->ranks, guint32, 0));
    guint32 next_b = event_of(m, next, g_array_index(b->ranks, guint32, 0));
    return next_a != RS_NONE && next_b != RS_NONE && rs_model_calls_agree(m, a->event, next_b) &&
           rs_model_calls_agree(m, b->event, next_a);
}

static void say_groups(const RsModel *m, RsFinding *f, const GArray *groups)
{
    for (guint i = 0; i < groups->len && i < SAID_MAX; i++) {
        const Group *g = &g_array_index(groups, Group, i);
        g_autofree gchar *ranks = dup_ranks(m, g->ranks), *call = dup_call(m, g->event);
        rs_finding_say(f, "%s called %s, the first at %.6f s", ranks, call,
                       (gdouble)m->events.start_ns[g->event] / 1e9);
    }
    if (groups->len > SAID_MAX)
        rs_finding_say(f, "and %u further kinds of call", groups->len - SAID_MAX);
}

static gchar *dup_title(const RsModel *m, const RsInstance *inst, const GArray *groups,
                        guint largest, gboolean swapped)
{
    const Group *many = &g_array_index(groups, Group, largest);
    const Group *odd = &g_array_index(groups, Group, largest == 0);
    const RsComm *c = &g_array_index(m->comms, RsComm, inst->comm);
    const gchar *name = c->name ? rs_model_str(m, c->name) : "an unnamed communicator";
    g_autofree gchar *who = dup_ranks(m, odd->ranks);
    g_autofree gchar *call = dup_call(m, odd->event), *theirs = dup_call(m, many->event);
    guint n = many->ranks->len;
    if (swapped)
        return g_strdup_printf(
            "%s called %s before %s, %u other%s after it, as number %u and %u on %s", who, call,
            theirs, n, rs_plural(n), inst->seq, inst->seq + 1, name);
    return g_strdup_printf("%s called %s where %u other%s called %s, number %u on %s", who, call, n,
                           rs_plural(n), theirs, inst->seq, name);
}

static gboolean same_ranks(const GArray *a, const GArray *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len * sizeof(guint32)) == 0;
}

/* Of `n` instances after the first, those in which others are odd: no shift does that. */
static void say_others(const RsModel *m, RsFinding *f, const Group *odd,
                       const RsInstance *const *after, guint n)
{
    guint said = 0;
    for (guint i = 0; i < n && i < LOOKED_MAX && said < SAID_MAX; i++) {
        g_autoptr(GArray) groups = group_members(m, after[i]);
        if (groups->len < 2)
            continue;
        guint largest = find_largest(groups);
        if (same_ranks(g_array_index(groups, Group, largest == 0).ranks, odd->ranks))
            continue;
        g_autofree gchar *text = dup_title(m, after[i], groups, largest, FALSE);
        rs_finding_say(f, "and %s", text);
        said++;
    }
}

/* `list`: those of one communicator that don't fit, `count` of them. */
static void add_finding(const RsContext *ctx, const RsInstance *const *list, const RsInstance *next,
                        guint count, RsResults *results)
{
    const RsModel *m = ctx->model;
    const RsInstance *inst = list[0];
    g_autoptr(GArray) groups = group_members(m, inst);
    if (groups->len < 2)
        return;
    guint largest = find_largest(groups);
    gboolean swapped = is_swapped(m, groups, next);
    RsFinding *f = rs_finding_new(swapped ? "order-divergence" : "mismatched-collective");
    f->wrong = TRUE;
    f->severity = "high";
    f->confidence = 1;
    f->title = dup_title(m, inst, groups, largest, swapped);
    for (guint i = 0; i < groups->len; i++)
        for (guint k = 0; i != largest && k < g_array_index(groups, Group, i).ranks->len; k++)
            rs_finding_place(f, m,
                             g_array_index(g_array_index(groups, Group, i).ranks, guint32, k));
    g_array_append_val(f->communicators, g_array_index(m->comms, RsComm, inst->comm).identity);
    f->t_start_s = (gdouble)inst->first_arrival_ns / 1e9;
    f->t_end_s = (gdouble)inst->last_end_ns / 1e9;
    say_groups(m, f, groups);
    if (count > 1)
        rs_finding_say(f, "%u collectives of that communicator don't fit; this is the first",
                       count);
    if (!swapped)
        say_others(m, f, &g_array_index(groups, Group, largest == 0), list + 1, count - 1);
    f->remedy =
        g_strdup(swapped ? "make all ranks make their collectives in the same order, whatever "
                           "their data says: sort what is iterated over, agree first"
                         : "make all ranks pass the same operation, type, count and root, or "
                           "leave out the one that only some of them call");
    g_ptr_array_add(results->findings, f);
}

static gint compare_places(gconstpointer a, gconstpointer b)
{
    const RsInstance *x = *(const RsInstance *const *)a, *y = *(const RsInstance *const *)b;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (guint i = 0; i < m->instances->len; i++)
        if (g_array_index(m->instances, RsInstance, i).mismatched)
            g_ptr_array_add(list, &g_array_index(m->instances, RsInstance, i));
    g_ptr_array_sort(list, compare_places);
    for (guint i = 0, k; i < list->len; i = k) {
        const RsInstance *first = g_ptr_array_index(list, i), *next = NULL;
        for (k = i + 1; k < list->len; k++)
            if (((const RsInstance *)g_ptr_array_index(list, k))->comm != first->comm)
                break;
        if (k > i + 1)
            next = g_ptr_array_index(list, i + 1);
        add_finding(ctx, (const RsInstance *const *)list->pdata + i,
                    next && next->seq == first->seq + 1 ? next : NULL, k - i, results);
    }
}

static const gchar *const kinds[] = {"mismatched-collective", "order-divergence", NULL};

const RsAnalysis rs_analysis_mismatch = {
    .name = "mismatch",
    .help = "ranks that meet in one collective with different calls",
    .kinds = kinds,
    .finish = finish,
};
