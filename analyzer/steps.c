/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - the steps of a training run: user marks, else ranges that
 * recur, else the shortest repeated sequence of collectives, else none.
 */
#include "model-internal.h"

#include <string.h>

/* Names that mean a step, the more telling first; a number may follow ("ProfilerStep#12"). */
static const gchar *const step_names[] = {"profilerstep", "step", "iteration", "iter"};

typedef struct {
    guint32 rank, number;
    gboolean open;
    gint64 start, end;
} Found;

/* Index into step_names, -1 none; *ret_number is the number in the name, RS_NONE without one. */
static gint parse_step_name(const gchar *name, guint32 *ret_number)
{
    for (gint i = 0; i < (gint)G_N_ELEMENTS(step_names); i++) {
        gsize n = strlen(step_names[i]);
        if (g_ascii_strncasecmp(name, step_names[i], n) != 0)
            continue;
        const gchar *rest = name + n + strspn(name + n, " #_:-=");
        gsize digits = strspn(rest, "0123456789");
        if (rest[digits] != '\0' || digits > 9)
            continue;
        *ret_number = digits ? (guint32)g_ascii_strtoull(rest, NULL, 10) : RS_NONE;
        return i;
    }
    return -1;
}

typedef struct {
    gint name; /* of step_names, -1: not a step */
    guint32 number;
} StepSig;

static StepSig *parse_sigs(const RsModel *m, gboolean marks)
{
    StepSig *sigs = g_new(StepSig, m->sigs->len + 1);
    for (guint i = 0; i < m->sigs->len; i++) {
        const RsSig *s = &g_array_index(m->sigs, RsSig, i);
        gboolean kind =
            marks ? s->kind == RS_KIND_MARK : s->kind == RS_KIND_RANGE || s->kind == RS_KIND_SPAN;
        sigs[i].name = kind ? parse_step_name(rs_model_str(m, s->name), &sigs[i].number) : -1;
    }
    return sigs;
}

static gint compare_found(gconstpointer a, gconstpointer c)
{
    const Found *x = a, *y = c;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static GArray *collect(const RsModel *m, const StepSig *sigs, gint name)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(Found));
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            const StepSig *s = &sigs[m->events.sig[i]];
            if (s->name != name)
                continue;
            Found f = {track->rank, s->number, (m->events.flags[i] & RS_FLAG_OPEN) != 0,
                       m->events.start_ns[i], m->events.end_ns[i]};
            g_array_append_val(found, f);
        }
    }
    g_array_sort(found, compare_found);
    return found;
}

/* A step inside a step (a library's own range of that name) is not one. */
static void drop_nested(GArray *found)
{
    guint kept = 0;
    for (guint i = 0; i < found->len; i++) {
        Found f = g_array_index(found, Found, i);
        const Found *last = kept ? &g_array_index(found, Found, kept - 1) : NULL;
        if (last && last->rank == f.rank && f.start < last->end)
            continue;
        g_array_index(found, Found, kept++) = f;
    }
    g_array_set_size(found, kept);
}

/* A mark lasts until the next one of its rank; the last one begins nothing that we saw end. */
static void stretch_marks(GArray *found)
{
    guint kept = 0;
    for (guint i = 0; i + 1 < found->len; i++) {
        Found f = g_array_index(found, Found, i);
        const Found *next = &g_array_index(found, Found, i + 1);
        if (next->rank != f.rank)
            continue;
        f.end = next->start;
        g_array_index(found, Found, kept++) = f;
    }
    g_array_set_size(found, kept);
}

/* Do names number the steps: all have one, and no rank has one twice, in falling order. */
static gboolean numbered(const GArray *found)
{
    for (guint i = 0; i < found->len; i++) {
        const Found *f = &g_array_index(found, Found, i);
        if (f->number == RS_NONE)
            return FALSE;
        if (i > 0 && f[-1].rank == f->rank && f[-1].number >= f->number)
            return FALSE;
    }
    return TRUE;
}

