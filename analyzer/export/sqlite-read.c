/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite-read.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "model-internal.h"
#include "sqlite-open.h"
#include "trace-sql.h"

#define LIMIT_S           600.0
#define PRODUCT_MAX       (1u << 27) /* of rows that a small file may claim */
#define MEMBERS_PER_EVENT 4096

typedef struct {
    RsSqlite sql;
    const gchar *path;
    RsModel *m;
    GError **error;
    gboolean failed;
    sqlite3_stmt *st; /* of the table being read */
    const gchar *table;
    gint64 row;
} Reader;

static void fail(Reader *r, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
static void fail(Reader *r, const gchar *format, ...)
{
    if (r->failed)
        return;
    r->failed = TRUE;
    va_list args;
    va_start(args, format);
    g_autofree gchar *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(r->error, RS_ERROR, RS_ERROR_UNREADABLE,
                "%s: %s; export the run again from its captures", r->path, what);
}

/* ---- a table, row by row ---- */

static void begin(Reader *r, const gchar *table, const gchar *columns, const gchar *order)
{
    sqlite3_finalize(r->st);
    r->st = NULL;
    r->table = table;
    r->row = -1;
    if (r->failed)
        return;
    g_autofree gchar *sql = g_strdup_printf("SELECT %s FROM %s%s%s", columns, table,
                                            order ? " ORDER BY " : "", order ? order : "");
    if (sqlite3_prepare_v2(r->sql.db, sql, -1, &r->st, NULL) != SQLITE_OK)
        fail(r, "damaged: table %s: %s", table, sqlite3_errmsg(r->sql.db));
}

static gboolean next(Reader *r)
{
    if (r->failed)
        return FALSE;
    int rc = sqlite3_step(r->st);
    r->row++;
    if (rc == SQLITE_ROW)
        return TRUE;
    if (rc == SQLITE_INTERRUPT)
        fail(r, "takes longer than %.0f s to read", LIMIT_S);
    else if (rc != SQLITE_DONE)
        fail(r, "damaged: table %s: %s", r->table, sqlite3_errmsg(r->sql.db));
    return FALSE;
}

static gint64 integer(Reader *r, int column, gint64 min, gint64 max)
{
    gint64 v = sqlite3_column_int64(r->st, column);
    if (sqlite3_column_type(r->st, column) == SQLITE_INTEGER && v >= min && v <= max)
        return v;
    fail(r, "damaged: table %s, row %" G_GINT64_FORMAT ", column %s can't be what it is", r->table,
         r->row, sqlite3_column_name(r->st, column));
    return min;
}

static gint64 any_integer(Reader *r, int column)
{
    return integer(r, column, G_MININT64, G_MAXINT64);
}

static guint32 index_in(Reader *r, int column, guint n)
{
    return (guint32)integer(r, column, 0, (gint64)n - 1);
}

static guint32 index_or_none(Reader *r, int column, guint n)
{
    return sqlite3_column_type(r->st, column) == SQLITE_NULL ? RS_NONE : index_in(r, column, n);
}

/* Ids count from 0 without holes: they are the model's own numbers. */
static void check_id(Reader *r)
{
    integer(r, 0, r->row, r->row);
}

static gchar *dup_text(Reader *r, int column)
{
    const gchar *text = (const gchar *)sqlite3_column_text(r->st, column);
    return g_utf8_make_valid(text ? text : "", -1);
}

static const gchar *interned(Reader *r, int column)
{
    g_autofree gchar *text = dup_text(r, column);
    return g_intern_string(text);
}

static RsStr string(Reader *r, int column)
{
    return index_in(r, column, r->m->strings->len);
}

/* ---- the tables, in an order in which what is pointed to comes first ---- */

static void read_run(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "run",
          "world_size, base_unix_ns, duration_ns, clock_method, clock_uncertainty_ns,"
          "clock_trusted, step_source, incomplete, dropped_events",
          NULL);
    if (!next(r)) {
        fail(r, "damaged: table run is empty");
        return;
    }
    m->world_size = (gint32)integer(r, 0, 0, G_MAXINT32);
    m->base_realtime_ns = any_integer(r, 1);
    m->duration_ns = integer(r, 2, 0, G_MAXINT64 / 4);
    m->clock_method = interned(r, 3);
    m->clock_uncertainty_ns = integer(r, 4, 0, G_MAXINT64 / 4);
    m->clock_trusted = (gboolean)integer(r, 5, 0, 1);
    m->step_source = interned(r, 6);
    m->incomplete = (gboolean)integer(r, 7, 0, 1);
    m->dropped = (guint64)any_integer(r, 8);
}

