/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export-sqlite.c - a run and its results as the tables of schemas/trace.sql.
 *
 * One transaction without a journal into a temporary file, prepared statements, indexes last.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyses/endings.h"
#include "export.h"
#include "names.h"
#include "sqlite-open.h"
#include "stream.h"
#include "trace-sql.h"

typedef struct {
    sqlite3 *db;
    const RsModel *m;
    int rc;             /* of the first failure */
    sqlite3_stmt *stmt; /* of the table being filled */
    const gchar *types;
} Db;

static void check(Db *d, int rc)
{
    if (d->rc == SQLITE_OK && rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
        d->rc = rc;
}

static void run_sql(Db *d, const gchar *sql)
{
    if (d->rc == SQLITE_OK)
        check(d, sqlite3_exec(d->db, sql, NULL, NULL, NULL));
}

static void run_section(Db *d, const gchar *name)
{
    g_autofree gchar *sql = rs_trace_sql_dup_section(name);
    run_sql(d, sql);
}

/* Begins to fill a table; one letter a column: i integer, x index (RS_NONE is NULL), n nanoseconds
 * (negative is NULL), d number (not finite is NULL), s text. */
static void fill(Db *d, const gchar *table, const gchar *types)
{
    sqlite3_finalize(d->stmt);
    d->stmt = NULL;
    d->types = types;
    GString *sql = g_string_new(NULL);
    g_string_append_printf(sql, "INSERT INTO %s VALUES(", table);
    for (gsize i = 0; types[i]; i++)
        g_string_append(sql, i ? ",?" : "?");
    g_string_append_c(sql, ')');
    if (d->rc == SQLITE_OK)
        check(d, sqlite3_prepare_v2(d->db, sql->str, -1, &d->stmt, NULL));
    g_string_free(sql, TRUE);
}

static void bind_one(Db *d, int column, char type, va_list *args)
{
    gint64 i;
    gdouble v;
    const gchar *text;
    switch (type) {
    case 's':
        text = va_arg(*args, const gchar *);
        check(d, sqlite3_bind_text(d->stmt, column, text ? text : "", -1, SQLITE_STATIC));
        return;
    case 'd':
        v = va_arg(*args, gdouble);
        check(d, isfinite(v) ? sqlite3_bind_double(d->stmt, column, v)
                             : sqlite3_bind_null(d->stmt, column));
        return;
    default:
        i = va_arg(*args, gint64);
        gboolean null = (type == 'x' && i == RS_NONE) || (type == 'n' && i < 0);
        check(d,
              null ? sqlite3_bind_null(d->stmt, column) : sqlite3_bind_int64(d->stmt, column, i));
    }
}

/* One row; integers of every kind are passed as gint64. */
static void row(Db *d, ...)
{
    if (d->rc != SQLITE_OK)
        return;
    va_list args;
    va_start(args, d);
    for (int i = 0; d->types[i]; i++)
        bind_one(d, i + 1, d->types[i], &args);
    va_end(args);
    check(d, sqlite3_step(d->stmt));
    sqlite3_reset(d->stmt);
}

#define I(value) ((gint64)(value))

/* ---- what names mean ---- */

typedef const gchar *(*Namer)(guint8 number);

static const gchar *class_name(guint8 klass)
{
    static const gchar *const names[RS_CLASS_COUNT] = {
        "other",        "collective", "collective start", "send",  "send start",
        "recv",         "recv start", "sendrecv",         "probe", "complete",
        "communicator", "group",      "environment"};
    return names[klass];
}

static const gchar *coll_name(guint8 coll)
{
    return rs_coll_name((enum rs_coll)coll);
}

static const gchar *ending_name(guint8 ending)
{
    return rs_ending_name((RsEnding)ending);
}

static void fill_enum(Db *d, const gchar *table, Namer name, guint8 n)
{
    fill(d, table, "is");
    for (guint8 i = 0; i < n; i++)
        row(d, I(i), name(i));
}

static void fill_enums(Db *d)
{
    fill_enum(d, "enum_kind", rs_kind_name, RS_KIND_COUNT);
    fill_enum(d, "enum_class", class_name, RS_CLASS_COUNT);
    fill_enum(d, "enum_api", rs_api_name, RS_API_COUNT);
    fill_enum(d, "enum_ending", ending_name, RS_ENDING_COUNT);
    fill_enum(d, "enum_collective", coll_name, RS_COLL_COUNT);
}

/* ---- the model ---- */

static void fill_run(Db *d)
{
    const RsModel *m = d->m;
    fill(d, "run", "iiisiisii");
    row(d, I(m->world_size), m->base_realtime_ns, m->duration_ns, m->clock_method,
        m->clock_uncertainty_ns, I(m->clock_trusted), m->step_source, I(m->incomplete),
        I(m->dropped));
    fill(d, "meta", "ss");
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, m->meta);
    while (g_hash_table_iter_next(&it, &key, &value))
        row(d, key, value);
    fill(d, "strings", "is");
    for (guint i = 0; i < m->strings->len; i++)
        row(d, I(i), g_ptr_array_index(m->strings, i));
    fill(d, "warnings", "isis");
    for (guint i = 0; i < m->warnings->len; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        row(d, I(i), w->path, I(w->offset), w->text);
    }
}

