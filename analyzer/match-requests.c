/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match-requests.c - which completion call finished which nonblocking start, and which device
 * interval belongs to which call: RsEvents.link.
 *
 * A request is a raw handle; its value is used again. Within a process, starts and completions are
 * taken in order of their ends, and a completion finishes the latest start of that value still
 * open: an old one that was freed unseen never takes the place of a new one. What was open when
 * capture was switched off may have been completed, and its value used again, unseen: it stays
 * open.
 */
#include "key-hash.h"
#include "model-internal.h"

typedef struct {
    gint64 end;
    guint32 event, extra;
} Step;

static gint compare_steps(gconstpointer a, gconstpointer c)
{
    const Step *x = a, *y = c;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->extra < y->extra ? -1 : x->extra > y->extra;
}

#define OFF G_MAXUINT32 /* Step.extra: capture was off until then */

typedef GHashTable OpenRequests; /* request -> GArray of guint32 events */

static void open_request(OpenRequests *open, guint64 request, guint32 event)
{
    GArray *stack = g_hash_table_lookup(open, &request);
    if (!stack) {
        stack = g_array_new(FALSE, FALSE, sizeof(guint32));
        g_hash_table_insert(open, g_memdup2(&request, sizeof request), stack);
    }
    g_array_append_val(stack, event);
}

static guint32 close_request(OpenRequests *open, guint64 request)
{
    GArray *stack = g_hash_table_lookup(open, &request);
    if (!stack || stack->len == 0)
        return RS_NONE;
    guint32 event = g_array_index(stack, guint32, stack->len - 1);
    g_array_set_size(stack, stack->len - 1);
    return event;
}

static void free_stack(gpointer data)
{
    g_array_unref(data);
}

static void link_process(RsBuilder *b, GArray *steps)
{
    g_array_sort(steps, compare_steps);
    g_autoptr(GHashTable) open =
        g_hash_table_new_full(rs_key_hash, g_int64_equal, g_free, free_stack);
    for (guint i = 0; i < steps->len; i++) {
        const Step *s = &g_array_index(steps, Step, i);
        if (s->extra == OFF) {
            g_hash_table_remove_all(open);
            continue;
        }
        RsExtra *x = &g_array_index(b->extras, RsExtra, s->extra);
        if (x->kind == RS_EXTRA_REQUEST) {
            open_request(open, x->value, s->event);
            continue;
        }
        guint32 start = close_request(open, x->value);
        if (start == RS_NONE)
            continue;
        b->model->events.link[start] = s->event;
        /* What a receive really got stands with its start from here on. */
        if (x->source != RS_PEER_UNKNOWN) {
            RsExtra status = {start, RS_EXTRA_STATUS, x->source, x->tag, G_MAXUINT64};
            g_array_append_val(b->extras, status);
        }
    }
}

void rs_requests_link(RsBuilder *b)
{
    RsModel *m = b->model;
    GPtrArray *by_process = g_ptr_array_new_with_free_func(free_stack);
    for (guint i = 0; i < b->processes->len; i++)
        g_ptr_array_add(by_process, g_array_new(FALSE, FALSE, sizeof(Step)));
    for (guint i = 0; i < b->extras->len; i++) {
        const RsExtra *x = &g_array_index(b->extras, RsExtra, i);
        if (x->kind != RS_EXTRA_REQUEST && x->kind != RS_EXTRA_DONE)
            continue;
        Step s = {m->events.end_ns[x->event], x->event, i};
        guint32 process = b->process_of_track[rs_model_track_of(m, x->event)];
        g_array_append_val((GArray *)g_ptr_array_index(by_process, process), s);
    }
    for (guint i = 0; i < m->offs->len; i++) {
        const RsOffTime *off = &g_array_index(m->offs, RsOffTime, i);
        Step s = {off->end_ns, off->event, OFF};
        guint32 process = b->process_of_track[rs_model_track_of(m, off->event)];
        g_array_append_val((GArray *)g_ptr_array_index(by_process, process), s);
    }
    for (guint i = 0; i < by_process->len; i++)
        link_process(b, g_ptr_array_index(by_process, i));
    g_ptr_array_unref(by_process);
}

/* ---- device intervals ---- */

typedef struct {
    guint32 process, comm;
    guint16 op, member;
    gint32 peer;
    guint32 seq; /* collectives: their number; messages: 0, they go by order */
    guint32 device;
    guint32 event;
} DeviceKey;

static gint compare_devices(gconstpointer a, gconstpointer c)
{
    const DeviceKey *x = a, *y = c;
#define BY(field)                                                                                  \
    if (x->field != y->field)                                                                      \
    return x->field < y->field ? -1 : 1
    BY(process);
    BY(comm);
    BY(member);
    BY(op);
    BY(peer);
    BY(seq);
    BY(device);
    BY(event);
#undef BY
    return 0;
}

static gboolean same_operation(const DeviceKey *x, const DeviceKey *y)
{
    return x->process == y->process && x->comm == y->comm && x->member == y->member &&
           x->op == y->op && x->peer == y->peer && x->seq == y->seq;
}

static GArray *collect_device_keys(RsBuilder *b)
{
    RsModel *m = b->model;
    GArray *keys = g_array_new(FALSE, FALSE, sizeof(DeviceKey));
    for (guint t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++) {
            const RsSig *s = rs_model_sig(m, i);
            if (s->api != RS_API_NCCL || s->comm == RS_NONE)
                continue;
            gboolean numbered = m->events.flags[i] & RS_FLAG_SEQ;
            DeviceKey k = {.process = b->process_of_track[t], .comm = s->comm, .op = s->op};
            k.member = s->member;
            k.peer = s->peer;
            k.seq = numbered ? m->events.seq[i] : 0;
            k.device = s->kind == RS_KIND_DEVICE;
            k.event = i;
            g_array_append_val(keys, k);
        }
    }
    g_array_sort(keys, compare_devices);
    return keys;
}

/* Within a group of the same operation all calls stand before all device intervals, in order. */
static void link_group(RsModel *m, const DeviceKey *keys, guint n)
{
    guint calls = 0;
    while (calls < n && !keys[calls].device)
        calls++;
    for (guint i = 0; i < calls && calls + i < n; i++)
        if (m->events.link[keys[calls + i].event] == RS_NONE)
            m->events.link[keys[calls + i].event] = keys[i].event;
}

void rs_devices_link(RsBuilder *b)
{
    g_autoptr(GArray) keys = collect_device_keys(b);
    const DeviceKey *k = (const DeviceKey *)(void *)keys->data;
    for (guint from = 0, to; from < keys->len; from = to) {
        for (to = from + 1; to < keys->len && same_operation(&k[from], &k[to]); to++)
            ;
        link_group(b->model, k + from, to - from);
    }
}
