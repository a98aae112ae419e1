/* SPDX-License-Identifier: Apache-2.0 */
/* capture-events.c - 48-byte slots to events of the model. */
#include "capture-internal.h"

#include <string.h>

#define SLOT sizeof(struct rs_event)

/* What a device did is no part of what the thread did that heard of it. */
guint32 rs_capture_track(RsCapture *c, RsCaptureThread *t, guint32 number, gboolean device)
{
    guint32 *track = device ? &t->device_track : &t->track;
    if (*track == RS_NONE) {
        const gchar *name = rs_builder_text(c->b, t->name);
        g_autofree gchar *fallback =
            device        ? g_strdup_printf("device (thread %" G_GUINT64_FORMAT ")", t->tid)
            : number == 0 ? g_strdup("main")
                          : g_strdup_printf("thread %" G_GUINT64_FORMAT, t->tid);
        *track = rs_builder_add_track(c->b, c->process, name[0] && !device ? name : fallback,
                                      t->tid, device);
    }
    return *track;
}

static guint16 flags_of(guint16 recorded, guint16 numbered)
{
    guint16 f = numbered;
    f |= recorded & RS_EVENT_FAILED ? RS_FLAG_FAILED : 0;
    f |= recorded & RS_EVENT_OPEN ? RS_FLAG_OPEN : 0;
    f |= recorded & RS_EVENT_CAPTURED ? RS_FLAG_CAPTURED : 0;
    f |= recorded & RS_EVENT_IN_PLACE ? RS_FLAG_IN_PLACE : 0;
    return f;
}

static guint32 add_call(RsCapture *c, guint32 track, const struct rs_event *e,
                        const struct rs_ext_second *second, guint16 more_flags)
{
    guint32 sig = rs_capture_call_sig(c, e, second);
    guint8 klass = rs_builder_peek_sig(c->b, sig)->klass;
    gboolean numbered = (klass == RS_CLASS_COLL || klass == RS_CLASS_COLL_START) &&
                        !(e->flags & RS_EVENT_NO_SEQ) && e->comm != 0;
    guint16 flags = flags_of(e->flags, numbered ? RS_FLAG_SEQ : 0) | more_flags;
    return rs_builder_event(c->b, track, sig, (gint64)e->start, (gint64)e->end, flags, 0, e->seq);
}

guint32 rs_capture_add_call(RsCapture *c, guint32 track, const struct rs_event *e,
                            guint16 more_flags)
{
    return add_call(c, track, e, NULL, more_flags);
}

static void add_fields(RsCapture *c, guint32 event, const struct rs_ext_fields *x)
{
    RsArg arg = {.event = event};
    for (guint k = 0; k < MIN(x->n, RS_EXT_FIELDS_MAX); k++) {
        arg.name = rs_capture_string(c, x->field[k].name);
        arg.text = rs_capture_string(c, x->field[k].text);
        arg.schema = rs_capture_string(c, x->schema);
        arg.value = x->field[k].value;
        arg.type = CLAMP(x->type[k], 1, 4);
        rs_builder_arg(c->b, &arg);
    }
}

/* A payload that is one number, and the fields of those that have a layout. */
static void add_args(RsCapture *c, guint32 event, const struct rs_range_event *e, const guint8 *ext,
                     guint n)
{
    RsArg arg = {.event = event, .value = e->payload, .type = e->payload_type};
    if (e->payload_type >= 1 && e->payload_type <= 3 && e->op != RS_OP_IO) {
        arg.name = rs_builder_string(c->b, "payload");
        rs_builder_arg(c->b, &arg);
    }
    for (guint i = 0; i < n; i++) {
        struct rs_ext_fields x;
        memcpy(&x, ext + i * SLOT, SLOT);
        if (x.op == RS_EXT_FIELDS)
            add_fields(c, event, &x);
    }
}

/* Ranges, spans, marks, kernels, I/O: the same record. */
static void add_range(RsCapture *c, guint32 track, const struct rs_range_event *e, guint16 more,
                      const guint8 *ext, guint n_ext)
{
    static const guint8 kinds[] = {
        [RS_OP_RANGE] = RS_KIND_RANGE,   [RS_OP_SPAN] = RS_KIND_SPAN, [RS_OP_MARK] = RS_KIND_MARK,
        [RS_OP_KERNEL] = RS_KIND_DEVICE, [RS_OP_IO] = RS_KIND_IO,
    };
    RsSig s = rs_builder_sig_init(c->b, kinds[e->op], NULL);
    s.name = rs_capture_string(c, e->name);
    s.domain = rs_capture_string(c, e->domain);
    s.category = rs_capture_string(c, e->category);
    s.color = e->color;
    s.api = e->op == RS_OP_IO ? RS_API_IO : e->op == RS_OP_KERNEL ? RS_API_CUDA : RS_API_NVTX;
    if (e->op == RS_OP_IO)
        s.bytes = e->payload;
    guint32 sig = rs_builder_sig(c->b, &s);
    guint32 event = rs_builder_event(c->b, track, sig, (gint64)e->start, (gint64)e->end,
                                     flags_of(e->flags, 0) | more, e->depth, 0);
    add_args(c, event, e, ext, n_ext);
}

