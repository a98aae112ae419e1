/* SPDX-License-Identifier: Apache-2.0 */
/* chrome-event.c - a record becomes an event of the model, or a row that waits for its other half.
 */
#include "chrome-internal.h"

#include <math.h>

#define TIME_MOST_NS (G_GINT64_CONSTANT(1) << 57) /* from the first one on: 4 years */
#define TEXT_ARG_MAX 256

/* ---- arguments and texts ---- */

guint rs_chrome_scan_args(RsChrome *c, const RsChromeRecord *r)
{
    guint n = 0;
    const gchar *next;
    if (r->args.type != RS_JSON_OBJECT)
        return 0;
    rs_json_object(r->args.at, r->args.at + r->args.n, c->args, RS_CHROME_ARGS_MAX, &n, &next);
    c->trouble[RS_CHROME_ARGS_LEFT_OUT] += n > RS_CHROME_ARGS_MAX;
    return MIN(n, RS_CHROME_ARGS_MAX);
}

const RsJsonSpan *rs_chrome_arg(const RsChrome *c, guint n, const gchar *key)
{
    gsize length = strlen(key);
    for (guint i = n; i-- > 0;) /* of several the last counts */
        if (rs_json_is(&c->args[i].key, key, length))
            return &c->args[i].value;
    return NULL;
}

RsStr rs_chrome_string(RsChrome *c, const RsJsonSpan *s)
{
    if (s->type == RS_JSON_NONE)
        return 0;
    rs_json_text(s, c->text);
    return rs_builder_string(c->b, c->text->str);
}

static void add_arg(RsChrome *c, guint32 event, const RsJsonField *f)
{
    union {
        guint64 bits;
        gint64 whole;
        gdouble real;
    } u = {0};
    const RsJsonSpan *v = &f->value;
    RsArg a = {.event = event, .name = rs_chrome_string(c, &f->key), .type = 4};
    if (v->type == RS_JSON_NUMBER && rs_json_u64(v, &u.bits))
        a.type = 1;
    else if (v->type == RS_JSON_NUMBER && rs_json_i64(v, &u.whole))
        a.type = 2;
    else if (v->type == RS_JSON_NUMBER && rs_json_double(v, &u.real))
        a.type = 3;
    else if (v->type == RS_JSON_WORD &&
             (RS_JSON_IS(v, "NaN") || RS_JSON_IS(v, "Infinity") || RS_JSON_IS(v, "-Infinity"))) {
        a.type = 3;
        u.real = (gdouble)NAN;
    } else {
        RsJsonSpan shown = *v;
        shown.n = MIN(v->n, TEXT_ARG_MAX);
        a.text = rs_chrome_string(c, &shown);
    }
    a.value = u.bits;
    rs_builder_arg(c->b, &a);
}

static void add_args(RsChrome *c, guint32 event, const RsChromeRecord *r)
{
    guint n = rs_chrome_scan_args(c, r);
    for (guint i = 0; i < n; i++)
        add_arg(c, event, &c->args[i]);
}

/* ---- what it is ---- */

static RsChromeClass class_of(const RsChrome *c, const RsChromeRecord *r, const RsChromePid *p)
{
    static const struct {
        const gchar *cat;
        RsChromeClass klass;
    } known[] = {
        {"cpu_op", RS_CHROME_OPERATOR},
        {"kernel", RS_CHROME_KERNEL},
        {"cuda_runtime", RS_CHROME_RUNTIME},
        {"gpu_memcpy", RS_CHROME_COPY},
        {"gpu_memset", RS_CHROME_SET},
        {"user_annotation", RS_CHROME_RANGE},
        {"gpu_user_annotation", RS_CHROME_DEVICE_RANGE},
        {"cuda_driver", RS_CHROME_RUNTIME},
        {"hip_runtime", RS_CHROME_RUNTIME},
        {"python_function", RS_CHROME_OPERATOR},
        {"cuda_sync", RS_CHROME_DEVICE_RANGE},
        {"Kernel", RS_CHROME_KERNEL},
        {"Memcpy", RS_CHROME_COPY},
        {"Memset", RS_CHROME_SET},
        {"Runtime", RS_CHROME_RUNTIME},
        {"Operator", RS_CHROME_OPERATOR},
    };
    if (r->cat.type == RS_JSON_STRING)
        for (guint i = 0; i < G_N_ELEMENTS(known); i++)
            if (rs_json_is(&r->cat, known[i].cat, strlen(known[i].cat)))
                return known[i].klass;
    gboolean device = p->device || (p->id.is_text && RS_JSON_IS(&r->pid, "CUDA functions"));
    return device ? RS_CHROME_KERNEL : RS_CHROME_RANGE;
}

