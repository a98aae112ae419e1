/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <string.h>

#include "analyses/endings.h"
#include "export/lanes.h"

/* ---- which row an event stands in ---- */

typedef struct {
    GArray *ends; /* gint64: of what is open in the lane, innermost last */
    guint32 depth_max;
} Lane;

static void lane_clear(gpointer data)
{
    g_array_unref(((Lane *)data)->ends);
}

static GArray *lanes_new(guint32 n)
{
    GArray *lanes = g_array_sized_new(FALSE, TRUE, sizeof(Lane), n);
    g_array_set_size(lanes, n);
    for (guint32 i = 0; i < n; i++)
        g_array_index(lanes, Lane, i).ends = g_array_new(FALSE, FALSE, sizeof(gint64));
    g_array_set_clear_func(lanes, lane_clear);
    return lanes;
}

static guint32 lane_push(Lane *lane, gint64 start, gint64 end)
{
    while (lane->ends->len && g_array_index(lane->ends, gint64, lane->ends->len - 1) <= start)
        g_array_set_size(lane->ends, lane->ends->len - 1);
    g_array_append_val(lane->ends, end);
    lane->depth_max = MAX(lane->depth_max, lane->ends->len);
    return lane->ends->len - 1;
}

static gboolean drawn(RsKind kind)
{
    return kind != RS_KIND_COUNTER;
}

/* Leaves each event's depth in `row_of`; G_MAXUINT32 for what is not drawn. */
static gboolean find_depths(const RsModel *m, const RsTrack *t, const RsLanes *lanes,
                            guint32 first_lane, GArray *of_track, guint32 *row_of)
{
    gboolean marks = FALSE;
    for (guint32 e = t->first; e < t->first + t->n; e++) {
        RsKind kind = (RsKind)rs_model_sig(m, e)->kind;
        row_of[e] = drawn(kind) ? 0 : RS_NONE;
        marks = marks || kind == RS_KIND_MARK;
        if (!drawn(kind) || kind == RS_KIND_MARK)
            continue;
        Lane *lane = &g_array_index(of_track, Lane, lanes->of_event[e] - first_lane);
        row_of[e] = lane_push(lane, m->events.start_ns[e], rs_lanes_end_ns(m, e));
    }
    return marks;
}

static void add_row(RsRows *r, guint32 track, gboolean marks, gboolean span)
{
    RsRow row = {.track = track, .marks = marks, .span = span};
    g_array_append_val(r->rows, row);
}

/* Gives the track its rows, and each of its events the number of its row. */
static void lay_track(RsRows *r, const RsLanes *lanes, guint32 track, guint32 *row_of)
{
    const RsModel *m = r->model;
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, track);
    const RsTrackLanes *of = &lanes->tracks[track];
    g_autoptr(GArray) list = lanes_new(of->n + of->n_span);
    guint32 marks_row = r->rows->len;
    if (find_depths(m, t, lanes, of->first, list, row_of))
        add_row(r, track, TRUE, FALSE);
    g_autofree guint32 *base = g_new0(guint32, list->len + 1);
    for (guint32 i = 0; i < list->len; i++) {
        base[i] = r->rows->len;
        for (guint32 d = 0; d < g_array_index(list, Lane, i).depth_max; d++)
            add_row(r, track, FALSE, i >= of->n);
    }
    for (guint32 e = t->first; e < t->first + t->n; e++)
        if (row_of[e] != RS_NONE)
            row_of[e] = rs_model_sig(m, e)->kind == RS_KIND_MARK
                            ? marks_row
                            : row_of[e] + base[lanes->of_event[e] - of->first];
}

/* ---- what an event waits for ---- */

static void wait_until(gint64 *split, const RsModel *m, guint32 event, gint64 until)
{
    if (event == RS_NONE)
        return;
    const RsSig *sig = rs_model_sig(m, event);
    gboolean starts = sig->klass == RS_CLASS_COLL_START || sig->klass == RS_CLASS_SEND_START ||
                      sig->klass == RS_CLASS_RECV_START;
    if (sig->kind == RS_KIND_CALL && starts && m->events.link[event] != RS_NONE)
        event = m->events.link[event]; /* the call that completed it did the waiting */
    split[event] = MAX(split[event], MIN(until, m->events.end_ns[event]));
}

