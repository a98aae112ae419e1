/* SPDX-License-Identifier: Apache-2.0 */
#include "model-internal.h"

#include <string.h>

static guint hash_sig(gconstpointer key)
{
    const guint32 *w = key;
    guint32 h = 2166136261u;
    for (gsize i = 0; i < sizeof(RsSig) / sizeof *w; i++)
        h = (h ^ w[i]) * 16777619u;
    return h ^ (h >> 15);
}

static gboolean equal_sig(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(RsSig)) == 0;
}

static void free_process(gpointer data)
{
    RsProcess *p = data;
    g_free(p->host);
    g_free(p->domain);
    g_free(p->program);
    g_free(p->path);
    g_free(p->note);
    g_array_unref(p->anchors);
    g_array_unref(p->probes);
    g_free(p);
}

static void clear_raw_comm(gpointer data)
{
    RsRawComm *c = data;
    g_free(c->world_ranks);
    g_array_unref(c->joins);
}

RsBuilder *rs_builder_new(void)
{
    RsBuilder *b = g_new0(RsBuilder, 1);
    b->model = rs_model_new();
    b->string_ids = g_hash_table_new(g_str_hash, g_str_equal);
    b->sig_ids = g_hash_table_new_full(hash_sig, equal_sig, g_free, NULL);
    b->comm_ids = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    b->processes = g_ptr_array_new_with_free_func(free_process);
    b->tracks = g_array_new(FALSE, FALSE, sizeof(RsRawTrack));
    b->raw_comms = g_array_new(FALSE, TRUE, sizeof(RsRawComm));
    g_array_set_clear_func(b->raw_comms, clear_raw_comm);
    b->events = g_array_new(FALSE, FALSE, sizeof(RsRawEvent));
    b->extras = g_array_new(FALSE, FALSE, sizeof(RsExtra));
    rs_builder_string(b, "");
    return b;
}

void rs_builder_free(RsBuilder *b)
{
    if (!b)
        return;
    rs_model_free(b->model);
    g_hash_table_unref(b->string_ids);
    g_hash_table_unref(b->sig_ids);
    g_hash_table_unref(b->comm_ids);
    g_ptr_array_unref(b->processes);
    g_array_unref(b->tracks);
    g_array_unref(b->raw_comms);
    if (b->events)
        g_array_unref(b->events);
    g_array_unref(b->extras);
    g_free(b->rank_of_process);
    g_free(b->whole_ns);
    g_free(b->process_of_track);
    g_free(b->nests);
    g_clear_pointer(&b->comm_rank_of, g_hash_table_unref);
    g_free(b);
}

void rs_builder_set_text(gchar **field, const gchar *text)
{
    g_free(*field);
    *field = g_utf8_make_valid(text ? text : "", -1);
}

guint32 rs_builder_add_process(RsBuilder *b, gint32 rank, const gchar *host, gint64 pid)
{
    RsProcess *p = g_new0(RsProcess, 1);
    p->rank = rank < 0 ? -1 : rank;
    p->pid = pid;
    p->ending = RS_ENDING_CLEAN;
    rs_builder_set_text(&p->host, host);
    rs_builder_set_text(&p->domain, host);
    rs_builder_set_text(&p->program, "");
    rs_builder_set_text(&p->path, "");
    p->anchors = g_array_new(FALSE, FALSE, sizeof(struct rs_anchor));
    p->probes = g_array_new(FALSE, FALSE, sizeof(struct rs_clock_probe));
    g_ptr_array_add(b->processes, p);
    return b->processes->len - 1;
}

RsProcess *rs_builder_process(RsBuilder *b, guint32 process)
{
    return g_ptr_array_index(b->processes, process);
}

guint32 rs_builder_add_track(RsBuilder *b, guint32 process, const gchar *name, guint64 tid,
                             gboolean device)
{
    RsRawTrack t = {process, rs_builder_string(b, name), tid, device, FALSE};
    g_array_append_val(b->tracks, t);
    return b->tracks->len - 1;
}

void rs_builder_set_track(RsBuilder *b, guint32 track, guint32 process, const gchar *name,
                          gboolean device)
{
    RsRawTrack *t = &g_array_index(b->tracks, RsRawTrack, track);
    t->process = process;
    t->device = device;
    t->nests = TRUE;
    t->name = rs_builder_string(b, name);
}

RsStr rs_builder_string(RsBuilder *b, const gchar *text)
{
    return rs_builder_string_len(b, text, strlen(text));
}

