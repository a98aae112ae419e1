/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "analyses/endings.h"
#include "names.h"

/* cJSON copies bytes as they are: bad ones are replaced first. */
static void add_text(cJSON *o, const char *key, const gchar *text)
{
    g_autofree gchar *valid = g_utf8_make_valid(text ? text : "", -1);
    cJSON_AddStringToObject(o, key, valid);
}

static cJSON *new_text(const gchar *text)
{
    g_autofree gchar *valid = g_utf8_make_valid(text, -1);
    return cJSON_CreateString(valid);
}

static void add_number(cJSON *o, const char *key, gdouble value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(o, key, value);
    else
        cJSON_AddNullToObject(o, key);
}

static void add_seconds(cJSON *o, const char *key, gint64 ns)
{
    add_number(o, key, ns < 0 ? NAN : (gdouble)ns / 1e9);
}

static cJSON *make_ending(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    cJSON *o = cJSON_CreateObject();
    add_number(o, "rank", r->rank);
    add_text(o, "ending", rs_ending_name(r->ending));
    add_seconds(o, "last_alive_s", r->last_ns);
    g_autofree gchar *call = r->open_event == RS_NONE ? NULL : rs_ending_dup_call(m, r->open_event);
    if (call)
        add_text(o, "call", call);
    else
        cJSON_AddNullToObject(o, "call");
    return o;
}

static void add_endings(cJSON *o, const RsModel *m)
{
    cJSON *endings = cJSON_AddArrayToObject(o, "early_endings");
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_ending_is_early(rs_model_rank(m, i)))
            cJSON_AddItemToArray(endings, make_ending(m, i));
}

static void add_ranks(cJSON *o, const GArray *ranks)
{
    cJSON *array = cJSON_AddArrayToObject(o, "ranks");
    for (guint i = 0; i < ranks->len; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(g_array_index(ranks, gint32, i)));
}

static void add_limited(cJSON *o, const RsModel *m)
{
    g_auto(RsLimited) l;
    rs_report_limited(m, &l);
    if (l.events == 0) {
        cJSON_AddNullToObject(o, "size_limit");
        return;
    }
    cJSON *limit = cJSON_AddObjectToObject(o, "size_limit");
    add_number(limit, "events", (gdouble)l.events);
    add_ranks(limit, l.ranks);
    add_seconds(limit, "from_s", l.from_ns);
    add_seconds(limit, "to_s", l.to_ns);
}

static void add_off(cJSON *o, const RsModel *m)
{
    g_auto(RsOff) off;
    rs_report_off(m, &off);
    if (off.times == 0) {
        cJSON_AddNullToObject(o, "switched_off");
        return;
    }
    cJSON *what = cJSON_AddObjectToObject(o, "switched_off");
    add_number(what, "times", (gdouble)off.times);
    add_ranks(what, off.ranks);
    add_seconds(what, "least_s", off.least_ns);
    add_seconds(what, "most_s", off.most_ns);
}

static void add_tracing(cJSON *o, const RsReport *r)
{
    RsTracing t = rs_report_tracing(r);
    if (!isfinite(t.event_ns)) {
        cJSON_AddNullToObject(o, "tracing");
        return;
    }
    cJSON *tracing = cJSON_AddObjectToObject(o, "tracing");
    add_number(tracing, "event_ns", t.event_ns);
    add_number(tracing, "total_s", t.total_ns / 1e9);
    add_number(tracing, "percent", t.percent);
    add_number(tracing, "drain_cpu_s", t.drain_ns / 1e9);
    add_number(tracing, "bytes", t.bytes);
}