static gboolean is_device(RsChromeClass klass)
{
    return klass == RS_CHROME_KERNEL || klass == RS_CHROME_COPY || klass == RS_CHROME_SET ||
           klass == RS_CHROME_DEVICE_RANGE;
}

static void fill_sig(RsChrome *c, const RsChromeRecord *r, RsChromeClass klass, RsSig *s)
{
    static const guint8 kinds[] = {
        [RS_CHROME_RANGE] = RS_KIND_RANGE,       [RS_CHROME_KERNEL] = RS_KIND_DEVICE,
        [RS_CHROME_COPY] = RS_KIND_DEVICE,       [RS_CHROME_SET] = RS_KIND_DEVICE,
        [RS_CHROME_DEVICE_RANGE] = RS_KIND_SPAN, [RS_CHROME_RUNTIME] = RS_KIND_CALL,
        [RS_CHROME_OPERATOR] = RS_KIND_RANGE,    [RS_CHROME_SPAN] = RS_KIND_SPAN,
        [RS_CHROME_MARK] = RS_KIND_MARK,
    };
    *s = rs_builder_sig_init(c->b, kinds[klass], NULL);
    s->name = rs_chrome_string(c, &r->name);
    const gchar *name = rs_builder_text(c->b, s->name);
    if (s->kind == RS_KIND_RANGE || s->kind == RS_KIND_SPAN || s->kind == RS_KIND_MARK) {
        s->category = rs_chrome_string(c, &r->cat);
        return;
    }
    s->api = RS_API_CUDA;
    s->op = klass == RS_CHROME_COPY     ? RS_OP_COPY
            : klass == RS_CHROME_SET    ? RS_OP_SET
            : klass == RS_CHROME_KERNEL ? RS_OP_KERNEL
                                        : RS_OP_HOST_CALL;
    if (klass == RS_CHROME_RUNTIME && g_str_has_suffix(name, "Synchronize"))
        s->klass = RS_CLASS_COMPLETE;
    if (klass == RS_CHROME_KERNEL && rs_chrome_is_communication(name, strlen(name))) {
        s->klass = RS_CLASS_COLL;
        s->api = RS_API_NCCL;
        rs_chrome_name_kernel(c, s);
    }
}

/* The signature of what only its name and category tell. */
static guint32 plain_sig(RsChrome *c, const RsChromeRecord *r, RsChromeClass klass)
{
    guint64 key = rs_chrome_hash(klass, r->name.at ? r->name.at : "", r->name.n);
    key = rs_chrome_hash(key + r->name.escaped, r->cat.at ? r->cat.at : "", r->cat.n);
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(c->sigs, &key));
    if (known)
        return known - 1;
    RsSig s;
    fill_sig(c, r, klass, &s);
    guint32 sig = rs_builder_sig(c->b, &s);
    g_hash_table_insert(c->sigs, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(sig + 1));
    return sig;
}

/* ---- times ---- */

static void widen(RsChrome *c, gint64 start, gint64 end)
{
    c->least_ns = MIN(c->least_ns, start);
    c->last_ns = MAX(c->last_ns, end);
}