static void add_counter(RsCapture *c, guint32 track, const struct rs_counter_event *e)
{
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_COUNTER, NULL);
    s.name = rs_capture_string(c, e->name);
    s.category = rs_capture_string(c, e->unit);
    gfloat value = (gfloat)e->value;
    guint32 bits;
    memcpy(&bits, &value, sizeof bits);
    rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), (gint64)e->start, (gint64)e->start, 0,
                     0, bits);
}

static void add_hole(RsCapture *c, guint32 track, const struct rs_event *e)
{
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_HOLE,
                                  e->flags & RS_EVENT_LIMIT ? RS_HOLE_LIMIT : "events lost");
    s.count = e->count;
    if (e->flags & RS_EVENT_LIMIT)
        c->left_out += e->count;
    else
        c->holes += e->count;
    rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), (gint64)e->start, (gint64)e->end, 0, 0,
                     0);
}

static const struct rs_ext_second *find_second(const guint8 *ext, guint n,
                                               struct rs_ext_second *ret)
{
    for (guint i = 0; i < n; i++) {
        memcpy(ret, ext + i * SLOT, SLOT);
        if (ret->op == RS_EXT_SECOND)
            return ret;
    }
    return NULL;
}

static guint64 second_bytes(const RsCapture *c, const struct rs_ext_second *x)
{
    guint64 r;
    return __builtin_mul_overflow(x->count, rs_capture_type(c, x->dtype).size_bytes, &r)
               ? G_MAXUINT64
               : r;
}

static void add_done(RsCapture *c, guint32 event, const struct rs_ext_done *x)
{
    for (guint i = 0; i < MIN(x->n, RS_EXT_DONE_MAX); i++)
        rs_builder_done(c->b, event, x->done[i].request, x->done[i].source, x->done[i].tag);
}

static void add_extensions(RsCapture *c, guint32 event, const guint8 *ext, guint n)
{
    for (guint i = 0; i < n; i++) {
        union {
            struct rs_ext_request request;
            struct rs_ext_status status;
            struct rs_ext_done done;
            struct rs_ext_second second;
            struct rs_ext_fields fields;
        } x;
        memcpy(&x, ext + i * SLOT, SLOT);
        switch (x.request.op) {
        case RS_EXT_REQUEST:
            rs_builder_request(c->b, event, x.request.request);
            break;
        case RS_EXT_STATUS:
            rs_builder_status(c->b, event, x.status.source, x.status.tag, x.status.bytes);
            break;
        case RS_EXT_DONE:
            add_done(c, event, &x.done);
            break;
        case RS_EXT_SECOND:
            rs_builder_second(c->b, event, x.second.peer, x.second.tag, second_bytes(c, &x.second));
            break;
        case RS_EXT_FIELDS:
            add_fields(c, event, &x.fields);
            break;
        default: /* of no use to the model, or of a newer minor version */
            break;
        }
    }
}

/* A call or range that an OPEN block named has ended after all. */
static void close_open(RsCaptureThread *t, const struct rs_event *e)
{
    if (!t->has_open)
        return;
    if (t->open.op == e->op && t->open.start == e->start)
        t->open.op = 0;
    for (guint i = 0; e->op == RS_OP_RANGE && i < RS_OPEN_RANGES; i++)
        if (t->open.range[i].start == e->start)
            t->open.range[i].start = 0;
}

static gboolean is_activity(guint16 op)
{
    return op == RS_OP_KERNEL || (op >= RS_OP_COPY && op <= RS_OP_HOST_CALL);
}