static void read_texts(Reader *r)
{
    begin(r, "strings", "id, text", "id");
    while (next(r)) {
        check_id(r);
        g_ptr_array_add(r->m->strings, dup_text(r, 1));
    }
    if (r->m->strings->len == 0)
        fail(r, "damaged: table strings is empty");
    begin(r, "meta", "key, value", "key");
    while (next(r))
        g_hash_table_replace(r->m->meta, dup_text(r, 0), dup_text(r, 1));
    begin(r, "warnings", "id, path, offset, text", "id");
    while (next(r)) {
        RsWarning *w = g_new0(RsWarning, 1);
        *w = (RsWarning){dup_text(r, 1), (guint64)any_integer(r, 2), dup_text(r, 3)};
        g_ptr_array_add(r->m->warnings, w);
    }
}

static void read_places(Reader *r)
{
    begin(r, "hosts", "id, name_id, nic_mbps", "id");
    while (next(r)) {
        check_id(r);
        RsHost h = {string(r, 1), sqlite3_column_double(r->st, 2)};
        g_array_append_val(r->m->hosts, h);
    }
    begin(r, "clock_domains", "id, name_id, offset_ns, drift_ppm, uncertainty_ns", "id");
    while (next(r)) {
        check_id(r);
        RsDomain d = {.name = string(r, 1), .offset_ns = any_integer(r, 2)};
        d.drift_ppm = sqlite3_column_double(r->st, 3);
        d.uncertainty_ns = integer(r, 4, 0, G_MAXINT64 / 4);
        g_array_append_val(r->m->domains, d);
    }
}

static void read_ranks(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "ranks",
          "id, rank, host_id, domain_id, pid, program_id, path_id, note_id, first_ns,"
          "last_ns, events, dropped, ending, missing, open_event_id",
          "id");
    while (next(r)) {
        check_id(r);
        RsRank k = {.rank = (gint32)integer(r, 1, -1, G_MAXINT32)};
        k.host = index_in(r, 2, m->hosts->len);
        k.domain = index_in(r, 3, m->domains->len);
        k.pid = any_integer(r, 4);
        k.program = string(r, 5);
        k.path = string(r, 6);
        k.note = string(r, 7);
        k.first_ns = any_integer(r, 8);
        k.last_ns = any_integer(r, 9);
        k.events = (guint64)any_integer(r, 10);
        k.dropped = (guint64)any_integer(r, 11);
        k.ending = (RsEnding)integer(r, 12, 0, RS_ENDING_COUNT - 1);
        k.missing = (gboolean)integer(r, 13, 0, 1);
        k.open_event = index_or_none(r, 14, RS_NONE); /* checked once there are events */
        g_array_append_val(m->ranks, k);
    }
}

static void read_tracks(Reader *r)
{
    RsModel *m = r->m;
    guint32 last = 0;
    begin(r, "tracks", "id, rank_id, name_id, tid, device", "id");
    while (next(r)) {
        check_id(r);
        RsTrack t = {.rank = index_in(r, 1, m->ranks->len), .name = string(r, 2)};
        t.tid = (guint64)any_integer(r, 3);
        t.device = (gboolean)integer(r, 4, 0, 1);
        if (t.rank < last)
            fail(r, "damaged: table tracks is not in order of ranks");
        last = t.rank;
        if (r->failed)
            return;
        RsRank *k = rs_model_rank(m, t.rank);
        if (k->n_tracks++ == 0)
            k->first_track = m->tracks->len;
        g_array_append_val(m->tracks, t);
    }
}