/* One that is in it still may wait for somebody who never came. */
static gint64 waited_until(const RsModel *m, const RsInstance *in, guint32 event)
{
    if (event == RS_NONE || in->complete || !(m->events.flags[event] & RS_FLAG_OPEN))
        return in->last_arrival_ns;
    gint64 gathered = rs_ending_gathered_ns(m, in);
    return gathered < 0 ? in->last_arrival_ns : gathered;
}

static void find_splits(RsRows *r, gint64 *split)
{
    const RsModel *m = r->model;
    memcpy(split, m->events.start_ns, m->events.n * sizeof *split);
    for (guint32 i = 0; i < m->instances->len; i++) {
        const RsInstance *in = &g_array_index(m->instances, RsInstance, i);
        for (guint32 k = 0; k < g_array_index(m->comms, RsComm, in->comm).n_members; k++) {
            guint32 e = g_array_index(m->member_events, guint32, in->first_member + k);
            if (e != RS_NONE)
                r->instance_of[e] = i;
            if (in->timed)
                wait_until(split, m, e, waited_until(m, in, e));
        }
    }
    for (guint32 i = 0; i < m->messages->len; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (msg->timed)
            wait_until(split, m, msg->recv, msg->both_ns);
    }
}

/* The call that put work on a device, and the one that completed a nonblocking collective, belong
 * to its instance too: whoever selects them wants to know of it. */
static void spread_instances(RsRows *r)
{
    const RsModel *m = r->model;
    for (guint32 e = 0; e < m->events.n; e++) {
        guint32 other = m->events.link[e];
        if (r->instance_of[e] != RS_NONE && other != RS_NONE && r->instance_of[other] == RS_NONE)
            r->instance_of[other] = r->instance_of[e];
    }
}

/* ---- slots ---- */

static void number_slots(RsRows *r, const guint32 *row_of)
{
    guint32 n = r->model->events.n, next = 0, block = 0;
    for (guint32 e = 0; e < n; e++)
        if (row_of[e] != RS_NONE)
            g_array_index(r->rows, RsRow, row_of[e]).n++;
    for (guint32 i = 0; i < r->rows->len; i++) {
        RsRow *row = &g_array_index(r->rows, RsRow, i);
        row->first = next;
        row->block = block;
        next += row->n;
        block += row->n / RS_ROWS_BLOCK + 1;
        row->n = 0; /* counted again while filling */
    }
    r->n_slots = next;
    r->sums_ns = g_new0(gint64, ((gsize)block + 1) * RS_MEANS_COUNT);
}

static void fill_slots(RsRows *r, const guint32 *row_of, const gint64 *split)
{
    const RsModel *m = r->model;
    for (guint32 e = 0; e < m->events.n; e++) {
        r->slot_of[e] = RS_NONE;
        if (row_of[e] == RS_NONE)
            continue;
        RsRow *row = &g_array_index(r->rows, RsRow, row_of[e]);
        guint32 slot = r->slot_of[e] = row->first + row->n++;
        r->event[slot] = e;
        r->start_ns[slot] = m->events.start_ns[e];
        r->end_ns[slot] = rs_lanes_end_ns(m, e);
        r->split_ns[slot] = split[e];
        r->meaning[slot] = (guint8)rs_meaning_of(m, e);
    }
}

static void add_slot(const RsRows *r, guint32 slot, gint64 *sums)
{
    gint64 wait = r->split_ns[slot] - r->start_ns[slot];
    sums[RS_MEANS_WAIT] += wait;
    gint64 rest = r->end_ns[slot] - r->split_ns[slot];
    sums[r->meaning[slot]] += wait + rest > 0 ? rest : 1;
}

static void sum_blocks(RsRows *r)
{
    for (guint32 i = 0; i < r->rows->len; i++) {
        const RsRow *row = rs_rows_row(r, i);
        gint64 sums[RS_MEANS_COUNT] = {0};
        for (guint32 k = 0; k <= row->n; k++) {
            if (k % RS_ROWS_BLOCK == 0)
                memcpy(r->sums_ns + (gsize)(row->block + k / RS_ROWS_BLOCK) * RS_MEANS_COUNT, sums,
                       sizeof sums);
            if (k < row->n)
                add_slot(r, row->first + k, sums);
        }
    }
}