/* The record's time after the base; FALSE: it has none that can be used, and is counted. */
static gboolean take_time(RsChrome *c, const RsChromeRecord *r, gint64 *ret, guint32 *ret_rest)
{
    gint64 ns;
    if (r->ts.type == RS_JSON_NONE) {
        c->trouble[RS_CHROME_NO_TIME]++;
        return FALSE;
    }
    if (!rs_json_ns(&r->ts, c->unit_digits, &ns, ret_rest)) {
        gboolean first = !c->has_base && rs_json_ns(&r->ts, 0, &ns, ret_rest);
        if (!first) {
            c->trouble[r->ts.type == RS_JSON_NUMBER ? RS_CHROME_OUT_OF_RANGE : RS_CHROME_NO_TIME]++;
            return FALSE;
        }
        c->unit_digits = 0;
    }
    if (ns == 0 && c->epoch) {
        c->trouble[RS_CHROME_ZERO_TIME]++;
        return FALSE;
    }
    if (!c->has_base) {
        c->has_base = TRUE;
        c->base_ns = ns;
    }
    c->epoch = c->epoch || ns >= RS_CHROME_EPOCH_NS;
    *ret = ns - c->base_ns;
    if (*ret > TIME_MOST_NS || *ret < -TIME_MOST_NS) {
        c->trouble[RS_CHROME_OUT_OF_RANGE]++;
        return FALSE;
    }
    return TRUE;
}

static gint64 take_end(RsChrome *c, const RsChromeRecord *r, gint64 start, guint32 rest)
{
    gint64 ns;
    guint32 more;
    if (r->dur.type == RS_JSON_NONE || !rs_json_ns(&r->dur, c->unit_digits, &ns, &more))
        return start;
    if (ns < 0) {
        c->trouble[RS_CHROME_NEGATIVE]++;
        return start;
    }
    return start + MIN(ns, TIME_MOST_NS) + (rest + more >= 1000000);
}

/* ---- events ---- */

static RsSig copy_with_bytes(RsChrome *c, guint32 sig, guint n)
{
    RsSig s = *rs_builder_peek_sig(c->b, sig);
    const RsJsonSpan *bytes = rs_chrome_arg(c, n, "bytes");
    if (bytes)
        rs_json_u64(bytes, &s.bytes);
    return s;
}

/* A kernel, a copy or a call that launches: with what its arguments say. */
static guint32 add_profiled(RsChrome *c, const RsChromeRecord *r, RsChromeClass klass,
                            guint32 track, gint64 start, gint64 end, guint16 flags)
{
    guint32 sig = plain_sig(c, r, klass), comm = RS_NONE;
    guint n = rs_chrome_scan_args(c, r);
    gboolean numbered = FALSE;
    RsChromeLaunch launch = {.device = klass != RS_CHROME_RUNTIME};
    const RsJsonSpan *id = rs_chrome_arg(c, n, "correlation");
    if (id && !rs_json_u64(id, &launch.correlation))
        launch.correlation = 0;
    guint32 seq = (guint32)launch.correlation;
    if (klass == RS_CHROME_KERNEL && rs_chrome_arg(c, n, "Collective name")) {
        RsSig s = *rs_builder_peek_sig(c->b, sig);
        numbered = rs_chrome_collective(c, n, &s, &seq);
        comm = s.coll != RS_COLL_NONE ? s.comm : RS_NONE;
        sig = rs_builder_sig(c->b, &s);
    } else if (klass == RS_CHROME_COPY || klass == RS_CHROME_SET) {
        RsSig s = copy_with_bytes(c, sig, n);
        sig = rs_builder_sig(c->b, &s);
    }
    guint32 event = rs_builder_event(c->b, rs_chrome_builder_track(c, track), sig, start, end,
                                     flags | (numbered ? RS_FLAG_SEQ : 0), 0, seq);
    launch.event = event;
    if (launch.correlation && event != RS_NONE)
        g_array_append_val(c->launches, launch);
    if (!numbered && comm != RS_NONE) {
        RsChromeUnnumbered u = {start, comm, event};
        g_array_append_val(c->unnumbered, u);
    }
    return event;
}