static void read_comms(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "communicators", "id, identity, parent, api, size, members, name_id", "id");
    while (next(r)) {
        check_id(r);
        RsComm c = {.identity = (guint64)any_integer(r, 1), .parent = (guint64)any_integer(r, 2)};
        c.api = (guint32)integer(r, 3, 0, 255);
        c.size = (gint32)integer(r, 4, G_MININT32, G_MAXINT32);
        c.n_members = (guint32)integer(r, 5, 0, 1 << 20);
        c.name = string(r, 6);
        c.members = g_new(guint32, c.n_members + 1);
        for (guint32 k = 0; k < c.n_members; k++)
            c.members[k] = RS_NONE;
        g_array_append_val(m->comms, c);
    }
    begin(r, "communicator_members", "communicator_id, member, rank_id", NULL);
    while (next(r)) {
        guint32 i = index_in(r, 0, m->comms->len);
        if (r->failed)
            return;
        RsComm *c = &g_array_index(m->comms, RsComm, i);
        guint32 k = index_in(r, 1, c->n_members), rank = index_in(r, 2, m->ranks->len);
        if (!r->failed)
            c->members[k] = rank;
    }
}

static void read_signatures(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "signatures",
          "id, kind, class, collective, api, op, member, name_id, datatype_id,"
          "reduction_id, communicator_id, peer, tag, range_domain_id,"
          "range_category_id, color, count, bytes",
          "id");
    while (next(r)) {
        check_id(r);
        RsSig s = {.kind = (guint8)integer(r, 1, 0, RS_KIND_COUNT - 1)};
        s.klass = (guint8)integer(r, 2, 0, RS_CLASS_COUNT - 1);
        s.coll = (guint8)integer(r, 3, 0, RS_COLL_COUNT - 1);
        s.api = (guint8)integer(r, 4, 0, RS_API_COUNT - 1);
        s.op = (guint16)integer(r, 5, 0, G_MAXUINT16);
        s.member = (guint16)integer(r, 6, 0, G_MAXUINT16);
        s.name = string(r, 7);
        s.dtype = string(r, 8);
        s.redop = string(r, 9);
        s.comm = index_or_none(r, 10, m->comms->len);
        s.peer = (gint32)integer(r, 11, G_MININT32, G_MAXINT32);
        s.tag = (gint32)integer(r, 12, G_MININT32, G_MAXINT32);
        s.domain = string(r, 13);
        s.category = string(r, 14);
        s.color = (guint32)integer(r, 15, 0, G_MAXUINT32);
        s.count = (guint64)any_integer(r, 16);
        s.bytes = (guint64)any_integer(r, 17);
        g_array_append_val(m->sigs, s);
    }
}

/* ---- events ---- */

static void grow(RsEvents *e, guint32 room)
{
    e->start_ns = g_renew(gint64, e->start_ns, room);
    e->end_ns = g_renew(gint64, e->end_ns, room);
    e->sig = g_renew(guint32, e->sig, room);
    e->flags = g_renew(guint16, e->flags, room);
    e->aux = g_renew(guint16, e->aux, room);
    e->seq = g_renew(guint32, e->seq, room);
    e->link = g_renew(guint32, e->link, room);
}