static void number_by_order(GArray *found)
{
    for (guint i = 0; i < found->len; i++) {
        Found *f = &g_array_index(found, Found, i);
        f->number = i > 0 && f[-1].rank == f->rank ? f[-1].number + 1 : 0;
    }
}

static gboolean recurs(const GArray *found)
{
    for (guint i = 1; i < found->len; i++)
        if (g_array_index(found, Found, i - 1).rank == g_array_index(found, Found, i).rank)
            return TRUE;
    return FALSE;
}

static gint compare_numbers(gconstpointer a, gconstpointer c)
{
    const Found *x = a, *y = c;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static guint present_ranks(const RsModel *m)
{
    guint n = 0;
    for (guint i = 0; i < m->ranks->len; i++)
        n += !rs_model_rank(m, i)->missing && rs_model_rank(m, i)->n_tracks > 0;
    return n;
}

static void add_step(RsModel *m, const Found *f, guint n, guint ranks)
{
    RsStep s = {.number = f->number, .complete = n >= ranks};
    s.start_ns = f->start;
    s.end_ns = f->end;
    s.first_span = m->step_spans->len;
    g_array_set_size(m->step_spans, s.first_span + m->ranks->len);
    for (guint i = 0; i < n; i++) {
        RsSpan *span = &g_array_index(m->step_spans, RsSpan, s.first_span + f[i].rank);
        span->start_ns = f[i].start;
        span->end_ns = f[i].end;
        s.start_ns = MIN(s.start_ns, f[i].start);
        s.end_ns = MAX(s.end_ns, f[i].end);
        s.complete = s.complete && !f[i].open;
    }
    g_array_append_val(m->steps, s);
}

static void make_steps(RsModel *m, GArray *found)
{
    g_array_sort(found, compare_numbers);
    guint ranks = present_ranks(m);
    const Found *f = (const Found *)(void *)found->data;
    for (guint from = 0, to; from < found->len; from = to) {
        for (to = from + 1; to < found->len && f[to].number == f[from].number; to++)
            ;
        add_step(m, f + from, to - from, ranks);
    }
}

/* What ranks began with is not the same step on all where the size limit left events out. */
static gboolean set_numbers(const RsBuilder *b, GArray *found)
{
    if (numbered(found))
        return TRUE;
    if (b->cut_in_front)
        return FALSE;
    number_by_order(found);
    return TRUE;
}

/* A step that began before all events of its rank are there lacks some, as does one that goes on
 * while capture is off: at its very end it may be, the next one isn't recorded then. */
static void drop_cut(const RsBuilder *b, GArray *found)
{
    for (guint i = found->len; b->cut_in_front && i-- > 0;) {
        const Found *f = &g_array_index(found, Found, i);
        if (f->start < b->whole_ns[f->rank] ||
            rs_model_was_off(b->model, f->rank, f->start, f->end - 1))
            g_array_remove_index(found, i);
    }
}

static gboolean from_names(RsBuilder *b, gboolean marks)
{
    RsModel *m = b->model;
    g_autofree StepSig *sigs = parse_sigs(m, marks);
    for (gint name = 0; name < (gint)G_N_ELEMENTS(step_names); name++) {
        g_autoptr(GArray) found = collect(m, sigs, name);
        if (marks)
            stretch_marks(found);
        else
            drop_nested(found);
        drop_cut(b, found);
        if (!recurs(found) || !set_numbers(b, found))
            continue;
        make_steps(m, found);
        m->step_source = marks ? "marks" : "ranges";
        return TRUE;
    }
    return FALSE;
}

/* ---- repetition ---- */

#define REPETITIONS_MIN 3

/* Shortest period of s[0..n) by its failure function, n where there is none. */
static guint period_of(const guint32 *s, guint n)
{
    if (n == 0)
        return 0;
    g_autofree guint *fail = g_new(guint, n);
    fail[0] = 0;
    for (guint i = 1, k = 0; i < n; i++) {
        while (k > 0 && s[i] != s[k])
            k = fail[k - 1];
        k += s[i] == s[k];
        fail[i] = k;
    }
    return n - fail[n - 1];
}

/* The communicator whose collectives tell the rhythm: the largest, then the one used most. */
static guint32 find_beat(const RsModel *m)
{
    g_autofree guint32 *used = g_new0(guint32, m->comms->len + 1);
    for (guint i = 0; i < m->instances->len; i++)
        used[g_array_index(m->instances, RsInstance, i).comm]++;
    guint32 best = RS_NONE;
    for (guint c = 0; c < m->comms->len; c++) {
        if (used[c] == 0)
            continue;
        gint32 size = g_array_index(m->comms, RsComm, c).size;
        gint32 best_size = best == RS_NONE ? -1 : g_array_index(m->comms, RsComm, best).size;
        if (size > best_size || (size == best_size && used[c] > used[best]))
            best = c;
    }
    return best;
}

static gint compare_sequence(gconstpointer a, gconstpointer c)
{
    const RsInstance *const *x = a, *const *y = c;
    return (*x)->seq < (*y)->seq ? -1 : (*x)->seq > (*y)->seq;
}

static GPtrArray *beat_instances(const RsModel *m, guint32 comm)
{
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < m->instances->len; i++) {
        RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        if (inst->comm == comm)
            g_ptr_array_add(list, inst);
    }
    g_ptr_array_sort(list, compare_sequence);
    return list;
}

