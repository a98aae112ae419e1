/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export-chrome.c - Chrome trace JSON (Trace Event Format), for chrome://tracing and Perfetto.
 *
 * Object form, strict JSON. One X slice an event, one process a rank, one thread a lane (lanes.h).
 * What a signature says is written once into a fragment; an event adds times and its own few
 * fields. Arrows: a message from its send to the call that had it; a collective from the last
 * arriver to each other member, above 16 members along the ring, as an arrow each would hide
 * everything; a launch from the host's call to each kernel and copy that it made a device run.
 */
#include <math.h>
#include <string.h>

#include "escape.h"
#include "export.h"
#include "lanes.h"
#include "names.h"
#include "report/report.h"
#include "stream.h"

#define FAN_OUT_MAX 16

typedef struct {
    const RsModel *m;
    RsStream *s;
    RsLanes lanes;
    gchar **fragments; /* by signature: `,"name":...,"cat":...,"args":{...` without the end */
    guint8 *has_args;
    guint64 flow;
} Writer;

/* ---- fragments ---- */

static const gchar *category(const RsSig *s)
{
    if (s->kind != RS_KIND_CALL)
        return rs_kind_name(s->kind);
    static const gchar *const api[RS_API_COUNT] = {"call", "mpi",  "nccl", "nvtx",
                                                   "cuda", "gloo", "io"};
    return api[s->api];
}

static void add_key(GString *f, const gchar *key)
{
    if (f->str[f->len - 1] != '{')
        g_string_append_c(f, ',');
    g_string_append_printf(f, "\"%s\":", key);
}

static void add_text_arg(const RsModel *m, GString *f, const gchar *key, RsStr text)
{
    if (text == 0)
        return;
    add_key(f, key);
    rs_escape_json(f, rs_model_str(m, text));
}

static void add_call_args(const RsModel *m, GString *f, const RsSig *s)
{
    if (s->comm != RS_NONE) {
        const RsComm *c = &g_array_index(m->comms, RsComm, s->comm);
        add_key(f, "communicator");
        g_autofree gchar *name =
            c->name ? NULL : g_strdup_printf("0x%" G_GINT64_MODIFIER "x", c->identity);
        rs_escape_json(f, name ? name : rs_model_str(m, c->name));
    }
    gboolean moves = s->kind == RS_KIND_DEVICE; /* a copy */
    if (!moves &&
        (s->klass == RS_CLASS_OTHER || s->klass == RS_CLASS_ENV || s->klass == RS_CLASS_GROUP))
        return;
    if (s->bytes) {
        add_key(f, "bytes");
        g_string_append_printf(f, "%" G_GUINT64_FORMAT, s->bytes);
    }
    if (s->count) {
        add_key(f, "count");
        g_string_append_printf(f, "%" G_GUINT64_FORMAT, s->count);
    }
    if (s->peer >= 0) {
        add_key(f, s->coll != RS_COLL_NONE ? "root" : "peer");
        g_string_append_printf(f, "%d", s->peer);
    }
    if (s->klass == RS_CLASS_SEND || s->klass == RS_CLASS_RECV || s->klass == RS_CLASS_SEND_START ||
        s->klass == RS_CLASS_RECV_START) {
        add_key(f, "tag");
        g_string_append_printf(f, "%d", s->tag);
    }
}

static gchar *make_fragment(const RsModel *m, const RsSig *s, guint8 *ret_has_args)
{
    GString *f = g_string_new(",\"name\":");
    rs_escape_json(f, rs_model_str(m, s->name));
    g_string_append_printf(f, ",\"cat\":\"%s\"", category(s));
    if (s->kind == RS_KIND_COUNTER) {
        g_string_append(f, ",\"args\":{\"value\":");
        return g_string_free(f, FALSE);
    }
    gsize before = f->len;
    g_string_append(f, ",\"args\":{");
    gsize empty = f->len;
    add_text_arg(m, f, "domain", s->domain);
    add_text_arg(m, f, "category", s->category);
    if (s->kind == RS_KIND_CALL || s->kind == RS_KIND_DEVICE)
        add_call_args(m, f, s);
    add_text_arg(m, f, "datatype", s->dtype);
    add_text_arg(m, f, "reduction", s->redop);
    *ret_has_args = f->len > empty;
    if (!*ret_has_args)
        g_string_truncate(f, before);
    return g_string_free(f, FALSE);
}