static void fill_places(Db *d)
{
    const RsModel *m = d->m;
    fill(d, "hosts", "iid");
    for (guint i = 0; i < m->hosts->len; i++) {
        const RsHost *h = &g_array_index(m->hosts, RsHost, i);
        row(d, I(i), I(h->name), h->nic_mbps);
    }
    fill(d, "clock_domains", "iiidi");
    for (guint i = 0; i < m->domains->len; i++) {
        const RsDomain *o = &g_array_index(m->domains, RsDomain, i);
        row(d, I(i), I(o->name), o->offset_ns, o->drift_ppm, o->uncertainty_ns);
    }
    fill(d, "ranks", "iiiiiiiiiiiiiix");
    for (guint i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        row(d, I(i), I(r->rank), I(r->host), I(r->domain), r->pid, I(r->program), I(r->path),
            I(r->note), r->first_ns, r->last_ns, I(r->events), I(r->dropped), I(r->ending),
            I(r->missing), I(r->open_event));
    }
    fill(d, "tracks", "iiiii");
    for (guint i = 0; i < m->tracks->len; i++) {
        const RsTrack *t = &g_array_index(m->tracks, RsTrack, i);
        row(d, I(i), I(t->rank), I(t->name), I(t->tid), I(t->device));
    }
}

static void fill_comms(Db *d)
{
    const RsModel *m = d->m;
    fill(d, "communicators", "iiiiiii");
    for (guint i = 0; i < m->comms->len; i++) {
        const RsComm *c = &g_array_index(m->comms, RsComm, i);
        row(d, I(i), I(c->identity), I(c->parent), I(c->api), I(c->size), I(c->n_members),
            I(c->name));
    }
    fill(d, "communicator_members", "iii");
    for (guint i = 0; i < m->comms->len; i++) {
        const RsComm *c = &g_array_index(m->comms, RsComm, i);
        for (guint32 k = 0; k < c->n_members; k++)
            if (c->members[k] != RS_NONE)
                row(d, I(i), I(k), I(c->members[k]));
    }
    fill(d, "signatures", "iiiiiiiiiixiiiiiii");
    for (guint i = 0; i < m->sigs->len; i++) {
        const RsSig *s = &g_array_index(m->sigs, RsSig, i);
        row(d, I(i), I(s->kind), I(s->klass), I(s->coll), I(s->api), I(s->op), I(s->member),
            I(s->name), I(s->dtype), I(s->redop), I(s->comm), I(s->peer), I(s->tag), I(s->domain),
            I(s->category), I(s->color), I(s->count), I(s->bytes));
    }
}

/* The one table that is large: bound without the detour over letters. */
static void fill_events(Db *d, const RsExport *x)
{
    const RsEvents *e = &d->m->events;
    fill(d, "events", "iiiiiiiix");
    for (guint t = 0; t < d->m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(d->m->tracks, RsTrack, t);
        for (guint32 i = track->first; i < track->first + track->n && d->rc == SQLITE_OK; i++) {
            sqlite3_bind_int64(d->stmt, 1, i);
            sqlite3_bind_int64(d->stmt, 2, t);
            sqlite3_bind_int64(d->stmt, 3, e->sig[i]);
            sqlite3_bind_int64(d->stmt, 4, e->start_ns[i]);
            sqlite3_bind_int64(d->stmt, 5, e->end_ns[i]);
            sqlite3_bind_int64(d->stmt, 6, e->flags[i]);
            sqlite3_bind_int64(d->stmt, 7, e->aux[i]);
            sqlite3_bind_int64(d->stmt, 8, e->seq[i]);
            if (e->link[i] == RS_NONE)
                sqlite3_bind_null(d->stmt, 9);
            else
                sqlite3_bind_int64(d->stmt, 9, e->link[i]);
            check(d, sqlite3_step(d->stmt));
            sqlite3_reset(d->stmt);
        }
        if (x->progress)
            x->progress((gdouble)(t + 1) / (d->m->tracks->len + 1), "writing SQLite", x->data);
    }
}

static void fill_counters(Db *d)
{
    fill(d, "counters", "id");
    for (guint32 i = 0; i < d->m->events.n; i++) {
        if (rs_model_sig(d->m, i)->kind != RS_KIND_COUNTER)
            continue;
        union {
            guint32 bits;
            gfloat value;
        } u = {.bits = d->m->events.seq[i]};
        row(d, I(i), (gdouble)u.value);
    }
}