static cJSON *make_run(const RsReport *r)
{
    const RsModel *m = r->model;
    cJSON *o = cJSON_CreateObject();
    add_text(o, "name", r->name);
    add_number(o, "ranks", m->world_size);
    cJSON *missing = cJSON_AddArrayToObject(o, "missing_ranks");
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->missing)
            cJSON_AddItemToArray(missing, cJSON_CreateNumber(rs_model_rank(m, i)->rank));
    add_endings(o, m);
    add_number(o, "hosts", m->hosts->len);
    cJSON *hosts = cJSON_AddArrayToObject(o, "host_names");
    for (guint i = 0; i < m->hosts->len; i++)
        cJSON_AddItemToArray(hosts, new_text(rs_model_host_name(m, i)));
    add_seconds(o, "duration_s", m->duration_ns);
    add_number(o, "steps", m->steps->len);
    add_text(o, "step_source", m->step_source);
    add_number(o, "events", m->events.n);
    add_number(o, "dropped_events", (gdouble)m->dropped);
    add_limited(o, m);
    add_off(o, m);
    add_tracing(o, r);
    cJSON_AddBoolToObject(o, "incomplete", m->incomplete);
    cJSON_AddBoolToObject(o, "cut", r->cut);
    cJSON_AddBoolToObject(o, "nccl_standin", rs_report_is_standin(m));
    return o;
}

static cJSON *make_clock(const RsModel *m)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "method", m->clock_method);
    add_number(o, "uncertainty_ns", (gdouble)m->clock_uncertainty_ns);
    cJSON_AddBoolToObject(o, "trusted", m->clock_trusted);
    return o;
}

static cJSON *make_breakdown(const RsModel *m, const RsBreakdown *b)
{
    cJSON *o = cJSON_CreateObject();
    add_number(o, "rank", rs_model_rank(m, b->rank)->rank);
    add_text(o, "host", rs_model_host_name(m, rs_model_rank(m, b->rank)->host));
    if (b->step != RS_NONE)
        add_number(o, "step", g_array_index(m->steps, RsStep, b->step).number);
    add_seconds(o, "wall", b->wall_ns);
    add_seconds(o, "compute", b->compute_ns);
    add_seconds(o, "communication_exposed", b->comm_exposed_ns);
    add_seconds(o, "communication_hidden", b->comm_hidden_ns);
    add_seconds(o, "wait", b->wait_ns);
    add_seconds(o, "io", b->io_ns);
    add_seconds(o, "idle", b->idle_ns);
    return o;
}

static cJSON *make_collective(const RsCollMetric *c)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "operation", rs_coll_name(c->coll));
    add_text(o, "api", rs_api_name(c->api));
    cJSON_AddBoolToObject(o, "device", c->device);
    add_number(o, "size_class_bytes", c->size_class == RS_NONE ? 0 : ldexp(1, (int)c->size_class));
    add_number(o, "count", (gdouble)c->count);
    add_number(o, "timed", (gdouble)c->timed);
    add_number(o, "sampled", (gdouble)c->sampled);
    add_number(o, "bytes", (gdouble)c->bytes);
    add_seconds(o, "call_s", c->call_ns_median);
    add_seconds(o, "wait_s", c->wait_ns_median);
    add_seconds(o, "transfer_s", c->transfer_ns_median);
    add_number(o, "algbw_call_bytes_per_s", c->algbw_call);
    add_number(o, "algbw_transfer_bytes_per_s", c->algbw_transfer);
    add_number(o, "busbw_call_bytes_per_s", c->busbw_call);
    add_number(o, "busbw_transfer_bytes_per_s", c->busbw_transfer);
    return o;
}

static cJSON *make_link(const RsModel *m, const RsLinkMetric *l)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "src_host", rs_model_host_name(m, l->src_host));
    add_text(o, "dst_host", rs_model_host_name(m, l->dst_host));
    add_number(o, "messages", (gdouble)l->messages);
    add_number(o, "bytes", (gdouble)l->bytes);
    add_seconds(o, "busy_s", l->busy_ns);
    add_number(o, "big_messages", (gdouble)l->big_messages);
    add_number(o, "big_from_bytes", (gdouble)l->big_from_bytes);
    add_number(o, "bandwidth_bytes_per_s", l->bandwidth);
    add_number(o, "best_bandwidth_bytes_per_s", l->best_bandwidth);
    return o;
}

