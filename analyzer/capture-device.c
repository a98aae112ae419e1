/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture-device.c - what CUPTI told of devices, placed on tracks of their streams and joined to
 * the calls that caused it.
 *
 * Records come in any order, so they are kept until the capture is read. A host's call of the CUDA
 * runtime or driver shares its correlation with what it made a device do; it belongs to the NCCL
 * call on its thread in whose time it lies, and so does NCCL's kernel. Calls of one group are
 * launched together at the group's end: of these a kernel belongs to those of its device and
 * stream, where calls outside of groups, or what is left over, tell which of NCCL's streams is
 * which of CUPTI's. From its first kernel's start to its last one's end is the operation's device
 * interval, unless the profiler plug-in gave one for its communicator.
 */
#include "capture-internal.h"
#include "kernel-names.h"

#include <string.h>

#define ROUNDS_MAX      32 /* a bound on what a damaged capture costs */
#define DEFAULT_STREAMS 2  /* cudaStreamLegacy is 1, cudaStreamPerThread 2 */

typedef struct {
    struct rs_range_event e;
    struct rs_ext_device x;
    guint16 more_flags; /* RsFlag */
} Activity;

/* A call by which what it contains is explained: NCCL's operations, the runtime's waits. */
typedef struct {
    guint64 tid, stream; /* stream: the program's handle */
    gint32 device;       /* of its communicator, -1 unknown */
    guint32 event;       /* builder's */
    struct rs_event e;
    /* of an operation */
    guint64 first, last; /* ticks of its kernels; last 0 none */
    guint32 track;
    guint16 more_flags;
} Caller;

/* A kernel of NCCL's and the calls in whose time it was launched: [from, to) of the sorted ones. */
typedef struct {
    const Activity *kernel;
    guint from, to;
} Launch;

struct RsCaptureDevices {
    GArray *activities;         /* Activity */
    GArray *operations, *waits; /* Caller, later by (tid, start) */
    GHashTable *plugin_comms;   /* ids of communicators that the profiler plug-in told of */

    GHashTable *calls;   /* correlation -> Activity: the outermost call of it */
    GHashTable *events;  /* correlation -> the builder's event of that call, plus 1 */
    GHashTable *tracks;  /* StreamKey -> the builder's track */
    GHashTable *named;   /* the tracks' names */
    GHashTable *streams; /* StreamKey -> the program's handle */
    GHashTable *taken;   /* the handles among these */
    GHashTable *devices; /* context -> device, plus 1 */
    GArray *launches;    /* Launch */
};

typedef struct {
    guint32 device, context, stream;
} StreamKey;

static guint hash_stream(gconstpointer key)
{
    const StreamKey *k = key;
    return (k->device * 31 + k->context) * 31 + k->stream;
}

static gboolean equal_streams(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(StreamKey)) == 0;
}

static RsCaptureDevices *devices_of(RsCapture *c)
{
    RsCaptureDevices *d = c->devices;
    if (d)
        return d;
    d = c->devices = g_new0(RsCaptureDevices, 1);
    d->activities = g_array_new(FALSE, FALSE, sizeof(Activity));
    d->operations = g_array_new(FALSE, FALSE, sizeof(Caller));
    d->waits = g_array_new(FALSE, FALSE, sizeof(Caller));
    d->launches = g_array_new(FALSE, FALSE, sizeof(Launch));
    d->plugin_comms = g_hash_table_new(g_direct_hash, g_direct_equal);
    d->calls = g_hash_table_new(g_direct_hash, g_direct_equal);
    d->events = g_hash_table_new(g_direct_hash, g_direct_equal);
    d->tracks = g_hash_table_new_full(hash_stream, equal_streams, g_free, NULL);
    d->named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    d->streams = g_hash_table_new_full(hash_stream, equal_streams, g_free, g_free);
    d->taken = g_hash_table_new(g_int64_hash, g_int64_equal);
    d->devices = g_hash_table_new(g_direct_hash, g_direct_equal);
    return d;
}