/* (operation, bytes) as small numbers. */
static guint32 *symbols_of(const RsModel *m, const GPtrArray *list)
{
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint32 *s = g_new(guint32, list->len + 1);
    for (guint i = 0; i < list->len; i++) {
        const RsInstance *inst = g_ptr_array_index(list, i);
        const RsSig *sig = &g_array_index(m->sigs, RsSig, inst->sig);
        gchar *key = g_strdup_printf("%u %u %" G_GUINT64_FORMAT, sig->name, sig->coll, sig->bytes);
        gpointer id;
        if (g_hash_table_lookup_extended(ids, key, NULL, &id)) {
            s[i] = GPOINTER_TO_UINT(id);
            g_free(key);
        } else {
            s[i] = g_hash_table_size(ids);
            g_hash_table_insert(ids, key, GUINT_TO_POINTER(s[i]));
        }
    }
    return s;
}

/* Finds where the repeated part begins and its period; covers 80 % at least three times. */
static guint find_period(const guint32 *s, guint n, guint *ret_first)
{
    guint window = n - n / 5;
    const guint offsets[] = {0, n / 10, n / 5};
    guint best = 0;
    for (guint i = 0; i < G_N_ELEMENTS(offsets); i++) {
        guint p = period_of(s + offsets[i], window);
        if (p > 0 && (guint64)p * REPETITIONS_MIN <= window && (best == 0 || p < best)) {
            best = p;
            *ret_first = offsets[i];
        }
    }
    if (best)
        while (*ret_first > 0 && s[*ret_first - 1] == s[*ret_first - 1 + best])
            --*ret_first;
    return best;
}

static void add_repetition(const RsModel *m, GArray *found, const RsInstance *a,
                           const RsInstance *next, guint32 number)
{
    const RsComm *c = &g_array_index(m->comms, RsComm, a->comm);
    for (guint32 i = 0; i < c->n_members; i++) {
        guint32 e = g_array_index(m->member_events, guint32, a->first_member + i);
        guint32 f = g_array_index(m->member_events, guint32, next->first_member + i);
        if (e == RS_NONE || f == RS_NONE || c->members[i] == RS_NONE)
            continue;
        Found step = {c->members[i], number, FALSE, rs_model_arrival_ns(m, e),
                      rs_model_arrival_ns(m, f)};
        if (step.end > step.start && !rs_model_was_off(m, step.rank, step.start, step.end))
            g_array_append_val(found, step);
    }
}