RsStr rs_builder_string_len(RsBuilder *b, const gchar *text, gsize bytes)
{
    g_autofree gchar *valid = g_utf8_make_valid(text, (gssize)bytes);
    gpointer id;
    if (g_hash_table_lookup_extended(b->string_ids, valid, NULL, &id))
        return GPOINTER_TO_UINT(id);
    RsStr new_id = b->model->strings->len;
    g_hash_table_insert(b->string_ids, valid, GUINT_TO_POINTER(new_id));
    g_ptr_array_add(b->model->strings, g_steal_pointer(&valid));
    return new_id;
}

const gchar *rs_builder_text(const RsBuilder *b, RsStr s)
{
    return rs_model_str(b->model, s);
}

guint32 rs_builder_comm(RsBuilder *b, guint64 identity, guint64 parent, guint32 api, gint32 size,
                        const gchar *name)
{
    gpointer id;
    if (g_hash_table_lookup_extended(b->comm_ids, &identity, NULL, &id)) {
        RsComm *known = &g_array_index(b->model->comms, RsComm, GPOINTER_TO_UINT(id));
        if (!known->name && name)
            known->name = rs_builder_string(b, name);
        return GPOINTER_TO_UINT(id);
    }
    RsComm c = {.identity = identity, .parent = parent, .api = api, .size = MAX(size, 0)};
    c.name = rs_builder_string(b, name ? name : "");
    g_array_append_val(b->model->comms, c);
    RsRawComm raw = {.joins = g_array_new(FALSE, FALSE, sizeof(RsJoin))};
    g_array_append_val(b->raw_comms, raw);
    guint32 new_id = b->model->comms->len - 1;
    g_hash_table_insert(b->comm_ids, g_memdup2(&identity, sizeof identity),
                        GUINT_TO_POINTER(new_id));
    return new_id;
}

void rs_builder_comm_members(RsBuilder *b, guint32 comm, const gint32 *world_ranks, guint32 n)
{
    RsRawComm *raw = &g_array_index(b->raw_comms, RsRawComm, comm);
    if (raw->world_ranks || n == 0)
        return;
    raw->world_ranks = g_memdup2(world_ranks, n * sizeof *world_ranks);
    raw->n_world_ranks = n;
}

void rs_builder_comm_join(RsBuilder *b, guint32 comm, guint32 process, gint32 comm_rank)
{
    RsJoin join = {process, comm_rank};
    g_array_append_val(g_array_index(b->raw_comms, RsRawComm, comm).joins, join);
}

/* Field by field: padding must be zero, for the hash reads it. */
static RsSig *dup_sig(const RsSig *s)
{
    RsSig *d = g_new0(RsSig, 1);
    d->kind = s->kind;
    d->klass = s->klass;
    d->coll = s->coll;
    d->api = s->api;
    d->op = s->op;
    d->member = s->member;
    d->name = s->name;
    d->dtype = s->dtype;
    d->redop = s->redop;
    d->comm = s->comm;
    d->peer = s->peer;
    d->tag = s->tag;
    d->domain = s->domain;
    d->category = s->category;
    d->color = s->color;
    d->count = s->count;
    d->bytes = s->bytes;
    return d;
}

guint32 rs_builder_sig(RsBuilder *b, const RsSig *sig)
{
    RsSig *key = dup_sig(sig);
    gpointer id;
    if (g_hash_table_lookup_extended(b->sig_ids, key, NULL, &id)) {
        g_free(key);
        return GPOINTER_TO_UINT(id);
    }
    g_array_append_vals(b->model->sigs, key, 1);
    g_hash_table_insert(b->sig_ids, key, GUINT_TO_POINTER(b->model->sigs->len - 1));
    return b->model->sigs->len - 1;
}

RsSig rs_builder_sig_init(RsBuilder *b, RsKind kind, const gchar *name)
{
    RsSig sig = {.kind = kind, .comm = RS_NONE, .peer = RS_PEER_NONE};
    if (name)
        sig.name = rs_builder_string(b, name);
    return sig;
}

const RsSig *rs_builder_peek_sig(const RsBuilder *b, guint32 sig)
{
    return &g_array_index(b->model->sigs, RsSig, sig);
}

const RsSig *rs_builder_peek_event_sig(const RsBuilder *b, guint32 event)
{
    return rs_builder_peek_sig(b, g_array_index(b->events, RsRawEvent, event).sig);
}