void rs_capture_devices_free(RsCaptureDevices *d)
{
    if (!d)
        return;
    GHashTable *tables[] = {d->plugin_comms, d->calls, d->events,  d->tracks,
                            d->named,        d->taken, d->streams, d->devices};
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        g_hash_table_unref(tables[i]);
    g_array_unref(d->activities);
    g_array_unref(d->operations);
    g_array_unref(d->waits);
    g_array_unref(d->launches);
    g_free(d);
}

/* ---- what is kept while the capture is read ---- */

gboolean rs_capture_keep_activity(RsCapture *c, const struct rs_range_event *e, const guint8 *ext,
                                  guint n_ext, guint16 more_flags)
{
    Activity a = {.e = *e, .more_flags = more_flags};
    for (guint i = 0; i < n_ext; i++) {
        memcpy(&a.x, ext + i * sizeof a.x, sizeof a.x);
        if (a.x.op == RS_EXT_DEVICE) {
            g_array_append_val(devices_of(c)->activities, a);
            return TRUE;
        }
    }
    return FALSE;
}

void rs_capture_keep_call(RsCapture *c, const RsCaptureThread *t, const struct rs_event *e,
                          const guint8 *ext, guint n_ext, guint32 event, guint16 more_flags)
{
    const RsCaptureOp *op = g_hash_table_lookup(c->ops, GUINT_TO_POINTER(e->op));
    Caller call = {.tid = t->tid, .device = -1, .event = event, .e = *e, .more_flags = more_flags};
    if (!op || (op->api != RS_API_NCCL && op->api != RS_API_CUDA))
        return;
    if (op->api == RS_API_CUDA) {
        g_array_append_val(devices_of(c)->waits, call);
        return;
    }
    if (e->flags & RS_EVENT_DEVICE) {
        g_hash_table_add(devices_of(c)->plugin_comms, GUINT_TO_POINTER(e->comm));
        return;
    }
    const RsCaptureComm *comm = rs_capture_comm(c, e->comm);
    for (guint i = 0; i < n_ext; i++) {
        struct rs_ext_stream x;
        memcpy(&x, ext + i * sizeof x, sizeof x);
        if (x.op != RS_EXT_STREAM || e->count == 0 || (e->flags & RS_EVENT_FAILED))
            continue;
        call.stream = x.stream;
        call.device = comm ? comm->device : -1;
        g_array_append_val(devices_of(c)->operations, call);
    }
}

/* ---- callers ---- */

static gint compare_callers(gconstpointer a, gconstpointer b)
{
    const Caller *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->e.start < y->e.start ? -1 : x->e.start > y->e.start;
}

/* The calls that hold the activity on its thread: the last that began before it, and those before
 * that as long as they hold it too. Its middle counts: its clock may differ a little from ours. */
static guint callers_of(const GArray *callers, const Activity *call, guint *ret_to)
{
    const Caller *c = (const Caller *)(void *)callers->data;
    guint low = 0, high = callers->len;
    guint64 at = call->e.start + (call->e.end - call->e.start) / 2;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        const Caller *m = &c[middle];
        if (m->tid < call->x.thread || (m->tid == call->x.thread && m->e.start <= at))
            low = middle + 1;
        else
            high = middle;
    }
    *ret_to = low;
    while (low > 0 && c[low - 1].tid == call->x.thread && c[low - 1].e.end >= at)
        low--;
    return low;
}

/* The driver's call inside the runtime's has the same correlation: the outer one counts. */
static void index_calls(RsCaptureDevices *d)
{
    for (guint i = 0; i < d->activities->len; i++) {
        Activity *a = &g_array_index(d->activities, Activity, i);
        if (a->e.op != RS_OP_HOST_CALL && a->x.device != G_MAXUINT32)
            g_hash_table_insert(d->devices, GUINT_TO_POINTER(a->x.context),
                                GUINT_TO_POINTER(a->x.device + 1));
        if (a->e.op != RS_OP_HOST_CALL || a->x.correlation == 0)
            continue;
        gpointer key = GUINT_TO_POINTER(a->x.correlation);
        const Activity *known = g_hash_table_lookup(d->calls, key);
        if (!known || a->e.end - a->e.start > known->e.end - known->e.start)
            g_hash_table_insert(d->calls, key, a);
    }
}