static guint32 add_slice(RsChrome *c, const RsChromeRecord *r, gint64 start, gint64 end,
                         guint16 flags)
{
    guint32 track = rs_chrome_track(c, r), event;
    RsChromeTrack *t = &g_array_index(c->tracks, RsChromeTrack, track);
    RsChromePid *p = &g_array_index(c->pids, RsChromePid, t->pid);
    RsChromeClass klass = class_of(c, r, p);
    t->device |= is_device(klass);
    p->events += !t->device;
    c->is_kineto |= klass == RS_CHROME_KERNEL || klass == RS_CHROME_OPERATOR;
    widen(c, start, end);
    if (c->is_horovod)
        klass = RS_CHROME_SPAN;
    if (klass == RS_CHROME_RANGE || klass == RS_CHROME_DEVICE_RANGE ||
        klass == RS_CHROME_OPERATOR || klass == RS_CHROME_SPAN) {
        event = rs_builder_event(c->b, rs_chrome_builder_track(c, track), plain_sig(c, r, klass),
                                 start, end, flags, 0, 0);
        if (klass == RS_CHROME_RANGE && r->args.type == RS_JSON_OBJECT)
            add_args(c, event, r);
        return event;
    }
    return add_profiled(c, r, klass, track, start, end, flags);
}

static void add_stack_row(RsChrome *c, const RsChromeRecord *r, gint64 ns, gboolean begin)
{
    RsChromeStackRow row = {.ns = ns, .event = RS_NONE, .order = c->stack->len};
    c->is_horovod |= begin && rs_chrome_is_negotiation(&r->name);
    if (begin)
        row.event = add_slice(c, r, ns, ns, RS_FLAG_OPEN);
    else
        widen(c, ns, ns);
    row.track = rs_chrome_track(c, r);
    row.name = rs_chrome_string(c, &r->name);
    g_array_append_val(c->stack, row);
}

static void add_mark(RsChrome *c, const RsChromeRecord *r, gint64 ns)
{
    guint32 track = rs_chrome_builder_track(c, rs_chrome_track(c, r));
    widen(c, ns, ns);
    guint32 event = rs_builder_event(c->b, track, plain_sig(c, r, RS_CHROME_MARK), ns, ns, 0, 0, 0);
    if (r->args.type == RS_JSON_OBJECT)
        add_args(c, event, r);
}

static void add_counter(RsChrome *c, const RsChromeRecord *r, gint64 ns)
{
    guint n = rs_chrome_scan_args(c, r);
    guint32 track = rs_chrome_builder_track(c, rs_chrome_track(c, r));
    g_autofree gchar *name = g_strdup(rs_builder_text(c->b, rs_chrome_string(c, &r->name)));
    widen(c, ns, ns);
    for (guint i = 0; i < n; i++) {
        gdouble value;
        if (!rs_json_double(&c->args[i].value, &value))
            continue;
        if (fabs(value) > (gdouble)G_MAXFLOAT) {
            c->trouble[RS_CHROME_COUNTER_RANGE]++;
            continue;
        }
        union {
            gfloat value;
            guint32 bits;
        } u = {.value = (gfloat)value};
        const gchar *series = rs_builder_text(c->b, rs_chrome_string(c, &c->args[i].key));
        gboolean alone = n == 1 && (g_str_equal(series, "value") || g_str_equal(series, name));
        g_autofree gchar *full = alone ? g_strdup(name) : g_strdup_printf("%s %s", name, series);
        RsSig s = rs_builder_sig_init(c->b, RS_KIND_COUNTER, full);
        rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), ns, ns, 0, 0, u.bits);
    }
}

/* ---- what is paired by its id ---- */