static void allocate(RsRows *r, guint32 n)
{
    r->event = g_new(guint32, (gsize)n + 1);
    r->start_ns = g_new(gint64, (gsize)n + 1);
    r->end_ns = g_new(gint64, (gsize)n + 1);
    r->split_ns = g_new(gint64, (gsize)n + 1);
    r->meaning = g_new(guint8, (gsize)n + 1);
    r->slot_of = g_new(guint32, (gsize)n + 1);
    r->instance_of = g_new(guint32, (gsize)n + 1);
    memset(r->instance_of, 0xff, ((gsize)n + 1) * sizeof *r->instance_of);
}

void rs_rows_init(RsRows *r, const RsModel *m)
{
    *r = (RsRows){.model = m, .rows = g_array_new(FALSE, TRUE, sizeof(RsRow))};
    allocate(r, m->events.n);
    r->track_rows = g_new0(guint32, m->tracks->len + 1);
    g_autofree guint32 *row_of = g_new0(guint32, (gsize)m->events.n + 1);
    g_autofree gint64 *split = g_new0(gint64, (gsize)m->events.n + 1);
    RsLanes lanes;
    rs_lanes_init(&lanes, m);
    for (guint32 t = 0; t < m->tracks->len; t++) {
        r->track_rows[t] = r->rows->len;
        lay_track(r, &lanes, t, row_of);
    }
    r->track_rows[m->tracks->len] = r->rows->len;
    rs_lanes_release(&lanes);
    find_splits(r, split);
    spread_instances(r);
    number_slots(r, row_of);
    fill_slots(r, row_of, split);
    sum_blocks(r);
}

void rs_rows_release(RsRows *r)
{
    g_clear_pointer(&r->rows, g_array_unref);
    gpointer all[] = {r->track_rows, r->event,   r->start_ns,    r->end_ns, r->split_ns,
                      r->meaning,    r->slot_of, r->instance_of, r->sums_ns};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        g_free(all[i]);
    *r = (RsRows){0};
}

/* ---- questions ---- */

guint32 rs_rows_row_of(const RsRows *r, guint32 slot)
{
    guint32 low = 0, high = r->rows->len;
    while (high - low > 1) {
        guint32 middle = low + (high - low) / 2;
        if (rs_rows_row(r, middle)->first <= slot)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* First slot in [low, high) whose value is at least `time_ns`; high if none. */
static guint32 lower_bound(const gint64 *values, guint32 low, guint32 high, gint64 time_ns)
{
    while (low < high) {
        guint32 middle = low + (high - low) / 2;
        if (values[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

guint32 rs_rows_seek(const RsRows *r, const RsRow *row, guint32 from, gint64 time_ns)
{
    guint32 end = row->first + row->n, low = MAX(from, row->first), step = 1;
    while (low + step < end && r->start_ns[low + step] < time_ns) {
        low += step;
        step *= 2;
    }
    return lower_bound(r->start_ns, MIN(low, end), MIN(low + step, end), time_ns);
}

guint32 rs_rows_first_visible(const RsRows *r, const RsRow *row, gint64 time_ns)
{
    guint32 end = row->first + row->n;
    guint32 slot = lower_bound(r->end_ns, row->first, end, time_ns);
    while (slot < end && r->end_ns[slot] == time_ns && r->start_ns[slot] < time_ns)
        slot++; /* at most one: the others that end there are points */
    return slot;
}

void rs_rows_sum(const RsRows *r, const RsRow *row, guint32 first, guint32 last,
                 gint64 sums_ns[RS_MEANS_COUNT])
{
    memset(sums_ns, 0, RS_MEANS_COUNT * sizeof *sums_ns);
    guint32 a = (first - row->first + RS_ROWS_BLOCK - 1) / RS_ROWS_BLOCK;
    guint32 b = (last - row->first) / RS_ROWS_BLOCK;
    if (a >= b) {
        for (guint32 s = first; s < last; s++)
            add_slot(r, s, sums_ns);
        return;
    }
    const gint64 *from = r->sums_ns + (gsize)(row->block + a) * RS_MEANS_COUNT;
    const gint64 *to = r->sums_ns + (gsize)(row->block + b) * RS_MEANS_COUNT;
    for (guint i = 0; i < RS_MEANS_COUNT; i++)
        sums_ns[i] = to[i] - from[i];
    for (guint32 s = first; s < row->first + a * RS_ROWS_BLOCK; s++)
        add_slot(r, s, sums_ns);
    for (guint32 s = row->first + b * RS_ROWS_BLOCK; s < last; s++)
        add_slot(r, s, sums_ns);
}