static const Activity *call_of(const RsCaptureDevices *d, const Activity *a)
{
    return a->x.correlation ? g_hash_table_lookup(d->calls, GUINT_TO_POINTER(a->x.correlation))
                            : NULL;
}

/* ---- NCCL's kernels ---- */

static gboolean is_nccl_kernel(RsCapture *c, const Activity *a)
{
    const gchar *name = rs_builder_text(c->b, rs_capture_string(c, a->e.name));
    const gchar *nccl = a->e.op == RS_OP_KERNEL ? strstr(name, "nccl") : NULL;
    return nccl && strstr(nccl, "Kernel");
}

static void collect_launches(RsCapture *c, RsCaptureDevices *d)
{
    for (guint i = 0; i < d->activities->len; i++) {
        const Activity *a = &g_array_index(d->activities, Activity, i);
        const Activity *call = is_nccl_kernel(c, a) ? call_of(d, a) : NULL;
        if (!call || call->x.thread == 0)
            continue;
        Launch l = {.kernel = a};
        l.from = callers_of(d->operations, call, &l.to);
        if (l.from < l.to)
            g_array_append_val(d->launches, l);
    }
}

static StreamKey key_of(const Activity *a)
{
    return (StreamKey){a->x.device, a->x.context, a->x.stream};
}

/* The default streams' handles are the same in each context. */
static gboolean is_taken(const RsCaptureDevices *d, guint64 handle)
{
    return handle > DEFAULT_STREAMS && g_hash_table_contains(d->taken, &handle);
}

/* Whether the kernel may be of this call; `left_over`: streams that others have don't count. */
static gboolean may_be(const RsCaptureDevices *d, const Launch *l, const Caller *o,
                       gboolean left_over)
{
    StreamKey key = key_of(l->kernel);
    const guint64 *handle = g_hash_table_lookup(d->streams, &key);
    if (o->device >= 0 && (guint32)o->device != key.device)
        return FALSE;
    if (handle)
        return *handle == o->stream;
    return !left_over || !is_taken(d, o->stream);
}

/* Learns the stream of a launch whose calls are all on one. Returns whether it is new. */
static gboolean learn_stream(RsCaptureDevices *d, const Launch *l, gboolean left_over)
{
    StreamKey key = key_of(l->kernel);
    const Caller *first = NULL;
    if (g_hash_table_contains(d->streams, &key))
        return FALSE;
    for (guint i = l->from; i < l->to; i++) {
        const Caller *o = &g_array_index(d->operations, Caller, i);
        if (!may_be(d, l, o, left_over))
            continue;
        if (first && first->stream != o->stream)
            return FALSE;
        first = o;
    }
    if (!first)
        return FALSE;
    guint64 *handle = g_memdup2(&first->stream, sizeof first->stream);
    g_hash_table_insert(d->streams, g_memdup2(&key, sizeof key), handle);
    g_hash_table_add(d->taken, handle);
    return TRUE;
}

/* What is left over tells only once nothing else does, and then one at a time. */
static void learn_streams(RsCaptureDevices *d)
{
    gboolean more = TRUE;
    for (guint round = 0; more && round < ROUNDS_MAX; round++) {
        more = FALSE;
        for (guint i = 0; i < d->launches->len; i++)
            more |= learn_stream(d, &g_array_index(d->launches, Launch, i), FALSE);
        for (guint i = 0; i < d->launches->len && !more; i++)
            more = learn_stream(d, &g_array_index(d->launches, Launch, i), TRUE);
    }
}

/* ---- tracks ---- */

static guint32 new_track(RsCapture *c, RsCaptureDevices *d, const StreamKey *k, const gchar *what)
{
    gchar *name = k->device == G_MAXUINT32 ? g_strdup_printf("GPU %s", what)
                                           : g_strdup_printf("GPU %u %s", k->device, what);
    if (!g_hash_table_add(d->named, name)) {
        name = g_strdup_printf("%s, context %u", name, k->context);
        g_hash_table_add(d->named, name);
    }
    guint32 track = rs_builder_add_track(c->b, c->process, name, k->stream, TRUE);
    g_hash_table_insert(d->tracks, g_memdup2(k, sizeof *k), GUINT_TO_POINTER(track));
    return track;
}

