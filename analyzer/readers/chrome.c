/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome.c - the document of a Chrome trace: array or object form, whole, cut or damaged.
 *
 * Records are found one after the other in the window. After damage the next place where one can
 * begin is looked for: a brace behind a comma or at the beginning of a line. How much text may be
 * scanned again so is bounded, as is the length of one record.
 */
#include "chrome-internal.h"
#include "readers.h"

#include "../plural.h"

#define RECORD_FIELDS_MAX 64
#define RECORD_BYTES_MAX  (256u << 20)
#define RESCAN_BYTES      (256u << 20)
#define KEY_MAX           64

/* ---- damage ---- */

static const gchar odd_value[] = "characters or words that JSON does not have";
static const gchar deep_value[] =
    "values nested more than " G_STRINGIFY(RS_JSON_DEPTH_MAX) " deep are left out";

static void set_fault(RsChrome *c, const gchar *what, const gchar *at)
{
    if (c->fault)
        return;
    c->fault = what;
    c->fault_offset = rs_json_window_offset(&c->window, at);
}

/* More text, unless what begins at *at is too long to be anything; twice as much as there is, as
 * all of it is scanned again. */
static gboolean more(RsChrome *c, const gchar **at)
{
    gsize had = (gsize)(c->window.end - *at);
    if (had > RECORD_BYTES_MAX)
        return FALSE;
    gboolean any = FALSE;
    while ((gsize)(c->window.end - *at) < 2 * had + 1 && rs_json_window_more(&c->window, at))
        any = TRUE;
    if (any && c->options->progress)
        c->options->progress(rs_input_share(c->input), "reading traces", c->options->data);
    return any;
}

/* The next byte that is no white space; NULL at the end of the text. */
static const gchar *next_byte(RsChrome *c, const gchar *p)
{
    while ((p = rs_json_skip_space(p, c->window.end)) >= c->window.end)
        if (!rs_json_window_more(&c->window, &p))
            return NULL;
    return p;
}

