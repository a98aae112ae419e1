/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - processes to ranks and hosts, raw events to sorted columns. */
#include "meta-notes.h"
#include "model-internal.h"

#include <string.h>

/* What a damaged capture claims may cost no more than this. */
#define RANKS_MAX        (1 << 20)
#define MISSING_ROWS_MAX (1 << 17)

static void refuse_nonsense(RsBuilder *b)
{
    for (guint i = 0; i < b->processes->len; i++) {
        RsProcess *p = g_ptr_array_index(b->processes, i);
        if (p->rank < RANKS_MAX && p->world_size <= RANKS_MAX)
            continue;
        rs_builder_warn(b, p->path, 0, "rank %d of %d is beyond belief: taken as unknown", p->rank,
                        p->world_size);
        p->rank = -1;
        p->world_size = 0;
    }
}

static guint64 *count_events(const RsBuilder *b)
{
    guint64 *n = g_new0(guint64, b->processes->len + 1);
    for (guint i = 0; i < b->events->len; i++) {
        guint32 track = g_array_index(b->events, RsRawEvent, i).track;
        n[g_array_index(b->tracks, RsRawTrack, track).process]++;
    }
    return n;
}

typedef struct {
    RsBuilder *b;
    const guint64 *events;
} Order;

/* Known ranks first; of one rank, the process with the most events first; else as added. */
static gint compare_processes(gconstpointer a, gconstpointer c, gpointer data)
{
    const Order *o = data;
    guint32 i = *(const guint32 *)a, j = *(const guint32 *)c;
    guint32 x = (guint32)rs_builder_process(o->b, i)->rank;
    guint32 y = (guint32)rs_builder_process(o->b, j)->rank;
    if (x != y)
        return x < y ? -1 : 1;
    if (x != (guint32)-1 && o->events[i] != o->events[j])
        return o->events[i] > o->events[j] ? -1 : 1;
    return i < j ? -1 : i > j;
}

static guint32 host_index(RsBuilder *b, const gchar *name, gdouble nic_mbps)
{
    RsStr s = rs_builder_string(b, name);
    GArray *hosts = b->model->hosts;
    for (guint i = 0; i < hosts->len; i++) {
        RsHost *h = &g_array_index(hosts, RsHost, i);
        if (h->name == s) {
            h->nic_mbps = MAX(h->nic_mbps, nic_mbps);
            return i;
        }
    }
    RsHost h = {s, nic_mbps};
    g_array_append_val(hosts, h);
    return hosts->len - 1;
}

static guint32 domain_index(RsBuilder *b, const gchar *name)
{
    RsStr s = rs_builder_string(b, name);
    GArray *domains = b->model->domains;
    for (guint i = 0; i < domains->len; i++)
        if (g_array_index(domains, RsDomain, i).name == s)
            return i;
    RsDomain d = {.name = s};
    g_array_append_val(domains, d);
    return domains->len - 1;
}

static void append_rank(RsBuilder *b, const RsProcess *p, guint64 events)
{
    RsRank r = {.rank = p->rank, .pid = p->pid, .ending = p->ending, .open_event = RS_NONE};
    r.host = host_index(b, p->host, p->nic_mbps);
    r.domain = domain_index(b, p->domain);
    r.program = rs_builder_string(b, p->program);
    r.path = rs_builder_string(b, p->path);
    r.note = rs_builder_string(b, p->note ? p->note : "");
    r.events = events;
    r.dropped = p->dropped;
    g_array_append_val(b->model->ranks, r);
}

static void append_missing(RsBuilder *b, gint32 from, gint32 to)
{
    for (gint32 rank = from; rank < to && b->model->ranks->len < MISSING_ROWS_MAX; rank++) {
        RsRank r = {.rank = rank, .missing = TRUE, .open_event = RS_NONE};
        r.note = rs_builder_string(b, "no capture of this rank was found");
        g_array_append_val(b->model->ranks, r);
    }
}