static guint32 track_of(RsCapture *c, RsCaptureDevices *d, const StreamKey *k, const gchar *what)
{
    gpointer track;
    if (g_hash_table_lookup_extended(d->tracks, k, NULL, &track))
        return GPOINTER_TO_UINT(track);
    return new_track(c, d, k, what);
}

static guint32 track_of_stream(RsCapture *c, RsCaptureDevices *d, const Activity *a)
{
    StreamKey key = key_of(a);
    g_autofree gchar *what = g_strdup_printf("stream %u", key.stream);
    return track_of(c, d, &key, what);
}

static gint compare_streams(gconstpointer a, gconstpointer b)
{
    const Activity *const *x = a, *const *y = b;
    StreamKey k = key_of(*x), l = key_of(*y);
#define BY(field)                                                                                  \
    if (k.field != l.field)                                                                        \
    return k.field < l.field ? -1 : 1
    BY(device);
    BY(context);
    BY(stream);
#undef BY
    return 0;
}

static gboolean is_of_stream(const Activity *a)
{
    return a->e.op != RS_OP_HOST_CALL && a->e.op != RS_OP_SYNC;
}

/* By device and stream, whatever came first. */
static void make_tracks(RsCapture *c, RsCaptureDevices *d)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    for (guint i = 0; i < d->activities->len; i++)
        if (is_of_stream(&g_array_index(d->activities, Activity, i)))
            g_ptr_array_add(sorted, &g_array_index(d->activities, Activity, i));
    g_ptr_array_sort(sorted, compare_streams);
    for (guint i = 0; i < sorted->len; i++)
        track_of_stream(c, d, g_ptr_array_index(sorted, i));
}

/* ---- events ---- */

static guint32 track_of_thread(RsCapture *c, guint32 tid)
{
    GHashTableIter it;
    gpointer number, value;
    g_hash_table_iter_init(&it, c->threads);
    while (g_hash_table_iter_next(&it, &number, &value))
        if (((RsCaptureThread *)value)->tid == tid)
            return rs_capture_track(c, value, GPOINTER_TO_UINT(number), FALSE);
    RsCaptureThread *t = rs_capture_thread(c, G_MAXUINT32 - tid); /* it recorded nothing else */
    t->tid = tid;
    return rs_capture_track(c, t, G_MAXUINT32 - tid, FALSE);
}

/* A kernel's as people write it; its full name is its domain. */
static void name_activity(RsCapture *c, const Activity *a, RsSig *s)
{
    s->name = rs_capture_string(c, a->e.name);
    if (a->e.op != RS_OP_KERNEL)
        return;
    g_autofree gchar *name = rs_kernel_dup_name(rs_builder_text(c->b, s->name));
    RsStr plain = rs_builder_string(c->b, name);
    s->domain = plain != s->name ? s->name : 0;
    s->name = plain;
}

static guint32 add_event(RsCapture *c, const Activity *a, guint32 track, RsSig *s)
{
    s->op = a->e.op;
    s->api = RS_API_CUDA;
    name_activity(c, a, s);
    s->bytes = a->e.payload;
    if (a->x.graph) {
        g_autofree gchar *graph =
            g_strdup_printf("graph %u, node %" G_GUINT64_FORMAT, a->x.graph, a->x.graph_node);
        s->category = rs_builder_string(c->b, graph);
    }
    guint16 flags = (a->e.flags & RS_EVENT_FAILED ? RS_FLAG_FAILED : 0) | a->more_flags;
    return rs_builder_event(c->b, track, rs_builder_sig(c->b, s), (gint64)a->e.start,
                            (gint64)a->e.end, flags, 0, a->x.correlation);
}

/* A wait that was wrapped too is there already. */
static guint32 add_call(RsCapture *c, RsCaptureDevices *d, const Activity *a)
{
    guint to, from = callers_of(d->waits, a, &to);
    if (from < to)
        return g_array_index(d->waits, Caller, to - 1).event;
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_CALL, NULL);
    const gchar *name = rs_builder_text(c->b, rs_capture_string(c, a->e.name));
    s.klass = g_str_has_suffix(name, "Synchronize") ? RS_CLASS_COMPLETE : RS_CLASS_OTHER;
    return add_event(c, a, track_of_thread(c, a->x.thread), &s);
}