/* A column whose type goes by the row: bound without letters, too. */
static void bind_arg_value(Db *d, const RsArg *a)
{
    union {
        guint64 bits;
        gdouble real;
    } u = {.bits = a->value};
    if (a->type == 4 || (a->type == 3 && !isfinite(u.real)))
        sqlite3_bind_null(d->stmt, 6);
    else if (a->type == 3)
        sqlite3_bind_double(d->stmt, 6, u.real);
    else
        sqlite3_bind_int64(d->stmt, 6, (gint64)a->value);
}

static void fill_args(Db *d)
{
    const GArray *args = d->m->args;
    gint64 position = 0;
    fill(d, "event_args", "iiiiiii");
    for (guint i = 0; i < args->len && d->rc == SQLITE_OK; i++) {
        const RsArg *a = &g_array_index(args, RsArg, i);
        position = i > 0 && a[-1].event == a->event ? position + 1 : 0;
        sqlite3_bind_int64(d->stmt, 1, a->event);
        sqlite3_bind_int64(d->stmt, 2, position);
        sqlite3_bind_int64(d->stmt, 3, a->schema);
        sqlite3_bind_int64(d->stmt, 4, a->name);
        sqlite3_bind_int64(d->stmt, 5, a->type);
        bind_arg_value(d, a);
        sqlite3_bind_int64(d->stmt, 7, a->text);
        check(d, sqlite3_step(d->stmt));
        sqlite3_reset(d->stmt);
    }
}

static void fill_members(Db *d, guint id, guint32 first, guint32 n)
{
    for (guint32 k = 0; k < n; k++) {
        guint32 e = g_array_index(d->m->member_events, guint32, first + k);
        if (e != RS_NONE)
            row(d, I(id), I(k), I(e));
    }
}

static void fill_gatherings(Db *d)
{
    const RsModel *m = d->m;
    fill(d, "instances", "iiiiiiiixxiiii");
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *o = &g_array_index(m->instances, RsInstance, i);
        row(d, I(i), I(o->comm), I(o->seq), I(o->sig), I(o->n_present), o->first_arrival_ns,
            o->last_arrival_ns, o->last_end_ns, I(o->last_rank), I(o->step), I(o->complete),
            I(o->timed), I(o->warmup), I(o->mismatched));
    }
    fill(d, "instance_members", "iii");
    for (guint i = 0; i < m->instances->len; i++) {
        const RsInstance *o = &g_array_index(m->instances, RsInstance, i);
        fill_members(d, i, o->first_member, g_array_index(m->comms, RsComm, o->comm).n_members);
    }
    fill(d, "rendezvous", "iiiiiiixx");
    for (guint i = 0; i < m->rendezvous->len; i++) {
        const RsRendezvous *o = &g_array_index(m->rendezvous, RsRendezvous, i);
        row(d, I(i), I(o->name), I(o->occurrence), I(o->n_present), o->first_arrival_ns,
            o->last_arrival_ns, o->last_end_ns, I(o->last_rank), I(o->step));
    }
    fill(d, "rendezvous_members", "iii");
    for (guint i = 0; i < m->rendezvous->len; i++)
        fill_members(d, i, g_array_index(m->rendezvous, RsRendezvous, i).first_member,
                     m->ranks->len);
}

static void fill_messages_and_steps(Db *d)
{
    const RsModel *m = d->m;
    fill(d, "messages", "ixxxxiiixi");
    for (guint i = 0; i < m->messages->len; i++) {
        const RsMessage *o = &g_array_index(m->messages, RsMessage, i);
        row(d, I(i), I(o->send), I(o->recv), I(o->src), I(o->dst), I(o->bytes), o->both_ns,
            o->end_ns, I(o->step), I(o->timed));
    }
    fill(d, "steps", "iiiii");
    for (guint i = 0; i < m->steps->len; i++) {
        const RsStep *s = &g_array_index(m->steps, RsStep, i);
        row(d, I(i), I(s->number), I(s->complete), s->start_ns, s->end_ns);
    }
    fill(d, "step_spans", "iiii");
    for (guint i = 0; i < m->steps->len; i++)
        for (guint r = 0; r < m->ranks->len; r++) {
            guint32 first = g_array_index(m->steps, RsStep, i).first_span;
            const RsSpan *s = &g_array_index(m->step_spans, RsSpan, first + r);
            if (s->end_ns > s->start_ns)
                row(d, I(i), I(r), s->start_ns, s->end_ns);
        }
}

/* ---- results ---- */