static gboolean from_repetition(RsModel *m)
{
    guint32 beat = find_beat(m);
    if (beat == RS_NONE)
        return FALSE;
    g_autoptr(GPtrArray) list = beat_instances(m, beat);
    g_autofree guint32 *s = symbols_of(m, list);
    guint first = 0, period = find_period(s, list->len, &first);
    if (period == 0)
        return FALSE;
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(Found));
    for (guint i = first, number = 0; i + period < list->len && s[i] == s[i + period];
         i += period, number++)
        add_repetition(m, found, g_ptr_array_index(list, i), g_ptr_array_index(list, i + period),
                       number);
    g_array_sort(found, compare_numbers);
    make_steps(m, found);
    m->step_source = "repetition";
    return m->steps->len > 0;
}

/* ---- what belongs to which step ---- */

guint32 rs_model_first_step(const RsModel *m, guint32 rank, gint64 ns)
{
    guint32 low = 0, high = m->steps->len;
    while (low < high) {
        guint32 mid = low + (high - low) / 2;
        const RsStep *s = &g_array_index(m->steps, RsStep, mid);
        const RsSpan *span = &g_array_index(m->step_spans, RsSpan, s->first_span + rank);
        gint64 end = span->end_ns > span->start_ns ? span->end_ns : s->end_ns;
        if (end <= ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

gboolean rs_model_is_step(const RsModel *m, guint32 rank, gint64 start_ns, gint64 end_ns)
{
    guint32 low = 0, high = m->steps->len;
    while (low < high) {
        guint32 mid = low + (high - low) / 2;
        const RsStep *s = &g_array_index(m->steps, RsStep, mid);
        const RsSpan *span = &g_array_index(m->step_spans, RsSpan, s->first_span + rank);
        gint64 at = span->end_ns > span->start_ns ? span->start_ns : s->start_ns;
        if (at < start_ns)
            low = mid + 1;
        else
            high = mid;
    }
    if (low >= m->steps->len)
        return FALSE;
    const RsStep *s = &g_array_index(m->steps, RsStep, low);
    const RsSpan *span = &g_array_index(m->step_spans, RsSpan, s->first_span + rank);
    return span->start_ns == start_ns && span->end_ns == end_ns;
}

/* The step whose span on `rank` holds `ns`. */
static guint32 step_at(const RsModel *m, guint32 rank, gint64 ns)
{
    guint32 i = rs_model_first_step(m, rank, ns);
    if (i >= m->steps->len)
        return RS_NONE;
    const RsStep *s = &g_array_index(m->steps, RsStep, i);
    const RsSpan *span = &g_array_index(m->step_spans, RsSpan, s->first_span + rank);
    return ns >= span->start_ns && ns < span->end_ns ? i : RS_NONE;
}

static guint32 step_of(const RsModel *m, guint32 event)
{
    return step_at(m, rs_model_rank_of(m, event), m->events.start_ns[event]);
}

static guint32 first_present(const RsModel *m, guint32 first_member, guint32 n)
{
    for (guint32 i = 0; i < n; i++) {
        guint32 e = g_array_index(m->member_events, guint32, first_member + i);
        if (e != RS_NONE)
            return e;
    }
    return RS_NONE;
}

static void assign(RsModel *m)
{
    for (guint i = 0; i < m->instances->len; i++) {
        RsInstance *inst = &g_array_index(m->instances, RsInstance, i);
        guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
        inst->step = step_of(m, first_present(m, inst->first_member, n));
    }
    for (guint i = 0; i < m->rendezvous->len; i++) {
        RsRendezvous *v = &g_array_index(m->rendezvous, RsRendezvous, i);
        v->step = step_of(m, first_present(m, v->first_member, m->ranks->len));
    }
    for (guint i = 0; i < m->messages->len; i++) {
        RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        msg->step = step_of(m, msg->recv != RS_NONE ? msg->recv : msg->send);
    }
}

void rs_steps_find(RsBuilder *b)
{
    RsModel *m = b->model;
    if (from_names(b, TRUE) || from_names(b, FALSE) || from_repetition(m))
        assign(m);
}