static void make_fragments(Writer *w)
{
    w->fragments = g_new0(gchar *, w->m->sigs->len + 1);
    w->has_args = g_new0(guint8, w->m->sigs->len + 1);
    for (guint i = 0; i < w->m->sigs->len; i++)
        w->fragments[i] =
            make_fragment(w->m, &g_array_index(w->m->sigs, RsSig, i), &w->has_args[i]);
}

/* ---- events ---- */

static void put_place(Writer *w, const gchar *phase, guint32 rank, guint32 lane, gint64 ns)
{
    rs_stream_put(w->s, ",\n{\"ph\":\"");
    rs_stream_put(w->s, phase);
    rs_stream_put(w->s, "\",\"pid\":");
    rs_stream_put_u64(w->s, rank);
    rs_stream_put(w->s, ",\"tid\":");
    rs_stream_put_u64(w->s, lane);
    rs_stream_put(w->s, ",\"ts\":");
    rs_stream_put_us(w->s, ns);
}

/* Begins or goes on with the args of an event. */
static void put_arg(Writer *w, gboolean *open, const gchar *key)
{
    rs_stream_put(w->s, *open ? ",\"" : ",\"args\":{\"");
    rs_stream_put(w->s, key);
    rs_stream_put(w->s, "\":");
    *open = TRUE;
}

static void put_text(Writer *w, const gchar *text);

static void put_arg_value(Writer *w, const RsArg *a)
{
    union {
        guint64 bits;
        gdouble real;
    } u = {.bits = a->value};
    gchar number[G_ASCII_DTOSTR_BUF_SIZE];
    if (a->text || a->type == 4)
        put_text(w, rs_model_str(w->m, a->text));
    else if (a->type == 1)
        rs_stream_put_u64(w->s, a->value);
    else if (a->type == 2)
        rs_stream_put_i64(w->s, (gint64)a->value);
    else
        rs_stream_put(w->s,
                      isfinite(u.real) ? g_ascii_dtostr(number, sizeof number, u.real) : "null");
}

/* A name that came before in `args` [0, i) gets its number behind it: JSON's keys are unique. */
static void put_key(Writer *w, const RsArg *args, guint from, guint i)
{
    guint times = 1;
    for (guint k = from; k < i; k++)
        times += args[k].name == args[i].name;
    const gchar *name = rs_model_str(w->m, args[i].name);
    g_autofree gchar *numbered = times > 1 ? g_strdup_printf("%s #%u", name, times) : NULL;
    put_text(w, numbered ? numbered : name);
    rs_stream_put(w->s, ":");
}

static void put_fields(Writer *w, const RsArg *args, guint from, guint to)
{
    rs_stream_put(w->s, "{");
    for (guint i = from; i < to; i++) {
        rs_stream_put(w->s, i == from ? "" : ",");
        put_key(w, args, from, i);
        put_arg_value(w, &args[i]);
    }
    rs_stream_put(w->s, "}");
}

/* Where the fields of the layout of `from` end. */
static guint end_of_layout(const RsArg *args, guint from, guint n)
{
    guint to = from + 1;
    while (to < n && args[to].schema == args[from].schema)
        to++;
    return to;
}

/* {"payload": {"layout": {"field": value, ...}, ...}}; without the layout where there is one alone
 * that has no name; of a single number "payload": value. */