static void read_event(Reader *r, guint32 *track, gint64 *last_start)
{
    RsModel *m = r->m;
    RsEvents *e = &m->events;
    guint32 i = e->n;
    guint32 t = index_in(r, 1, m->tracks->len);
    e->sig[i] = index_in(r, 2, m->sigs->len);
    e->start_ns[i] = integer(r, 3, 0, G_MAXINT64 / 4);
    e->end_ns[i] = integer(r, 4, e->start_ns[i], G_MAXINT64 / 4);
    e->flags[i] = (guint16)integer(r, 5, 0, G_MAXUINT16);
    e->aux[i] = (guint16)integer(r, 6, 0, G_MAXUINT16);
    e->seq[i] = (guint32)integer(r, 7, 0, G_MAXUINT32);
    e->link[i] = index_or_none(r, 8, RS_NONE);
    if (t != *track)
        *last_start = 0;
    if (t < *track || e->start_ns[i] < *last_start)
        fail(r, "damaged: table events, row %u, is not in order", i);
    if (r->failed)
        return;
    for (; *track < t; ++*track)
        g_array_index(m->tracks, RsTrack, *track + 1).first = i;
    *last_start = e->start_ns[i];
    g_array_index(m->tracks, RsTrack, t).n++;
    e->n++;
}

static void read_events(Reader *r, RsProgress progress, gpointer data)
{
    RsModel *m = r->m;
    guint64 total = 0, room = 1024;
    for (guint i = 0; i < m->ranks->len; i++)
        total += rs_model_rank(m, i)->events;
    grow(&m->events, (guint32)room);
    guint32 track = 0;
    gint64 last_start = 0;
    begin(r, "events",
          "id, track_id, signature_id, start_ns, end_ns, flags, depth, seq,"
          "link_event_id",
          "id");
    while (next(r)) {
        check_id(r);
        if (m->events.n + 2 >= room) {
            room = MIN(room * 2, G_MAXUINT32);
            grow(&m->events, (guint32)room);
        }
        if (m->events.n >= G_MAXUINT32 - 2)
            fail(r, "holds more events than can be read");
        else
            read_event(r, &track, &last_start);
        if (progress && (m->events.n & 0xffff) == 0)
            progress(MIN(1, (gdouble)m->events.n / (gdouble)MAX(total, 1)), "reading SQLite", data);
    }
    for (; track + 1 < m->tracks->len; track++)
        g_array_index(m->tracks, RsTrack, track + 1).first = m->events.n;
    for (guint32 i = 0; i < m->events.n; i++)
        if (m->events.link[i] != RS_NONE && m->events.link[i] >= m->events.n)
            m->events.link[i] = RS_NONE;
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->open_event >= m->events.n)
            rs_model_rank(m, i)->open_event = RS_NONE;
}

/* Files of before it was there lack the table. */
static void read_args(Reader *r)
{
    RsModel *m = r->m;
    if (r->failed || sqlite3_table_column_metadata(r->sql.db, NULL, "event_args", NULL, NULL, NULL,
                                                   NULL, NULL, NULL) != SQLITE_OK)
        return;
    begin(r, "event_args", "event_id, position, schema_id, name_id, type, value, text_id",
          "event_id, position");
    while (next(r)) {
        union {
            guint64 bits;
            gdouble real;
        } u = {0};
        RsArg a = {.event = index_in(r, 0, m->events.n), .schema = string(r, 2)};
        a.name = string(r, 3);
        a.type = (guint32)integer(r, 4, 1, 4);
        a.text = string(r, 6);
        if (a.type == 3)
            u.real = sqlite3_column_type(r->st, 5) == SQLITE_NULL ? (gdouble)NAN
                                                                  : sqlite3_column_double(r->st, 5);
        else
            u.bits = (guint64)sqlite3_column_int64(r->st, 5);
        a.value = u.bits;
        if (!r->failed)
            g_array_append_val(m->args, a);
    }
}

/* ---- what was matched ---- */