static guint64 pair_key(RsChrome *c, const RsChromeRecord *r, gboolean with_name)
{
    guint64 key = rs_chrome_hash(r->id.type, r->id.at ? r->id.at : "", r->id.n);
    key = rs_chrome_hash(key, r->cat.at ? r->cat.at : "", r->cat.n);
    if (with_name)
        key = rs_chrome_hash(key, r->name.at ? r->name.at : "", r->name.n);
    if (r->id.type == RS_JSON_OBJECT) { /* id2: {"local": 1} is the process's own */
        RsJsonSpan local = rs_json_find(&r->id, "local");
        if (local.type != RS_JSON_NONE)
            key = rs_chrome_hash(key, r->pid.at ? r->pid.at : "", r->pid.n);
    }
    return key;
}

static void add_pair_row(RsChrome *c, GArray *rows, const RsChromeRecord *r, gint64 ns, gchar phase)
{
    gboolean flow = rows == c->flows;
    RsChromePairRow row = {.key = pair_key(c, r, flow), .ns = ns, .phase = phase};
    row.track = rs_chrome_track(c, r);
    row.order = rows->len;
    if (!flow) {
        row.name = rs_chrome_string(c, &r->name);
        row.sig = plain_sig(c, r, RS_CHROME_SPAN);
        widen(c, ns, ns);
    }
    g_array_append_val(rows, row);
}

/* Correlations tell the same of these, and of all of them. */
static gboolean is_launch_flow(const RsChromeRecord *r)
{
    return RS_JSON_IS(&r->cat, "ac2g") || RS_JSON_IS(&r->cat, "async_gpu") ||
           RS_JSON_IS(&r->cat, "async_cpu_to_gpu") || RS_JSON_IS(&r->cat, "cpu_to_cuda");
}

/* ---- phases ---- */

static gchar phase_of(const RsChromeRecord *r)
{
    return r->ph.type == RS_JSON_STRING && r->ph.n == 1 ? *r->ph.at : '\0';
}

static void add_timed(RsChrome *c, const RsChromeRecord *r, gchar ph)
{
    gint64 ns;
    guint32 rest;
    if (!take_time(c, r, &ns, &rest))
        return;
    switch (ph) {
    case 'X':
        if (!c->is_horovod || !rs_chrome_tick(c, r, ns))
            add_slice(c, r, ns, take_end(c, r, ns, rest), 0);
        break;
    case 'B':
    case 'E':
        add_stack_row(c, r, ns, ph == 'B');
        break;
    case 'i':
    case 'I':
    case 'R':
    case 'P':
        add_mark(c, r, ns);
        break;
    case 'C':
        add_counter(c, r, ns);
        break;
    case 'b':
    case 'S':
    case 'N':
        add_pair_row(c, c->async, r, ns, 'b');
        break;
    case 'e':
    case 'F':
    case 'D':
        add_pair_row(c, c->async, r, ns, 'e');
        break;
    case 'n':
    case 'T':
    case 'p':
        add_pair_row(c, c->async, r, ns, 'n');
        break;
    default: /* s t f */
        if (!is_launch_flow(r))
            add_pair_row(c, c->flows, r, ns, ph);
        break;
    }
}

void rs_chrome_add(RsChrome *c, const RsChromeRecord *r)
{
    gchar ph = phase_of(r);
    if (r->ph.type == RS_JSON_NONE) {
        c->trouble[RS_CHROME_NO_PHASE]++;
        return;
    }
    c->records++;
    if (ph == 'M')
        rs_chrome_metadata(c, r);
    else if (ph && strchr("XBEiIRPCbSNeFDnTpstf", ph))
        add_timed(c, r, ph);
    else if (ph && strchr("OvVc()", ph))
        c->trouble[RS_CHROME_NOT_SHOWN]++;
    else
        c->trouble[RS_CHROME_UNKNOWN_PHASE]++;
}