static gboolean may_begin_record(const gchar *first, const gchar *brace)
{
    const gchar *p = brace;
    while (p > first && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\r' || p[-1] == '\n'))
        if (*--p == '\n')
            return TRUE;
    return p > first && (p[-1] == ',' || p[-1] == '[' || p[-1] == '}');
}

/* Behind damage at `p`: where the next record may begin, NULL none. */
static const gchar *resume(RsChrome *c, const gchar *p)
{
    const gchar *first = p++;
    for (;;) {
        const gchar *brace = p < c->window.end ? memchr(p, '{', (gsize)(c->window.end - p)) : NULL;
        if (!brace) {
            gsize back = (gsize)(c->window.end - first);
            first += back > KEY_MAX ? back - KEY_MAX : 0; /* what stands before a brace counts */
            gsize done = (gsize)(c->window.end - first);
            if (!rs_json_window_more(&c->window, &first))
                return NULL;
            p = first + done;
            continue;
        }
        if (may_begin_record(first, brace))
            return brace;
        p = brace + 1;
    }
}

/* ---- a record ---- */

static void set_field(RsChromeRecord *r, const RsJsonField *f)
{
    const RsJsonSpan *k = &f->key;
    switch (k->n) {
    case 2:
        if (RS_JSON_IS(k, "ph"))
            r->ph = f->value;
        else if (RS_JSON_IS(k, "ts"))
            r->ts = f->value;
        else if (RS_JSON_IS(k, "id"))
            r->id = f->value;
        break;
    case 3:
        if (RS_JSON_IS(k, "pid"))
            r->pid = f->value;
        else if (RS_JSON_IS(k, "tid"))
            r->tid = f->value;
        else if (RS_JSON_IS(k, "dur"))
            r->dur = f->value;
        else if (RS_JSON_IS(k, "cat"))
            r->cat = f->value;
        else if (RS_JSON_IS(k, "id2"))
            r->id = f->value;
        break;
    case 4:
        if (RS_JSON_IS(k, "name"))
            r->name = f->value;
        else if (RS_JSON_IS(k, "args"))
            r->args = f->value;
        break;
    default:
        break;
    }
}

static void take_record(RsChrome *c, guint n)
{
    RsChromeRecord r = {0};
    for (guint i = 0; i < MIN(n, RECORD_FIELDS_MAX); i++) {
        const RsJsonSpan *v = &c->fields[i].value;
        set_field(&r, &c->fields[i]);
        if (!v->odd)
            continue;
        gboolean deep = v->type == RS_JSON_OBJECT || v->type == RS_JSON_ARRAY;
        c->deep_values += deep;
        c->odd_values += !deep;
        set_fault(c, deep ? deep_value : odd_value, v->at);
        if (deep)
            r.args.type = RS_JSON_NONE;
    }
    rs_chrome_add(c, &r);
}

/* Reads the record at `*p`; FALSE: the text ends in it, and so does reading. */
static gboolean read_record(RsChrome *c, const gchar **p)
{
    const gchar *next;
    guint n;
    RsJsonState state;
    while ((state = rs_json_object(*p, c->window.end, c->fields, RECORD_FIELDS_MAX, &n, &next)) ==
               RS_JSON_MORE &&
           more(c, p))
        ;
    if (state == RS_JSON_DONE) {
        take_record(c, n);
        *p = next;
        return TRUE;
    }
    set_fault(c,
              state == RS_JSON_MORE ? "the file is cut inside an event" : "an event makes no sense",
              state == RS_JSON_MORE ? *p : next);
    c->skipped++;
    guint64 rest = (guint64)(next - *p);
    if (rest > c->rescan_left)
        return FALSE;
    c->rescan_left -= rest;
    *p = resume(c, *p);
    return *p != NULL;
}

/* The records of an array that `p` stands in, up to its end. Returns what follows, NULL at the end
 * of the text. */
static const gchar *read_records(RsChrome *c, const gchar *p)
{
    gboolean comma = FALSE;
    for (;;) {
        p = next_byte(c, p);
        if (!p) {
            set_fault(c,
                      c->records ? "the array of events is not closed"
                                 : "the file is cut before its first event",
                      c->window.end);
            return NULL;
        }
        if (*p == '{') {
            if (!read_record(c, &p))
                return NULL;
            comma = FALSE;
            continue;
        }
        if (*p == ']') {
            if (comma)
                set_fault(c, "a comma before the end of the array", p);
            return p + 1;
        }
        if (*p != ',') {
            set_fault(c, "something that is no event", p);
            c->skipped++;
            p = resume(c, p);
            if (!p)
                return NULL;
            continue;
        }
        comma = TRUE;
        p++;
    }
}

/* ---- what stands beside the events ---- */

static void take_value(RsChrome *c, const gchar *key, const RsJsonSpan *v)
{
    gint64 number;
    if (g_str_equal(key, "distributedInfo")) {
        rs_chrome_distributed_info(c, v);
    } else if (g_str_equal(key, "baseTimeNanoseconds") && rs_json_i64(v, &number)) {
        c->base_time_ns = number;
    } else if (g_str_equal(key, "otherData") || g_str_equal(key, "metadata")) {
        RsJsonSpan host = rs_json_find(v, "hostname"), rank = rs_json_find(v, "rank");
        if (host.type == RS_JSON_STRING)
            rs_json_text(&host, c->host);
        if (rs_json_i64(&rank, &number) && number >= 0 && number < G_MAXINT32)
            c->rank = (gint32)number;
    } else if (g_str_equal(key, "schemaVersion") || g_str_equal(key, "deviceProperties")) {
        c->is_kineto = TRUE;
    }
}

/* The value at `p`, of no length that matters. Returns what follows, NULL where it is cut. */
static const gchar *read_value(RsChrome *c, const gchar *p, const gchar *key)
{
    RsJsonSpan v;
    const gchar *next;
    RsJsonState state;
    while ((state = rs_json_value(p, c->window.end, &v, &next)) == RS_JSON_MORE && more(c, &p))
        ;
    if (state == RS_JSON_DONE)
        take_value(c, key, &v);
    else
        set_fault(c, state == RS_JSON_MORE ? "the file is cut" : "a value makes no sense", p);
    return state == RS_JSON_DONE ? next : NULL;
}

/* The key at `p`, a quote, into `key`; what follows its colon, NULL where there is none. */
static const gchar *read_key(RsChrome *c, const gchar *p, gchar key[KEY_MAX])
{
    RsJsonSpan k;
    const gchar *next;
    RsJsonState state;
    while ((state = rs_json_value(p, c->window.end, &k, &next)) == RS_JSON_MORE && more(c, &p))
        ;
    if (state != RS_JSON_DONE) {
        set_fault(c, "the file is cut", p);
        return NULL;
    }
    g_strlcpy(key, "", KEY_MAX);
    if (k.n < KEY_MAX) {
        memcpy(key, k.at, k.n);
        key[k.n] = '\0';
    }
    const gchar *colon = next_byte(c, next);
    if (!colon || *colon != ':') {
        set_fault(c, colon ? "a key without a value" : "the file is cut", colon ? colon : p);
        return NULL;
    }
    return next_byte(c, colon + 1);
}

/* An object with "ph" in it is an event: some tools write a line for each and no array. */
static gboolean is_bare_record(RsChrome *c, const gchar *p)
{
    const gchar *next;
    guint n;
    RsJsonState state = rs_json_object(p, c->window.end, c->fields, RECORD_FIELDS_MAX, &n, &next);
    for (guint i = 0; state == RS_JSON_DONE && i < MIN(n, RECORD_FIELDS_MAX); i++)
        if (RS_JSON_IS(&c->fields[i].key, "ph"))
            return TRUE;
    return FALSE;
}

/* FALSE: it holds no events. */
static gboolean read_object(RsChrome *c, const gchar *p)
{
    gchar key[KEY_MAX];
    gboolean found = FALSE;
    p++;
    for (;;) {
        p = next_byte(c, p);
        if (!p)
            set_fault(c, "the object is not closed", c->window.end);
        if (!p || *p == '}')
            return found;
        if (*p == ',') {
            p++;
            continue;
        }
        if (*p != '"') {
            set_fault(c, "something that is no key", p);
            return found;
        }
        p = read_key(c, p, key);
        if (p && *p == '[' && g_str_equal(key, "traceEvents")) {
            found = TRUE;
            p = read_records(c, p + 1);
        } else if (p) {
            p = read_value(c, p, key);
        }
        if (!p)
            return found;
    }
}

static gboolean read_document(RsChrome *c)
{
    const gchar *p = c->window.buffer;
    gboolean found = FALSE;
    for (p = next_byte(c, p); p; p = next_byte(c, p)) {
        if (*p == '[') {
            p = read_records(c, p + 1);
            found = TRUE;
        } else if (*p == '{' && (found || is_bare_record(c, p))) {
            found = TRUE;
            if (!read_record(c, &p))
                return TRUE;
        } else if (*p == '{') {
            return read_object(c, p);
        } else if (*p == ',' || *p == ']') {
            p++;
        } else {
            set_fault(c, found ? "something behind the end of the events" : "no JSON", p);
            return found;
        }
        if (!p)
            return found;
    }
    return found;
}

/* ---- in words ---- */

static void say_values(const RsChrome *c, GString *text, const gchar *what, guint64 n)
{
    if (c->fault == what && n > 1)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " such values", n);
    else if (c->fault != what && n > 0)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " time%s: %s", n, rs_plural(n), what);
}