static cJSON *make_metrics(const RsReport *r)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *run = cJSON_AddArrayToObject(o, "breakdown");
    cJSON *steps = cJSON_AddArrayToObject(o, "step_breakdown");
    for (guint i = 0; i < r->results->breakdown->len; i++) {
        const RsBreakdown *b = &g_array_index(r->results->breakdown, RsBreakdown, i);
        cJSON_AddItemToArray(b->step == RS_NONE ? run : steps, make_breakdown(r->model, b));
    }
    cJSON *colls = cJSON_AddArrayToObject(o, "collectives");
    for (guint i = 0; i < r->results->collectives->len; i++)
        cJSON_AddItemToArray(
            colls, make_collective(&g_array_index(r->results->collectives, RsCollMetric, i)));
    RsPop pop = rs_report_pop(r->results);
    cJSON *p = cJSON_AddObjectToObject(o, "pop");
    add_number(p, "parallel_efficiency", pop.parallel);
    add_number(p, "load_balance", pop.load_balance);
    add_number(p, "communication_efficiency", pop.communication);
    cJSON *links = cJSON_AddArrayToObject(o, "links");
    for (guint i = 0; i < r->results->links->len; i++)
        cJSON_AddItemToArray(
            links, make_link(r->model, &g_array_index(r->results->links, RsLinkMetric, i)));
    return o;
}

static void add_texts(cJSON *o, const char *key, const GPtrArray *texts)
{
    cJSON *a = cJSON_AddArrayToObject(o, key);
    for (guint i = 0; i < texts->len; i++)
        cJSON_AddItemToArray(a, new_text(g_ptr_array_index(texts, i)));
}

static cJSON *make_finding(const RsFinding *f)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "kind", f->kind);
    add_text(o, "title", f->title);
    add_text(o, "severity", f->severity);
    add_number(o, "confidence", f->confidence);
    add_number(o, "cost_s", f->cost_s);
    add_number(o, "cost_percent", f->cost_percent);
    add_ranks(o, f->ranks);
    add_texts(o, "hosts", f->hosts);
    cJSON *comms = cJSON_AddArrayToObject(o, "communicators");
    for (guint i = 0; i < f->communicators->len; i++) { /* 64 bits don't fit a JSON number */
        g_autofree gchar *hex = g_strdup_printf("0x%016" G_GINT64_MODIFIER "x",
                                                g_array_index(f->communicators, guint64, i));
        cJSON_AddItemToArray(comms, cJSON_CreateString(hex));
    }
    cJSON *steps = cJSON_AddArrayToObject(o, "steps");
    for (guint i = 0; i < f->steps->len; i++)
        cJSON_AddItemToArray(steps, cJSON_CreateNumber(g_array_index(f->steps, guint32, i)));
    add_number(o, "t_start_s", f->t_start_s);
    add_number(o, "t_end_s", f->t_end_s);
    add_texts(o, "evidence", f->evidence);
    add_text(o, "remedy", f->remedy);
    return o;
}

static cJSON *make_not_applicable(const RsNotApplicable *n)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "analysis", n->analysis);
    add_text(o, "reason", n->reason);
    return o;
}

static cJSON *make_warning(const RsWarning *w)
{
    cJSON *o = cJSON_CreateObject();
    add_text(o, "path", w->path);
    add_number(o, "offset", (gdouble)w->offset);
    add_text(o, "text", w->text);
    return o;
}

gchar *rs_report_json(const RsReport *r)
{
    cJSON *o = cJSON_CreateObject();
    add_number(o, "schema_version", RS_REPORT_SCHEMA_VERSION);
    cJSON_AddItemToObject(o, "run", make_run(r));
    cJSON_AddItemToObject(o, "clock", make_clock(r->model));
    cJSON_AddItemToObject(o, "metrics", make_metrics(r));
    cJSON *findings = cJSON_AddArrayToObject(o, "findings");
    for (guint i = 0; i < r->results->findings->len; i++)
        cJSON_AddItemToArray(findings, make_finding(g_ptr_array_index(r->results->findings, i)));
    cJSON *na = cJSON_AddArrayToObject(o, "not_applicable");
    for (guint i = 0; i < r->results->not_applicable->len; i++)
        cJSON_AddItemToArray(na,
                             make_not_applicable(g_ptr_array_index(r->results->not_applicable, i)));
    cJSON *warnings = cJSON_AddArrayToObject(o, "warnings");
    for (guint i = 0; i < r->model->warnings->len; i++)
        cJSON_AddItemToArray(warnings, make_warning(g_ptr_array_index(r->model->warnings, i)));
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    gchar *out = g_strconcat(text, "\n", NULL);
    cJSON_free(text);
    return out;
}