static guint32 add_members(Reader *r, guint32 n)
{
    GArray *a = r->m->member_events;
    guint32 first = a->len;
    guint64 most = MIN((guint64)(r->m->events.n + 1) * MEMBERS_PER_EVENT, PRODUCT_MAX);
    if (first + (guint64)n > most) {
        fail(r, "damaged: table %s claims too many members", r->table);
        return first;
    }
    g_array_set_size(a, first + n);
    memset(&g_array_index(a, guint32, first), 0xff, n * sizeof(guint32));
    return first;
}

static void read_instances(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "instances",
          "id, communicator_id, seq, signature_id, present, first_arrival_ns,"
          "last_arrival_ns, last_end_ns, last_rank_id, step_id, complete, timed,"
          "warmup, mismatched",
          "id");
    while (next(r)) {
        check_id(r);
        RsInstance o = {.comm = index_in(r, 1, m->comms->len)};
        o.seq = (guint32)integer(r, 2, 0, G_MAXUINT32);
        o.sig = index_in(r, 3, m->sigs->len);
        o.n_present = (guint32)integer(r, 4, 0, G_MAXUINT32);
        o.first_arrival_ns = any_integer(r, 5);
        o.last_arrival_ns = any_integer(r, 6);
        o.last_end_ns = any_integer(r, 7);
        o.last_rank = index_or_none(r, 8, m->ranks->len);
        o.step = index_or_none(r, 9, m->steps->len);
        o.complete = (gboolean)integer(r, 10, 0, 1);
        o.timed = (gboolean)integer(r, 11, 0, 1);
        o.warmup = (gboolean)integer(r, 12, 0, 1);
        o.mismatched = (gboolean)integer(r, 13, 0, 1);
        if (!r->failed)
            o.first_member = add_members(r, g_array_index(m->comms, RsComm, o.comm).n_members);
        if (!r->failed)
            g_array_append_val(m->instances, o);
    }
    begin(r, "instance_members", "instance_id, member, event_id", NULL);
    while (next(r)) {
        guint32 i = index_in(r, 0, m->instances->len);
        if (r->failed)
            return;
        const RsInstance *o = &g_array_index(m->instances, RsInstance, i);
        guint32 k = index_in(r, 1, g_array_index(m->comms, RsComm, o->comm).n_members);
        guint32 e = index_in(r, 2, m->events.n);
        if (!r->failed)
            g_array_index(m->member_events, guint32, o->first_member + k) = e;
    }
}

static void read_rendezvous(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "rendezvous",
          "id, name_id, occurrence, present, first_arrival_ns, last_arrival_ns,"
          "last_end_ns, last_rank_id, step_id",
          "id");
    while (next(r)) {
        check_id(r);
        RsRendezvous o = {.name = string(r, 1)};
        o.occurrence = (guint32)integer(r, 2, 0, G_MAXUINT32);
        o.n_present = (guint32)integer(r, 3, 0, G_MAXUINT32);
        o.first_arrival_ns = any_integer(r, 4);
        o.last_arrival_ns = any_integer(r, 5);
        o.last_end_ns = any_integer(r, 6);
        o.last_rank = index_or_none(r, 7, m->ranks->len);
        o.step = index_or_none(r, 8, m->steps->len);
        o.first_member = add_members(r, m->ranks->len);
        if (!r->failed)
            g_array_append_val(m->rendezvous, o);
    }
    begin(r, "rendezvous_members", "rendezvous_id, rank_id, event_id", NULL);
    while (next(r)) {
        guint32 i = index_in(r, 0, m->rendezvous->len);
        guint32 k = index_in(r, 1, m->ranks->len), e = index_in(r, 2, m->events.n);
        if (r->failed)
            return;
        guint32 first = g_array_index(m->rendezvous, RsRendezvous, i).first_member;
        g_array_index(m->member_events, guint32, first + k) = e;
    }
}