static void say_fault(RsChrome *c)
{
    if (!c->fault)
        return;
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 line = rs_json_window_line(&c->window, c->fault_offset);
    g_string_printf(text, "line %" G_GUINT64_FORMAT ": %s", line, c->fault);
    if (c->skipped)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " place%s skipped", c->skipped,
                               rs_plural(c->skipped));
    say_values(c, text, odd_value, c->odd_values);
    say_values(c, text, deep_value, c->deep_values);
    rs_builder_warn(c->b, c->path, c->fault_offset, "%s", text->str);
}

static void say_trouble(RsChrome *c)
{
    static const gchar *const texts[RS_CHROME_TROUBLES] = {
        [RS_CHROME_NO_TIME] = "without a time, left out",
        [RS_CHROME_ZERO_TIME] = "at time 0 in a trace of wall-clock times, left out",
        [RS_CHROME_NEGATIVE] = "with a negative duration, taken as 0",
        [RS_CHROME_OUT_OF_RANGE] = "out of the range of times, left out",
        [RS_CHROME_NO_PHASE] = "that are no events (no \"ph\"), left out",
        [RS_CHROME_UNKNOWN_PHASE] = "of unknown phases, left out",
        [RS_CHROME_NOT_SHOWN] = ("that are no part of a timeline (snapshots, memory dumps, clock "
                                 "marks), left out"),
        [RS_CHROME_END_ALONE] = "ends without a beginning",
        [RS_CHROME_BEGIN_ALONE] = "without an end, drawn to the end of the trace",
        [RS_CHROME_CROSSING] = "ended before what began in them",
        [RS_CHROME_ASYNC_END_ALONE] = "asynchronous ends without a beginning",
        [RS_CHROME_FLOW_START_ALONE] = "arrows without an end",
        [RS_CHROME_FLOW_END_ALONE] = "arrows without a start",
        [RS_CHROME_FLOW_BACK] = "arrows that go back in time: clocks that differ",
        [RS_CHROME_COUNTER_RANGE] = "values of counters beyond 3.4e38, left out",
        [RS_CHROME_ARGS_LEFT_OUT] =
            "with more than " G_STRINGIFY(RS_CHROME_ARGS_MAX) " arguments, some left out",
    };
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < RS_CHROME_TROUBLES; i++)
        if (c->trouble[i])
            g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " %s", text->len ? "; " : "",
                                   c->trouble[i], texts[i]);
    if (text->len)
        rs_builder_warn(c->b, c->path, 0, "of its events: %s", text->str);
    if (c->unit_digits == 0)
        rs_builder_warn(c->b, c->path, 0,
                        "its times are too great for microseconds: read as nanoseconds");
    else if (c->last_ns - c->least_ns > 30 * G_GINT64_CONSTANT(86400000000000))
        rs_builder_warn(c->b, c->path, 0,
                        "spans %.0f days: are its times microseconds, as the format has them?",
                        (gdouble)(c->last_ns - c->least_ns) / 86400e9);
}