static void join_rank(RsBuilder *b, const RsProcess *p, guint64 events)
{
    RsRank *r = rs_model_rank(b->model, b->model->ranks->len - 1);
    r->events += events;
    r->dropped += p->dropped;
    const gchar *hint = p->world_size == 1
                            ? "; each was rank 0 of 1: perhaps the mpirun of another MPI than the "
                              "program's started them (mpiexec.mpich is MPICH's)"
                            : "";
    rs_builder_warn(b, p->path, 0,
                    "a further process of rank %d (pid %" G_GINT64_FORMAT
                    "): read as more tracks of that rank%s",
                    p->rank, p->pid, hint);
}

static gint32 find_world_size(const RsBuilder *b)
{
    gint32 size = 0, highest = -1, unknown = 0;
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        size = MAX(size, p->world_size);
        highest = MAX(highest, p->rank);
        unknown += p->rank < 0;
    }
    if (highest < 0)
        return MAX(size, unknown);
    return MAX(size, highest + 1);
}

static void warn_missing(RsBuilder *b)
{
    GString *list = g_string_new(NULL);
    guint n = 0;
    for (guint i = 0; i < b->model->ranks->len; i++) {
        const RsRank *r = rs_model_rank(b->model, i);
        if (r->missing && ++n <= 16)
            g_string_append_printf(list, "%s%d", n > 1 ? ", " : "", r->rank);
    }
    if (n > 0) {
        rs_builder_warn(b, "", 0, "no capture of %u of %d ranks: %s%s", n, b->model->world_size,
                        list->str, n > 16 ? ", ..." : "");
        b->model->incomplete = TRUE;
    }
    g_string_free(list, TRUE);
}

/* "#3/key" of process 3 becomes "rank/key", of a process without a rank "pid 4242/key". */
static void rename_meta(RsBuilder *b)
{
    GHashTable *named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, b->model->meta);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        const gchar *k = key, *slash = strchr(k, '/');
        gchar *name = g_strdup(k);
        if (k[0] == '#' && slash) {
            const RsProcess *p = rs_builder_process(b, (guint32)strtoul(k + 1, NULL, 10));
            g_free(name);
            name = p->rank >= 0 ? g_strdup_printf("%d%s", p->rank, slash)
                                : g_strdup_printf("pid %" G_GINT64_FORMAT "%s", p->pid, slash);
        }
        g_hash_table_insert(named, name, g_strdup(value));
    }
    g_hash_table_unref(b->model->meta);
    b->model->meta = named;
}

void rs_order_ranks(RsBuilder *b, RsFinishFlags flags)
{
    refuse_nonsense(b);
    guint n = b->processes->len;
    g_autofree guint64 *events = count_events(b);
    g_autofree guint32 *order = g_new(guint32, n + 1);
    for (guint i = 0; i < n; i++)
        order[i] = i;
    Order data = {b, events};
    g_qsort_with_data(order, (gint)n, sizeof *order, compare_processes, &data);

    b->model->world_size = find_world_size(b);
    b->rank_of_process = g_new(guint32, n + 1);
    gboolean known = n > 0 && rs_builder_process(b, order[0])->rank >= 0;
    gboolean fill = known && !(flags & (RS_FINISH_NO_MISSING | RS_FINISH_ORDER_ONLY));
    gint32 next = 0;
    for (guint i = 0; i < n; i++) {
        const RsProcess *p = rs_builder_process(b, order[i]);
        if (p->rank >= 0 && p->rank < next) {
            join_rank(b, p, events[order[i]]);
        } else {
            if (fill)
                append_missing(b, next, p->rank >= 0 ? p->rank : b->model->world_size);
            append_rank(b, p, events[order[i]]);
            next = p->rank >= 0 ? p->rank + 1 : b->model->world_size;
        }
        b->rank_of_process[order[i]] = b->model->ranks->len - 1;
    }
    if (fill && next > 0)
        append_missing(b, next, b->model->world_size);
    warn_missing(b);
    rename_meta(b);
    rs_meta_notes_warn(b);
}