static void fill_finding_lists(Db *d, const GPtrArray *findings)
{
#define EACH(table, types, list, ...)                                                              \
    fill(d, table, types);                                                                         \
    for (guint i = 0; i < findings->len; i++) {                                                    \
        const RsFinding *f = g_ptr_array_index(findings, i);                                       \
        for (guint k = 0; k < f->list->len; k++)                                                   \
            row(d, I(i), __VA_ARGS__);                                                             \
    }
    EACH("finding_ranks", "ii", ranks, I(g_array_index(f->ranks, gint32, k)))
    EACH("finding_hosts", "is", hosts, g_ptr_array_index(f->hosts, k))
    EACH("finding_communicators", "ii", communicators,
         I(g_array_index(f->communicators, guint64, k)))
    EACH("finding_steps", "ii", steps, I(g_array_index(f->steps, guint32, k)))
    EACH("finding_evidence", "iis", evidence, I(k), g_ptr_array_index(f->evidence, k))
#undef EACH
}

static void fill_findings(Db *d, const RsResults *r)
{
    fill(d, "findings", "isssddddds");
    for (guint i = 0; i < r->findings->len; i++) {
        const RsFinding *f = g_ptr_array_index(r->findings, i);
        row(d, I(i), f->kind, f->title, f->severity, f->confidence, f->cost_s, f->cost_percent,
            f->t_start_s, f->t_end_s, f->remedy);
    }
    fill_finding_lists(d, r->findings);
    fill(d, "not_applicable", "ss");
    for (guint i = 0; i < r->not_applicable->len; i++) {
        const RsNotApplicable *n = g_ptr_array_index(r->not_applicable, i);
        row(d, n->analysis, n->reason);
    }
}

static void fill_metrics(Db *d, const RsResults *r)
{
    fill(d, "breakdown", "ixiiiiiii");
    for (guint i = 0; i < r->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(r->breakdown, RsBreakdown, i);
        row(d, I(b->rank), I(b->step), b->wall_ns, b->compute_ns, b->comm_exposed_ns,
            b->comm_hidden_ns, b->wait_ns, b->io_ns, b->idle_ns);
    }
    fill(d, "collective_metrics", "iiixiiiinnniidddd");
    for (guint i = 0; i < r->collectives->len; i++) {
        const RsCollMetric *c = &g_array_index(r->collectives, RsCollMetric, i);
        row(d, I(c->coll), I(c->api), I(c->device), I(c->size_class), I(c->count), I(c->timed),
            I(c->sampled), I(c->bytes), c->call_ns_median, c->wait_ns_median, c->transfer_ns_median,
            c->wait_ns_sum, c->transfer_ns_sum, c->algbw_call, c->algbw_transfer, c->busbw_call,
            c->busbw_transfer);
    }
    fill(d, "link_metrics", "iiiiiiidd");
    for (guint i = 0; i < r->links->len; i++) {
        const RsLinkMetric *l = &g_array_index(r->links, RsLinkMetric, i);
        row(d, I(l->src_host), I(l->dst_host), I(l->messages), I(l->bytes), l->busy_ns,
            I(l->big_messages), I(l->big_from_bytes), l->bandwidth, l->best_bandwidth);
    }
}

static void fill_all(Db *d, const RsExport *x)
{
    run_sql(d, "PRAGMA page_size=8192; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
               "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-65536; PRAGMA foreign_keys=OFF");
    run_section(d, "tables");
    run_sql(d, "BEGIN");
    fill_enums(d);
    fill_run(d);
    fill_places(d);
    fill_comms(d);
    fill_events(d, x);
    fill_counters(d);
    fill_args(d);
    fill_gatherings(d);
    fill_messages_and_steps(d);
    if (x->results) {
        fill_findings(d, x->results);
        fill_metrics(d, x->results);
    }
    sqlite3_finalize(d->stmt);
    d->stmt = NULL;
    run_section(d, "indexes");
    run_section(d, "views");
    run_sql(d, "COMMIT");
}

gboolean rs_export_sqlite(const RsExport *x, const gchar *path, GError **error)
{
    g_autofree gchar *temporary = rs_export_dup_temporary(path);
    Db d = {.m = x->model};
    if (!rs_export_make_private(temporary, path, error))
        return FALSE;
    g_autofree gchar *name = rs_sqlite_dup_name(temporary);
    check(&d, sqlite3_open_v2(name, &d.db, SQLITE_OPEN_READWRITE, NULL));
    fill_all(&d, x);
    g_autofree gchar *why = g_strdup(d.db ? sqlite3_errmsg(d.db) : sqlite3_errstr(d.rc));
    int rc = sqlite3_close(d.db);
    check(&d, rc);
    if (d.rc == SQLITE_OK && rename(temporary, path) == 0)
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't be written: %s", path,
                d.rc == SQLITE_OK ? g_strerror(errno) : why);
    unlink(temporary);
    return FALSE;
}