static void put_payload(Writer *w, guint32 event, gboolean *open)
{
    guint n, layouts = 0;
    const RsArg *a = rs_model_args(w->m, event, &n);
    if (n == 0)
        return;
    put_arg(w, open, "payload");
    gboolean nameless = a->schema == 0 && end_of_layout(a, 0, n) == n;
    if (nameless && n == 1 && strcmp(rs_model_str(w->m, a->name), "payload") == 0) {
        put_arg_value(w, a);
        return;
    }
    if (nameless) {
        put_fields(w, a, 0, n);
        return;
    }
    for (guint i = 0, to; i < n; i = to) {
        to = end_of_layout(a, i, n);
        const gchar *layout = a[i].schema ? rs_model_str(w->m, a[i].schema) : "values";
        g_autofree gchar *key =
            layouts++ == 0 ? g_strdup(layout) : g_strdup_printf("%s #%u", layout, layouts);
        rs_stream_put(w->s, i == 0 ? "{" : ",");
        put_text(w, key);
        rs_stream_put(w->s, ":");
        put_fields(w, a, i, to);
    }
    rs_stream_put(w->s, "}");
}

static void put_own_args(Writer *w, guint32 event, const RsSig *s)
{
    const RsEvents *e = &w->m->events;
    gboolean open = w->has_args[e->sig[event]];
    guint16 flags = e->flags[event];
    if (flags & RS_FLAG_SEQ) {
        put_arg(w, &open, "seq");
        rs_stream_put_u64(w->s, e->seq[event]);
    }
    if (s->api == RS_API_CUDA && e->seq[event]) {
        put_arg(w, &open, "correlation");
        rs_stream_put_u64(w->s, e->seq[event]);
    }
    if (s->kind == RS_KIND_HOLE) {
        put_arg(w, &open, "lost");
        rs_stream_put_u64(w->s, s->count);
    }
    put_payload(w, event, &open);
    if (flags & RS_FLAG_OPEN) {
        put_arg(w, &open, "unfinished");
        rs_stream_put(w->s, "true");
    }
    if (flags & RS_FLAG_FAILED) {
        put_arg(w, &open, "failed");
        rs_stream_put(w->s, "true");
    }
    rs_stream_put(w->s, open ? "}}" : "}");
}

static void put_counter(Writer *w, guint32 event, guint32 rank)
{
    union {
        guint32 bits;
        gfloat value;
    } u = {.bits = w->m->events.seq[event]};
    if (!isfinite(u.value))
        return;
    gchar number[G_ASCII_DTOSTR_BUF_SIZE];
    put_place(w, "C", rank, w->lanes.of_event[event], w->m->events.start_ns[event]);
    rs_stream_put(w->s, w->fragments[w->m->events.sig[event]]);
    rs_stream_put(w->s, g_ascii_formatd(number, sizeof number, "%.9g", u.value));
    rs_stream_put(w->s, "}}");
}

static void put_event(Writer *w, guint32 event, guint32 rank)
{
    const RsSig *s = rs_model_sig(w->m, event);
    gint64 start = w->m->events.start_ns[event];
    if (s->kind == RS_KIND_COUNTER) {
        put_counter(w, event, rank);
        return;
    }
    gboolean mark = s->kind == RS_KIND_MARK;
    put_place(w, mark ? "i" : "X", rank, w->lanes.of_event[event], start);
    if (mark) {
        rs_stream_put(w->s, ",\"s\":\"t\"");
    } else {
        rs_stream_put(w->s, ",\"dur\":");
        rs_stream_put_us(w->s, rs_lanes_end_ns(w->m, event) - start);
    }
    rs_stream_put(w->s, w->fragments[w->m->events.sig[event]]);
    put_own_args(w, event, s);
}

/* ---- arrows ---- */

/* A moment inside the slice of `event`: near `ns`, never on its very end. */
static gint64 clamp_into(const RsModel *m, guint32 event, gint64 ns)
{
    gint64 start = m->events.start_ns[event], end = rs_lanes_end_ns(m, event);
    return CLAMP(ns, start, MAX(start, end - 1));
}