/* ---- the reader ---- */

/* Whether times are those of a wall clock, where the first record may have none: "ts": 0. */
static gboolean looks_like_wall_time(RsInput *input)
{
    gsize n;
    const gchar *p = rs_input_head(input, &n), *end = p + n;
    for (guint i = 0; i < 64 && (p = memmem(p, (gsize)(end - p), "\"ts\"", 4)); i++) {
        RsJsonSpan v;
        guint32 rest;
        gint64 ns;
        p = rs_json_skip_space(p + 4, end);
        if (p < end && *p == ':' &&
            rs_json_value(rs_json_skip_space(p + 1, end), end, &v, &p) == RS_JSON_DONE &&
            rs_json_ns(&v, 3, &ns, &rest) && ns >= RS_CHROME_EPOCH_NS)
            return TRUE;
    }
    return FALSE;
}

static void chrome_init(RsChrome *c, RsBuilder *b, RsInput *input, const RsReadOptions *options)
{
    *c = (RsChrome){.b = b, .input = input, .options = options, .rank = -1, .unit_digits = 3};
    c->path = rs_input_path(input);
    c->max_member = c->own_member = -1;
    c->rescan_left = RESCAN_BYTES;
    c->implied_left = RS_CHROME_IMPLIED_MAX;
    c->host = g_string_new(NULL);
    c->text = g_string_new(NULL);
    c->sigs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    c->groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    c->group_ranks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c->stack = g_array_new(FALSE, FALSE, sizeof(RsChromeStackRow));
    c->async = g_array_new(FALSE, FALSE, sizeof(RsChromePairRow));
    c->flows = g_array_new(FALSE, FALSE, sizeof(RsChromePairRow));
    c->launches = g_array_new(FALSE, FALSE, sizeof(RsChromeLaunch));
    c->unnumbered = g_array_new(FALSE, FALSE, sizeof(RsChromeUnnumbered));
    rs_chrome_tracks_init(c);
    rs_chrome_horovod_init(c);
    rs_json_window_init(&c->window, input);
}

static void chrome_release(RsChrome *c)
{
    GArray *arrays[] = {c->stack, c->async, c->flows, c->launches, c->unnumbered};
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_array_unref(arrays[i]);
    g_hash_table_unref(c->sigs);
    g_hash_table_unref(c->groups);
    g_hash_table_unref(c->group_ranks);
    g_string_free(c->host, TRUE);
    g_string_free(c->text, TRUE);
    rs_chrome_tracks_release(c);
    rs_chrome_horovod_release(c);
    rs_json_window_release(&c->window);
}

/* torch's TensorBoard handler calls its files HOST_PID.TIME.pt.trace.json. */
static void find_host(RsChrome *c)
{
    g_autofree gchar *name = g_path_get_basename(c->path);
    gchar *end = strstr(name, ".pt.trace.json"), *dot = end ? strchr(name, '.') : NULL;
    if (!dot)
        return;
    *dot = '\0';
    gchar *pid = strrchr(name, '_');
    if (pid && pid > name && pid[1] && strspn(pid + 1, "0123456789") == strlen(pid + 1))
        g_string_append_len(c->host, name, pid - name);
}

static gboolean read_chrome(RsBuilder *b, RsInput *input, const RsReadOptions *options,
                            GError **error)
{
    g_autofree RsChrome *c = g_new(RsChrome, 1);
    chrome_init(c, b, input, options);
    find_host(c);
    c->epoch = looks_like_wall_time(input);
    gboolean found = read_document(c), any = c->records > 0;
    if (any) {
        rs_chrome_finish(c);
        say_fault(c);
        say_trouble(c);
    } else {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", c->path,
                    !found     ? "JSON without trace events (no \"traceEvents\")"
                    : c->fault ? c->fault
                               : "a trace without events");
    }
    chrome_release(c);
    return any;
}

static gboolean knows_chrome(const gchar *head, gsize n)
{
    const gchar *p = head, *end = head + n;
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    if (n >= 2 && ((guchar)p[0] ^ (guchar)p[1]) == 1 && (guchar)p[0] >= 0xfe)
        p += 2;
    while (p < end && (g_ascii_isspace(*p) || *p == '\0')) /* zeros: UTF-16 */
        p++;
    return p < end && (*p == '{' || *p == '[');
}

const RsReader rs_reader_chrome = {knows_chrome, read_chrome};