typedef struct {
    const RsBuilder *b;
    const guint32 *process_order; /* position of a process among its rank's */
} TrackOrder;

static gint compare_tracks(gconstpointer a, gconstpointer c, gpointer data)
{
    const TrackOrder *o = data;
    guint32 i = *(const guint32 *)a, j = *(const guint32 *)c;
    guint32 p = g_array_index(o->b->tracks, RsRawTrack, i).process;
    guint32 q = g_array_index(o->b->tracks, RsRawTrack, j).process;
    if (o->b->rank_of_process[p] != o->b->rank_of_process[q])
        return o->b->rank_of_process[p] < o->b->rank_of_process[q] ? -1 : 1;
    if (p != q) /* the rank's own process, named in RsRank.pid, first */
        return o->process_order[p] < o->process_order[q] ? -1 : 1;
    return i < j ? -1 : i > j;
}

static guint32 *positions(const RsBuilder *b)
{
    guint32 *pos = g_new0(guint32, b->processes->len + 1);
    for (guint i = 0; i < b->processes->len; i++) {
        const RsProcess *p = g_ptr_array_index(b->processes, i);
        const RsRank *r = rs_model_rank(b->model, b->rank_of_process[i]);
        pos[i] =
            p->pid == r->pid && strcmp(p->path, rs_model_str(b->model, r->path)) == 0 ? 0 : i + 1;
    }
    return pos;
}

static guint32 *order_tracks(RsBuilder *b)
{
    guint n = b->tracks->len;
    guint32 *order = g_new(guint32, n + 1);
    for (guint i = 0; i < n; i++)
        order[i] = i;
    g_autofree guint32 *pos = positions(b);
    TrackOrder data = {b, pos};
    g_qsort_with_data(order, (gint)n, sizeof *order, compare_tracks, &data);
    return order;
}

static RsStr track_name(RsBuilder *b, const RsRawTrack *raw, const RsRank *r)
{
    const RsProcess *p = rs_builder_process(b, raw->process);
    if (p->pid == r->pid)
        return raw->name;
    g_autofree gchar *name =
        g_strdup_printf("pid %" G_GINT64_FORMAT ": %s", p->pid, rs_model_str(b->model, raw->name));
    return rs_builder_string(b, name);
}

/* Lays the tracks out; returns the first event of each raw track. */
static guint32 *lay_tracks(RsBuilder *b)
{
    g_autofree guint32 *order = order_tracks(b);
    guint32 *first = g_new0(guint32, b->tracks->len + 1);
    g_autofree guint32 *count = g_new0(guint32, b->tracks->len + 1);
    for (guint i = 0; i < b->events->len; i++)
        count[g_array_index(b->events, RsRawEvent, i).track]++;

    b->process_of_track = g_new(guint32, b->tracks->len + 1);
    b->nests = g_new0(guint8, b->tracks->len + 1);
    guint32 at = 0;
    for (guint i = 0; i < b->tracks->len; i++) {
        const RsRawTrack *raw = &g_array_index(b->tracks, RsRawTrack, order[i]);
        guint32 rank = b->rank_of_process[raw->process];
        RsRank *r = rs_model_rank(b->model, rank);
        RsTrack t = {.rank = rank, .first = at, .n = count[order[i]], .tid = raw->tid};
        t.name = track_name(b, raw, r);
        t.device = raw->device;
        if (r->n_tracks++ == 0)
            r->first_track = i;
        g_array_append_val(b->model->tracks, t);
        b->process_of_track[i] = raw->process;
        b->nests[i] = raw->nests != FALSE;
        first[order[i]] = at;
        at += t.n;
    }
    return first;
}

static gint compare_events(gconstpointer a, gconstpointer c, gpointer data)
{
    const RsRawEvent *events = data;
    guint32 i = *(const guint32 *)a, j = *(const guint32 *)c;
    if (events[i].start != events[j].start)
        return events[i].start < events[j].start ? -1 : 1;
    if (events[i].end != events[j].end) /* the longer one holds the shorter one */
        return events[i].end > events[j].end ? -1 : 1;
    return i < j ? -1 : i > j;
}