static void put_arrow_end(Writer *w, const gchar *phase, const gchar *what, guint32 event,
                          gint64 ns)
{
    put_place(w, phase, rs_model_rank_of(w->m, event), w->lanes.of_event[event], ns);
    rs_stream_put(w->s, ",\"cat\":\"");
    rs_stream_put(w->s, what);
    rs_stream_put(w->s, "\",\"name\":\"");
    rs_stream_put(w->s, what);
    rs_stream_put(w->s, "\",\"id\":");
    rs_stream_put_u64(w->s, w->flow);
    rs_stream_put(w->s, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

static void put_arrow(Writer *w, const gchar *what, guint32 from, gint64 from_ns, guint32 to,
                      gint64 to_ns)
{
    if (to_ns < from_ns) /* would point back in time */
        return;
    w->flow++;
    put_arrow_end(w, "s", what, from, from_ns);
    put_arrow_end(w, "f", what, to, to_ns);
}

/* The slice in which the rank had the result: of a nonblocking start its completion call. */
static guint32 landing(const RsModel *m, guint32 event)
{
    gboolean host = rs_model_sig(m, event)->kind == RS_KIND_CALL;
    guint8 klass = rs_model_sig(m, event)->klass;
    gboolean started = klass == RS_CLASS_RECV_START || klass == RS_CLASS_COLL_START;
    return host && started && m->events.link[event] != RS_NONE ? m->events.link[event] : event;
}

static void put_message_arrows(Writer *w)
{
    for (guint i = 0; i < w->m->messages->len; i++) {
        const RsMessage *msg = &g_array_index(w->m->messages, RsMessage, i);
        if (msg->send == RS_NONE || msg->recv == RS_NONE)
            continue;
        guint32 to = landing(w->m, msg->recv);
        put_arrow(w, "message", msg->send, w->m->events.start_ns[msg->send], to,
                  clamp_into(w->m, to, G_MAXINT64));
    }
}

static guint32 find_member(const RsModel *m, const RsInstance *inst, guint32 n)
{
    for (guint32 k = 0; k < n; k++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + k);
        if (e != RS_NONE && m->events.start_ns[e] == inst->last_arrival_ns &&
            rs_model_rank_of(m, e) == inst->last_rank)
            return k;
    }
    return RS_NONE;
}

static void put_instance_arrows(Writer *w, const RsInstance *inst)
{
    const RsModel *m = w->m;
    guint32 n = g_array_index(m->comms, RsComm, inst->comm).n_members;
    guint32 last = find_member(m, inst, n);
    if (last == RS_NONE)
        return;
    guint32 from = g_array_index(m->member_events, guint32, inst->first_member + last);
    for (guint32 i = 1; i < n; i++) {
        guint32 e = g_array_index(m->member_events, guint32, inst->first_member + (last + i) % n);
        if (e == RS_NONE)
            continue;
        guint32 to = landing(m, e);
        put_arrow(w, "collective", from, clamp_into(m, from, inst->last_arrival_ns), to,
                  clamp_into(m, to, inst->last_arrival_ns));
        if (n > FAN_OUT_MAX)
            from = to;
    }
}

/* From a host's call of CUDA to what CUPTI told that it caused. */
static void put_launch_arrows(Writer *w)
{
    const RsModel *m = w->m;
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        guint32 call = m->events.link[i];
        if (s->kind == RS_KIND_DEVICE && s->api == RS_API_CUDA && call != RS_NONE)
            put_arrow(w, "launch", call, m->events.start_ns[call], i, m->events.start_ns[i]);
    }
}

/* ---- the document ---- */

static void put_text(Writer *w, const gchar *text)
{
    GString *t = g_string_new(NULL);
    rs_escape_json(t, text);
    rs_stream_put_len(w->s, t->str, t->len);
    g_string_free(t, TRUE);
}

static void put_meta(Writer *w, const gchar *what, guint32 rank, guint32 lane, const gchar *text,
                     guint64 number)
{
    static const gchar comma[] = ",\n";
    gboolean first = rank == 0 && lane == 0 && strcmp(what, "process_name") == 0;
    rs_stream_put(w->s, first ? comma + 1 : comma);
    rs_stream_put(w->s, "{\"ph\":\"M\",\"pid\":");
    rs_stream_put_u64(w->s, rank);
    rs_stream_put(w->s, ",\"tid\":");
    rs_stream_put_u64(w->s, lane);
    rs_stream_put(w->s, ",\"name\":\"");
    rs_stream_put(w->s, what);
    rs_stream_put(w->s, text ? "\",\"args\":{\"name\":" : "\",\"args\":{\"sort_index\":");
    if (text)
        put_text(w, text);
    else
        rs_stream_put_u64(w->s, number);
    rs_stream_put(w->s, "}}");
}