static void add_slot(RsCapture *c, RsCaptureThread *t, guint32 number, guint16 block_flags,
                     const guint8 *p, guint n_ext)
{
    union {
        struct rs_event event;
        struct rs_range_event range;
        struct rs_counter_event counter;
    } u;
    memcpy(&u, p, SLOT);
    if (u.event.end < u.event.start) {
        c->bad_times++;
        u.event.end = u.event.start;
    }
    c->last_tick = MAX(c->last_tick, u.event.end);
    close_open(t, &u.event);
    guint16 more = block_flags & RS_BLOCK_RECOVERED ? RS_FLAG_RECOVERED : 0;
    if (is_activity(u.event.op) && rs_capture_keep_activity(c, &u.range, p + SLOT, n_ext, more))
        return;
    guint32 track = rs_capture_track(c, t, number, (u.event.flags & RS_EVENT_DEVICE) != 0);
    switch (u.event.op) {
    case RS_OP_HOLE:
        add_hole(c, track, &u.event);
        return;
    case RS_OP_RANGE:
    case RS_OP_SPAN:
    case RS_OP_MARK:
    case RS_OP_KERNEL:
    case RS_OP_IO:
        add_range(c, track, &u.range, more, p + SLOT, n_ext);
        return;
    case RS_OP_COUNTER:
        add_counter(c, track, &u.counter);
        return;
    default:
        break;
    }
    if (u.event.op < RS_OP_FIRST_API) {
        c->unknown_ops++;
        return;
    }
    struct rs_ext_second second;
    guint32 event = add_call(c, track, &u.event, find_second(p + SLOT, n_ext, &second), more);
    add_extensions(c, event, p + SLOT, n_ext);
    rs_capture_keep_call(c, t, &u.event, p + SLOT, n_ext, event, more);
}

static guint16 op_at(const guint8 *p)
{
    guint16 op;
    memcpy(&op, p, sizeof op);
    return op;
}

void rs_capture_read_events(RsCapture *c, const struct rs_block *head, const guint8 *payload)
{
    RsCaptureThread *t = rs_capture_thread(c, head->thread);
    t->dropped = MAX(t->dropped, head->dropped);
    guint n = head->payload_bytes / SLOT;
    for (guint i = 0; i < n;) {
        const guint8 *p = payload + i * SLOT;
        if (op_at(p) >= RS_OP_EXT) { /* its event stood in a block that was lost */
            c->stray_slots++;
            i++;
            continue;
        }
        guint ext = 0;
        while (i + 1 + ext < n && op_at(p + (1 + ext) * SLOT) >= RS_OP_EXT)
            ext++;
        add_slot(c, t, head->thread, (guint16)head->flags, p, ext);
        i += 1 + ext;
    }
}

/* ---- what a thread was in when the capture ended ---- */

void rs_capture_read_open(RsCapture *c, const struct rs_block *head, const guint8 *payload)
{
    RsCaptureThread *t = rs_capture_thread(c, head->thread);
    if (head->payload_bytes < sizeof t->open)
        return;
    memcpy(&t->open, payload, sizeof t->open);
    t->has_open = TRUE;
    c->last_tick = MAX(c->last_tick, head->last_tick);
}

static void add_open_call(RsCapture *c, guint32 track, const struct rs_open *o)
{
    struct rs_event e = {.op = (guint16)o->op, .flags = RS_EVENT_OPEN, .peer = o->peer};
    e.start = o->start;
    e.end = MAX(c->last_tick, o->start);
    e.count = o->count;
    e.comm = o->comm;
    e.dtype = o->dtype;
    e.seq = o->seq;
    if (o->op >= RS_OP_FIRST_API && o->op < RS_OP_EXT)
        add_call(c, track, &e, NULL, 0);
}

static void add_open_ranges(RsCapture *c, guint32 track, const struct rs_open *o)
{
    for (guint i = 0; i < MIN(o->range_depth, RS_OPEN_RANGES); i++) {
        if (o->range[i].start == 0)
            continue;
        struct rs_range_event e = {.op = RS_OP_RANGE, .flags = RS_EVENT_OPEN};
        e.name = o->range[i].name;
        e.domain = o->range[i].domain;
        e.start = o->range[i].start;
        e.end = MAX(c->last_tick, e.start);
        e.depth = (guint16)i;
        add_range(c, track, &e, 0, NULL, 0);
    }
}

void rs_capture_mark_end(RsCapture *c, guint64 tick)
{
    tick = MAX(tick, c->last_tick);
    static const gchar *const names[RS_ENDING_COUNT] = {
        [RS_ENDING_EXITED] = "exited",
        [RS_ENDING_ABORTED] = "aborted",
        [RS_ENDING_KILLED] = "killed",
        [RS_ENDING_RUNNING] = "alive",
    };
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_MARK, names[c->p->ending]);
    s.domain = rs_builder_string(c->b, "ringscope");
    guint32 track = rs_capture_track(c, rs_capture_thread(c, 0), 0, FALSE);
    rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), (gint64)tick, (gint64)tick, 0, 0, 0);
}

void rs_capture_add_open(RsCapture *c)
{
    g_autoptr(GList) numbers = g_hash_table_get_keys(c->threads);
    for (GList *l = numbers; l; l = l->next) {
        RsCaptureThread *t = g_hash_table_lookup(c->threads, l->data);
        if (!t->has_open || (t->open.op == 0 && t->open.range_depth == 0))
            continue;
        guint32 track = rs_capture_track(c, t, GPOINTER_TO_UINT(l->data), FALSE);
        add_open_ranges(c, track, &t->open);
        if (t->open.op)
            add_open_call(c, track, &t->open);
    }
}
