/* SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>

#include "status.h"

static void add_text(cJSON *o, const char *key, const gchar *text)
{
    g_autofree gchar *valid = text ? g_utf8_make_valid(text, -1) : NULL;
    if (valid)
        cJSON_AddStringToObject(o, key, valid);
    else
        cJSON_AddNullToObject(o, key);
}

static void add_seconds(cJSON *o, const char *key, gboolean known, gint64 ns)
{
    if (known)
        cJSON_AddNumberToObject(o, key, (gdouble)MAX(ns, 0) / 1e9);
    else
        cJSON_AddNullToObject(o, key);
}

static void add_ranks(cJSON *o, const char *key, const RsModel *m, const GArray *ranks)
{
    cJSON *a = cJSON_AddArrayToObject(o, key);
    for (guint i = 0; ranks && i < ranks->len; i++)
        cJSON_AddItemToArray(
            a, cJSON_CreateNumber(rs_model_rank(m, g_array_index(ranks, guint32, i))->rank));
}

static void add_stack(cJSON *o, const GPtrArray *stack)
{
    if (!stack) {
        cJSON_AddNullToObject(o, "stack");
        return;
    }
    cJSON *a = cJSON_AddArrayToObject(o, "stack");
    for (guint i = 0; i < stack->len; i++) {
        g_autofree gchar *valid = g_utf8_make_valid(g_ptr_array_index(stack, i), -1);
        cJSON_AddItemToArray(a, cJSON_CreateString(valid));
    }
}

static cJSON *make_rank(const RsStatus *s, guint32 rank)
{
    const RsModel *m = s->model;
    const RsRank *r = rs_model_rank(m, rank);
    const RsRankStatus *t = &s->ranks[rank];
    g_autofree gchar *call = t->call == RS_NONE ? NULL : rs_ending_dup_call(m, t->call);
    g_autofree gchar *last = t->last == RS_NONE ? NULL : rs_ending_dup_call(m, t->last);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "rank", r->rank);
    add_text(o, "host", rs_model_str(m, g_array_index(m->hosts, RsHost, r->host).name));
    cJSON_AddNumberToObject(o, "pid", (gdouble)r->pid);
    add_text(o, "state", rs_ending_name(r->ending));
    add_text(o, "call", call);
    add_seconds(o, "call_s", call != NULL, t->call_ns);
    add_text(o, "last_call", last);
    add_seconds(o, "last_call_ago_s", last != NULL, t->last_ns);
    add_ranks(o, "waits_for", m, s->waits[rank].targets);
    add_stack(o, t->stack);
    return o;
}

static cJSON *make_ranks(const RsStatus *s)
{
    cJSON *a = cJSON_CreateArray();
    for (guint32 i = 0; i < s->model->ranks->len; i++)
        if (!rs_model_rank(s->model, i)->missing)
            cJSON_AddItemToArray(a, make_rank(s, i));
    return a;
}

static cJSON *make_progress(const RsStatus *s, const RsProgressAt *at)
{
    const RsComm *c = &g_array_index(s->model->comms, RsComm, at->comm);
    g_autofree gchar *hex = g_strdup_printf("0x%016" G_GINT64_MODIFIER "x", c->identity);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "communicator", hex);
    add_text(o, "name", rs_model_str(s->model, c->name));
    cJSON_AddNumberToObject(o, "rank", rs_model_rank(s->model, at->rank)->rank);
    cJSON_AddNumberToObject(o, "number", at->number);
    return o;
}

gchar *rs_status_json(const RsStatus *s)
{
    const RsModel *m = s->model;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "schema_version", RS_STATUS_SCHEMA_VERSION);
    add_text(o, "name", s->name);
    cJSON_AddNumberToObject(o, "world_size", m->world_size);
    g_autoptr(GArray) unknown = g_array_new(FALSE, FALSE, sizeof(guint32));
    g_autoptr(GArray) roots = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = 0; i < m->ranks->len; i++) {
        if (rs_model_rank(m, i)->missing)
            g_array_append_val(unknown, i);
        if (s->roots[i])
            g_array_append_val(roots, i);
    }
    add_ranks(o, "without_capture", m, unknown);
    add_ranks(o, "missing", m, roots);
    add_ranks(o, "deadlock", m, s->cycle);
    cJSON_AddItemToObject(o, "ranks", make_ranks(s));
    cJSON *progress = cJSON_AddArrayToObject(o, "progress");
    for (guint i = 0; i < s->progress->len; i++)
        cJSON_AddItemToArray(progress,
                             make_progress(s, &g_array_index(s->progress, RsProgressAt, i)));
    add_text(o, "no_stacks", s->no_stacks);
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    gchar *out = g_strconcat(text, "\n", NULL);
    cJSON_free(text);
    return out;
}