static void put_lane_names(Writer *w, const RsTrack *t, const RsTrackLanes *l)
{
    for (guint32 i = 0; i < l->n + l->n_span; i++) {
        gboolean span = i >= l->n;
        guint32 number = span ? i - l->n : i;
        GString *name = g_string_new(rs_model_str(w->m, t->name));
        if (span)
            g_string_append(name, " ranges");
        if (number)
            g_string_append_printf(name, " (%u)", number + 1);
        put_meta(w, "thread_name", t->rank, l->first + i, name->str, 0);
        put_meta(w, "thread_sort_index", t->rank, l->first + i, NULL, l->first + i);
        g_string_free(name, TRUE);
    }
}

static void put_names(Writer *w)
{
    for (guint32 r = 0; r < w->m->ranks->len; r++) {
        g_autofree gchar *label = rs_model_dup_rank_label(w->m, r);
        put_meta(w, "process_name", r, 0, label, 0);
        put_meta(w, "process_sort_index", r, 0, NULL, r);
    }
    for (guint32 t = 0; t < w->m->tracks->len; t++)
        put_lane_names(w, &g_array_index(w->m->tracks, RsTrack, t), &w->lanes.tracks[t]);
}

static void put_other_data(Writer *w)
{
    const RsModel *m = w->m;
    rs_stream_put(w->s, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"ringscope\"");
    /* as text: 19 digits don't fit a double */
    rs_stream_put(w->s, ",\"base_unix_ns\":\"");
    rs_stream_put_i64(w->s, m->base_realtime_ns);
    rs_stream_put(w->s, "\",\"duration_ns\":");
    rs_stream_put_i64(w->s, m->duration_ns);
    rs_stream_put(w->s, ",\"ranks\":");
    rs_stream_put_i64(w->s, m->world_size);
    rs_stream_put(w->s, ",\"clock_method\":");
    put_text(w, m->clock_method);
    rs_stream_put(w->s, ",\"clock_uncertainty_ns\":");
    rs_stream_put_i64(w->s, m->clock_uncertainty_ns);
    rs_stream_put(w->s, m->clock_trusted ? ",\"clock_trusted\":true" : ",\"clock_trusted\":false");
    rs_stream_put(w->s, ",\"dropped_events\":");
    rs_stream_put_u64(w->s, m->dropped);
    rs_stream_put(w->s, m->incomplete ? ",\"incomplete\":true" : ",\"incomplete\":false");
    rs_stream_put(w->s,
                  rs_report_is_standin(m) ? ",\"nccl_standin\":true" : ",\"nccl_standin\":false");
    rs_stream_put(w->s, "}}\n");
}

static void put_all(Writer *w, const RsExport *x)
{
    const RsModel *m = w->m;
    rs_stream_put(w->s, "{\"traceEvents\":[");
    put_names(w);
    for (guint32 t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n; i++)
            put_event(w, i, track->rank);
        if (x->progress)
            x->progress((gdouble)(t + 1) / (m->tracks->len + 1), "writing JSON", x->data);
    }
    put_message_arrows(w);
    put_launch_arrows(w);
    for (guint i = 0; i < m->instances->len; i++)
        if (g_array_index(m->instances, RsInstance, i).timed)
            put_instance_arrows(w, &g_array_index(m->instances, RsInstance, i));
    put_other_data(w);
}

gboolean rs_export_chrome(const RsExport *x, const gchar *path, GError **error)
{
    Writer w = {.m = x->model};
    w.s = rs_stream_open(path, error);
    if (!w.s)
        return FALSE;
    rs_lanes_init(&w.lanes, w.m);
    make_fragments(&w);
    put_all(&w, x);
    rs_lanes_release(&w.lanes);
    for (guint i = 0; i < w.m->sigs->len; i++)
        g_free(w.fragments[i]);
    g_free(w.fragments);
    g_free(w.has_args);
    return rs_stream_finish(w.s, error);
}