static void add_calls(RsCapture *c, RsCaptureDevices *d)
{
    for (guint i = 0; i < d->activities->len; i++) {
        const Activity *a = &g_array_index(d->activities, Activity, i);
        if (a->e.op != RS_OP_HOST_CALL || a->x.thread == 0 ||
            (a->x.correlation && call_of(d, a) != a))
            continue;
        guint32 event = add_call(c, d, a);
        if (event != RS_NONE)
            g_hash_table_insert(d->events, GUINT_TO_POINTER(a->x.correlation),
                                GUINT_TO_POINTER(event + 1));
    }
}

static void link_to_call(RsCapture *c, const RsCaptureDevices *d, const Activity *a, guint32 event)
{
    guint32 call =
        GPOINTER_TO_UINT(g_hash_table_lookup(d->events, GUINT_TO_POINTER(a->x.correlation)));
    if (a->x.correlation && call)
        rs_builder_link(c->b, event, call - 1);
}

static void add_wait(RsCapture *c, RsCaptureDevices *d, const Activity *a)
{
    guint32 device =
        GPOINTER_TO_UINT(g_hash_table_lookup(d->devices, GUINT_TO_POINTER(a->x.context)));
    StreamKey key = {device - 1, a->x.context, G_MAXUINT32}; /* 0 less 1: unknown */
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_SPAN, NULL);
    link_to_call(c, d, a, add_event(c, a, track_of(c, d, &key, "waits"), &s));
}

static void add_activities(RsCapture *c, RsCaptureDevices *d)
{
    for (guint i = 0; i < d->activities->len; i++) {
        const Activity *a = &g_array_index(d->activities, Activity, i);
        if (a->e.op == RS_OP_SYNC)
            add_wait(c, d, a);
        if (!is_of_stream(a))
            continue;
        RsSig s = rs_builder_sig_init(c->b, RS_KIND_DEVICE, NULL);
        s.klass = is_nccl_kernel(c, a) ? RS_CLASS_COLL : RS_CLASS_OTHER;
        link_to_call(c, d, a, add_event(c, a, track_of_stream(c, d, a), &s));
    }
}

static void stretch_operations(RsCapture *c, RsCaptureDevices *d, const Launch *l)
{
    StreamKey key = key_of(l->kernel);
    if (!g_hash_table_contains(d->streams, &key))
        return; /* of one of several streams: which is not known */
    for (guint i = l->from; i < l->to; i++) {
        Caller *o = &g_array_index(d->operations, Caller, i);
        if (!may_be(d, l, o, FALSE))
            continue;
        o->first = o->last ? MIN(o->first, l->kernel->e.start) : l->kernel->e.start;
        o->last = MAX(o->last, l->kernel->e.end);
        o->track = track_of_stream(c, d, l->kernel);
    }
}

static void add_operations(RsCapture *c, RsCaptureDevices *d)
{
    for (guint i = 0; i < d->launches->len; i++)
        stretch_operations(c, d, &g_array_index(d->launches, Launch, i));
    for (guint i = 0; i < d->operations->len; i++) {
        const Caller *o = &g_array_index(d->operations, Caller, i);
        if (o->last == 0 || g_hash_table_contains(d->plugin_comms, GUINT_TO_POINTER(o->e.comm)))
            continue;
        struct rs_event e = o->e;
        e.flags |= RS_EVENT_DEVICE;
        e.start = o->first;
        e.end = o->last;
        rs_builder_link(c->b, rs_capture_add_call(c, o->track, &e, o->more_flags), o->event);
    }
}

void rs_capture_place_activities(RsCapture *c)
{
    RsCaptureDevices *d = c->devices;
    if (!d || d->activities->len == 0)
        return;
    g_array_sort(d->operations, compare_callers);
    g_array_sort(d->waits, compare_callers);
    index_calls(d);
    collect_launches(c, d);
    learn_streams(d);
    add_calls(c, d);
    make_tracks(c, d);
    add_activities(c, d);
    add_operations(c, d);
}