static gboolean is_sorted(const guint32 *perm, guint32 n, RsRawEvent *events)
{
    for (guint32 i = 1; i < n; i++)
        if (compare_events(&perm[i - 1], &perm[i], events) > 0)
            return FALSE;
    return TRUE;
}

/* perm[model's event] = raw event */
static guint32 *order_of_events(RsBuilder *b)
{
    RsRawEvent *events = (RsRawEvent *)(void *)b->events->data;
    g_autofree guint32 *next = lay_tracks(b);
    guint32 *perm = g_new(guint32, b->events->len + 1);
    for (guint i = 0; i < b->events->len; i++)
        perm[next[events[i].track]++] = i;
    for (guint i = 0; i < b->model->tracks->len; i++) {
        const RsTrack *t = &g_array_index(b->model->tracks, RsTrack, i);
        if (!is_sorted(perm + t->first, t->n, events))
            g_qsort_with_data(perm + t->first, (gint)t->n, sizeof *perm, compare_events, events);
    }
    return perm;
}

static gint compare_extras(gconstpointer a, gconstpointer c)
{
    const RsExtra *x = a, *y = c;
    return x->event < y->event ? -1 : x->event > y->event;
}

static gboolean extras_sorted(const GArray *extras)
{
    for (guint i = 1; i < extras->len; i++)
        if (g_array_index(extras, RsExtra, i - 1).event > g_array_index(extras, RsExtra, i).event)
            return FALSE;
    return TRUE;
}

/* Each event has its fields together; g_array_sort is stable. */
static gint compare_args(gconstpointer a, gconstpointer c)
{
    const RsArg *x = a, *y = c;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void renumber_args(GArray *args, const guint32 *new_of)
{
    gboolean sorted = TRUE;
    for (guint i = 0; i < args->len; i++) {
        RsArg *x = &g_array_index(args, RsArg, i);
        x->event = new_of[x->event];
        sorted = sorted && (i == 0 || x[-1].event <= x->event);
    }
    if (!sorted)
        g_array_sort(args, compare_args);
}

static void renumber(RsBuilder *b, const guint32 *new_of)
{
    RsEvents *e = &b->model->events;
    for (guint32 i = 0; i < e->n; i++)
        if (e->link[i] != RS_NONE)
            e->link[i] = e->link[i] < e->n ? new_of[e->link[i]] : RS_NONE;
    for (guint i = 0; i < b->extras->len; i++) {
        RsExtra *x = &g_array_index(b->extras, RsExtra, i);
        x->event = new_of[x->event];
    }
    renumber_args(b->model->args, new_of);
    if (!extras_sorted(b->extras)) /* g_array_sort is stable */
        g_array_sort(b->extras, compare_extras);
}

void rs_order_events(RsBuilder *b)
{
    g_autofree guint32 *perm = order_of_events(b);
    const RsRawEvent *raw = (const RsRawEvent *)(void *)b->events->data;
    RsEvents *e = &b->model->events;
    guint32 n = e->n = b->events->len;
    e->start_ns = g_new(gint64, n + 1);
    e->end_ns = g_new(gint64, n + 1);
    e->sig = g_new(guint32, n + 1);
    e->flags = g_new(guint16, n + 1);
    e->aux = g_new(guint16, n + 1);
    e->seq = g_new(guint32, n + 1);
    e->link = g_new(guint32, n + 1);
    g_autofree guint32 *new_of = g_new(guint32, n + 1);
    for (guint32 i = 0; i < n; i++) {
        const RsRawEvent *r = &raw[perm[i]];
        e->start_ns[i] = r->start;
        e->end_ns[i] = r->end;
        e->sig[i] = r->sig;
        e->flags[i] = r->flags;
        e->aux[i] = r->aux;
        e->seq[i] = r->seq;
        e->link[i] = r->link;
        new_of[perm[i]] = i;
    }
    renumber(b, new_of);
    g_clear_pointer(&b->events, g_array_unref);
}