guint32 rs_builder_event(RsBuilder *b, guint32 track, guint32 sig, gint64 start, gint64 end,
                         guint16 flags, guint16 aux, guint32 seq)
{
    if (b->events->len >= RS_NONE - 1) {
        b->model->dropped++;
        return RS_NONE;
    }
    RsRawEvent e = {start, MAX(start, end), sig, track, seq, RS_NONE, flags, aux};
    g_array_append_val(b->events, e);
    return b->events->len - 1;
}

void rs_builder_end(RsBuilder *b, guint32 event, gint64 end, guint16 flags_off)
{
    if (event == RS_NONE)
        return;
    RsRawEvent *e = &g_array_index(b->events, RsRawEvent, event);
    e->end = MAX(e->start, end);
    e->flags &= (guint16)~flags_off;
}

void rs_builder_number(RsBuilder *b, guint32 event, guint32 seq)
{
    if (event == RS_NONE)
        return;
    g_array_index(b->events, RsRawEvent, event).seq = seq;
    g_array_index(b->events, RsRawEvent, event).flags |= RS_FLAG_SEQ;
}

static void add_extra(RsBuilder *b, guint32 event, RsExtraKind kind, gint32 source, gint32 tag,
                      guint64 value)
{
    RsExtra x = {event, kind, source, tag, value};
    if (event != RS_NONE)
        g_array_append_val(b->extras, x);
}

void rs_builder_request(RsBuilder *b, guint32 event, guint64 request)
{
    add_extra(b, event, RS_EXTRA_REQUEST, RS_PEER_UNKNOWN, 0, request);
}

void rs_builder_done(RsBuilder *b, guint32 event, guint64 request, gint32 source, gint32 tag)
{
    add_extra(b, event, RS_EXTRA_DONE, source, tag, request);
}

void rs_builder_status(RsBuilder *b, guint32 event, gint32 source, gint32 tag, guint64 bytes)
{
    add_extra(b, event, RS_EXTRA_STATUS, source, tag, bytes);
}

void rs_builder_second(RsBuilder *b, guint32 event, gint32 source, gint32 tag, guint64 bytes)
{
    add_extra(b, event, RS_EXTRA_SECOND, source, tag, bytes);
}

void rs_builder_arg(RsBuilder *b, const RsArg *arg)
{
    if (arg->event != RS_NONE)
        g_array_append_vals(b->model->args, arg, 1);
}

void rs_builder_link(RsBuilder *b, guint32 event, guint32 other)
{
    if (event != RS_NONE)
        g_array_index(b->events, RsRawEvent, event).link = other;
}

void rs_builder_warn(RsBuilder *b, const gchar *path, guint64 offset, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    RsWarning *w = g_new0(RsWarning, 1);
    w->path = g_utf8_make_valid(path ? path : "", -1);
    w->offset = offset;
    w->text = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(b->model->warnings, w);
}

void rs_builder_meta(RsBuilder *b, guint32 process, const gchar *key, const gchar *value)
{
    gchar *full = process == RS_NONE ? g_strdup(key) : g_strdup_printf("#%u/%s", process, key);
    g_hash_table_replace(b->model->meta, full, g_utf8_make_valid(value, -1));
}

/* ---- taking back ---- */

RsBuilderMark rs_builder_mark(const RsBuilder *b)
{
    return (RsBuilderMark){b->processes->len, b->tracks->len, b->events->len, b->extras->len,
                           b->model->args->len};
}

static gboolean is_of_later_process(gpointer key, gpointer value, gpointer data)
{
    const gchar *k = key;
    return k[0] == '#' && strtoul(k + 1, NULL, 10) >= *(const guint *)data;
}

void rs_builder_take_back(RsBuilder *b, const RsBuilderMark *mark)
{
    guint processes = mark->processes;
    for (guint i = 0; i < b->raw_comms->len; i++) {
        GArray *joins = g_array_index(b->raw_comms, RsRawComm, i).joins;
        for (guint k = joins->len; k-- > 0;)
            if (g_array_index(joins, RsJoin, k).process >= processes)
                g_array_remove_index(joins, k);
    }
    g_hash_table_foreach_remove(b->model->meta, is_of_later_process, &processes);
    g_ptr_array_set_size(b->processes, (gint)processes);
    g_array_set_size(b->tracks, mark->tracks);
    g_array_set_size(b->events, mark->events);
    g_array_set_size(b->extras, mark->extras);
    g_array_set_size(b->model->args, mark->args);
}