static void read_messages(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "messages",
          "id, send_event_id, recv_event_id, src_rank_id, dst_rank_id, bytes,"
          "both_ns, end_ns, step_id, timed",
          "id");
    while (next(r)) {
        check_id(r);
        RsMessage o = {.send = index_or_none(r, 1, m->events.n)};
        o.recv = index_or_none(r, 2, m->events.n);
        o.src = index_or_none(r, 3, m->ranks->len);
        o.dst = index_or_none(r, 4, m->ranks->len);
        o.bytes = (guint64)any_integer(r, 5);
        o.both_ns = any_integer(r, 6);
        o.end_ns = any_integer(r, 7);
        o.step = index_or_none(r, 8, m->steps->len);
        o.timed = integer(r, 9, 0, 1) && o.send != RS_NONE && o.recv != RS_NONE;
        g_array_append_val(m->messages, o);
    }
}

static void read_steps(Reader *r)
{
    RsModel *m = r->m;
    begin(r, "steps", "id, number, complete, start_ns, end_ns", "id");
    while (next(r)) {
        check_id(r);
        RsStep s = {.number = (guint32)integer(r, 1, 0, G_MAXUINT32)};
        s.complete = (gboolean)integer(r, 2, 0, 1);
        s.start_ns = any_integer(r, 3);
        s.end_ns = any_integer(r, 4);
        s.first_span = m->step_spans->len;
        if ((guint64)s.first_span + m->ranks->len > PRODUCT_MAX)
            fail(r, "damaged: too many steps for so many ranks");
        if (r->failed)
            return;
        g_array_set_size(m->step_spans, s.first_span + m->ranks->len);
        g_array_append_val(m->steps, s);
    }
    begin(r, "step_spans", "step_id, rank_id, start_ns, end_ns", NULL);
    while (next(r)) {
        guint32 i = index_in(r, 0, m->steps->len), k = index_in(r, 1, m->ranks->len);
        gint64 start = any_integer(r, 2), end = any_integer(r, 3);
        if (r->failed)
            return;
        guint32 first = g_array_index(m->steps, RsStep, i).first_span;
        g_array_index(m->step_spans, RsSpan, first + k) = (RsSpan){start, end};
    }
}

/* ---- whose file is it ---- */

static gint64 pragma(Reader *r, const gchar *name)
{
    g_autofree gchar *sql = g_strdup_printf("PRAGMA %s", name);
    sqlite3_stmt *st = NULL;
    gint64 v = 0;
    if (sqlite3_prepare_v2(r->sql.db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

static void check_origin(Reader *r)
{
    if (pragma(r, "application_id") != RS_TRACE_SQL_APPLICATION) {
        r->failed = TRUE;
        g_set_error(r->error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: an SQLite file, but not a run that Ringscope exported", r->path);
        return;
    }
    gint64 version = pragma(r, "user_version");
    if (version > RS_TRACE_SQL_VERSION || version < 1) {
        r->failed = TRUE;
        g_set_error(r->error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: of schema version %" G_GINT64_FORMAT
                    ", this Ringscope reads up to %d; use "
                    "a newer one",
                    r->path, version, RS_TRACE_SQL_VERSION);
    }
}

RsModel *rs_sqlite_read(const gchar *path, RsProgress progress, gpointer data, GError **error)
{
    Reader r = {.path = path, .error = error};
    if (!rs_sqlite_open(&r.sql, path, LIMIT_S, error))
        return NULL;
    r.m = rs_model_new();
    check_origin(&r);
    if (!r.failed) {
        read_run(&r);
        read_texts(&r);
        read_places(&r);
        read_ranks(&r);
        read_tracks(&r);
        read_comms(&r);
        read_signatures(&r);
        read_steps(&r);
        read_events(&r, progress, data);
        read_args(&r);
        read_instances(&r);
        read_rendezvous(&r);
        read_messages(&r);
    }
    sqlite3_finalize(r.st);
    rs_sqlite_close(&r.sql);
    if (r.failed)
        g_clear_pointer(&r.m, rs_model_free);
    return r.m;
}
