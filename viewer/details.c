/* SPDX-License-Identifier: Apache-2.0 */
#include "details.h"

#include <math.h>

#include "analyses/analyses.h"
#include "escape.h"
#include "plural.h"

static void detail_free(gpointer data)
{
    RsDetail *d = data;
    g_free(d->key);
    g_free(d->value);
    g_free(d);
}

static void G_GNUC_PRINTF(3, 4) say(GPtrArray *out, const gchar *key, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree gchar *raw = g_strdup_vprintf(format, args);
    va_end(args);
    if (!*raw)
        return;
    RsDetail *d = g_new0(RsDetail, 1);
    d->key = g_strdup(key);
    d->value = rs_escape_dup_text(raw);
    g_ptr_array_add(out, d);
}

static void say_ns(GPtrArray *out, const gchar *key, gint64 ns)
{
    g_autofree gchar *text = rs_axis_dup_duration(ns);
    say(out, key, "%s", text);
}

static void say_bandwidth(GPtrArray *out, const gchar *key, gdouble bytes, gint64 ns)
{
    if (bytes > 0 && ns > 0)
        say(out, key, "%.3f GB/s", bytes / (gdouble)ns);
}

static const gchar *host_of(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    return r->missing ? "?" : rs_model_host_name(m, r->host);
}

static void say_place(const RsModel *m, GPtrArray *out, guint32 event)
{
    guint32 rank = rs_model_rank_of(m, event);
    g_autofree gchar *label = rs_model_dup_rank_label(m, rank);
    say(out, "rank", "%s", label);
    say(out, "host", "%s", host_of(m, rank));
    const RsTrack *t = &g_array_index(m->tracks, RsTrack, rs_model_track_of(m, event));
    say(out, t->device ? "device" : "thread", "%s", rs_model_str(m, t->name));
}

static void say_times(const RsScene *s, GPtrArray *out, guint32 event)
{
    const RsEvents *e = &s->model->events;
    guint32 slot = s->rows.slot_of[event];
    say(out, "start", "%.6f s", (gdouble)e->start_ns[event] / 1e9);
    if (e->flags[event] & RS_FLAG_OPEN)
        say(out, "duration", "not ended when the capture did");
    else
        say_ns(out, "duration", e->end_ns[event] - e->start_ns[event]);
    if (slot != RS_NONE && s->rows.split_ns[slot] > s->rows.start_ns[slot]) {
        say_ns(out, "of it wait", s->rows.split_ns[slot] - s->rows.start_ns[slot]);
        say_ns(out, "of it transfer", s->rows.end_ns[slot] - s->rows.split_ns[slot]);
    }
}

static void say_peer(const RsModel *m, GPtrArray *out, const RsSig *sig)
{
    gboolean root = sig->klass == RS_CLASS_COLL || sig->klass == RS_CLASS_COLL_START;
    if (sig->peer == RS_PEER_ANY)
        say(out, "peer", "any");
    else if (sig->peer >= 0)
        say(out, root ? "root" : "peer", "%d in its communicator", sig->peer);
    if (sig->tag >= 0 && !root && sig->comm != RS_NONE)
        say(out, "tag", "%d", sig->tag);
}

static void say_signature(const RsModel *m, GPtrArray *out, const RsSig *sig)
{
    say(out, "domain", "%s", rs_model_str(m, sig->domain));
    say(out, "tensor", "%s", rs_model_str(m, sig->category));
    if (sig->bytes) {
        g_autofree gchar *bytes = rs_axis_dup_bytes(sig->bytes);
        say(out, "bytes", "%s", bytes);
    }
    if (sig->dtype)
        say(out, "data", "%" G_GUINT64_FORMAT " \u00d7 %s%s%s", sig->count,
            rs_model_str(m, sig->dtype), sig->redop ? ", " : "", rs_model_str(m, sig->redop));
    if (sig->comm == RS_NONE)
        return;
    const RsComm *c = &g_array_index(m->comms, RsComm, sig->comm);
    say(out, "communicator", "%s (%d rank%s)", c->name ? rs_model_str(m, c->name) : "unnamed",
        c->size, rs_plural(c->size));
    say_peer(m, out, sig);
}

static void say_instance(const RsModel *m, GPtrArray *out, const RsInstance *in)
{
    const RsComm *c = &g_array_index(m->comms, RsComm, in->comm);
    if (in->n_present < c->n_members)
        say(out, "members seen", "%u of %u", in->n_present, c->n_members);
    if (in->mismatched)
        say(out, "mismatch", "ranks disagree on operation, type, count or root");
    if (!in->timed || in->last_rank == RS_NONE)
        return;
    g_autofree gchar *label = rs_model_dup_rank_label(m, in->last_rank);
    g_autofree gchar *late = rs_axis_dup_duration(in->last_arrival_ns - in->first_arrival_ns);
    say(out, "last to arrive", "%s, %s after the first", label, late);
    const RsSig *sig = &g_array_index(m->sigs, RsSig, in->sig);
    gint64 transfer = in->last_end_ns - in->last_arrival_ns;
    gdouble factor = rs_busbw_factor(sig->coll, c->n_members);
    if (!in->complete || in->mismatched || isnan(factor))
        return;
    say_bandwidth(out, "algbw (transfer)", (gdouble)sig->bytes, transfer);
    say_bandwidth(out, "busbw (transfer)", (gdouble)sig->bytes * factor, transfer);
}

/* Where single captures are looked at, the other side of a message has no RsRank. */
static gchar *dup_side(const RsModel *m, guint32 rank)
{
    return rank == RS_NONE
               ? g_strdup("a rank without capture")
               : g_strdup_printf("rank %d (%s)", rs_model_rank(m, rank)->rank, host_of(m, rank));
}

static void say_message(const RsModel *m, GPtrArray *out, const RsMessage *msg)
{
    g_autofree gchar *src = dup_side(m, msg->src), *dst = dup_side(m, msg->dst);
    g_autofree gchar *bytes = rs_axis_dup_bytes(msg->bytes);
    say(out, "message", "%s \u2192 %s, %s", src, dst, bytes);
    if (msg->timed && msg->end_ns > msg->both_ns)
        say(out, "", "%.3f GB/s after both had arrived",
            (gdouble)msg->bytes / (gdouble)(msg->end_ns - msg->both_ns));
}

#define MESSAGES_MAX 4u

static void say_messages(const RsScene *s, GPtrArray *out, guint32 event)
{
    guint first, last;
    rs_scene_messages_of(s, event, &first, &last);
    for (guint i = first; i < MIN(last, first + MESSAGES_MAX); i++)
        say_message(s->model, out,
                    &g_array_index(s->model->messages, RsMessage,
                                   g_array_index(s->messages, RsEventMessage, i).message));
    if (last - first > MESSAGES_MAX)
        say(out, "", "and %u more message%s", last - first - MESSAGES_MAX,
            rs_plural(last - first - MESSAGES_MAX));
}

GPtrArray *rs_details_of_event(const RsScene *s, guint32 event)
{
    const RsModel *m = s->model;
    GPtrArray *out = g_ptr_array_new_with_free_func(detail_free);
    if (event == RS_NONE)
        return out;
    const RsSig *sig = rs_model_sig(m, event);
    say(out, "name", "%s", rs_model_str(m, sig->name));
    say(out, "is", "%s", rs_meaning_name(rs_meaning_of(m, event)));
    say_place(m, out, event);
    say_times(s, out, event);
    say_signature(m, out, sig);
    if (m->events.flags[event] & RS_FLAG_SEQ)
        say(out, "sequence", "%u", m->events.seq[event]);
    if (s->rows.instance_of[event] != RS_NONE)
        say_instance(m, out, &g_array_index(m->instances, RsInstance, s->rows.instance_of[event]));
    say_messages(s, out, event);
    if (m->events.flags[event] & RS_FLAG_FAILED)
        say(out, "result", "the call returned an error");
    if (m->events.flags[event] & RS_FLAG_RECOVERED)
        say(out, "origin", "recovered after the process had died");
    return out;
}

gchar *rs_details_dup_tooltip(const RsScene *s, guint32 event)
{
    static const gchar *const wanted[] = {"rank",  "duration", "of it wait",    "tensor",
                                          "bytes", "message",  "last to arrive"};
    g_autoptr(GPtrArray) all = rs_details_of_event(s, event);
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < all->len; i++) {
        const RsDetail *d = g_ptr_array_index(all, i);
        gboolean keep = i == 0;
        for (guint k = 0; k < G_N_ELEMENTS(wanted); k++)
            keep = keep || g_str_equal(d->key, wanted[k]);
        if (keep)
            g_string_append_printf(out, "%s%s%s%s", i == 0 ? "" : "\n", i == 0 ? "" : d->key,
                                   i == 0 ? "" : ": ", d->value);
    }
    return g_string_free(out, FALSE);
}

gchar *rs_details_dup_finding_cost(const RsFinding *f)
{
    if (f->cost_s <= 0)
        return g_strdup_printf("%s severity", f->severity);
    g_autofree gchar *time = rs_axis_dup_duration((gint64)(f->cost_s * 1e9));
    return g_strdup_printf("%s, %.1f %% of the run", time, f->cost_percent);
}

GPtrArray *rs_details_warnings(const RsScene *s)
{
    const RsModel *m = s->model;
    GPtrArray *out = g_ptr_array_new_with_free_func(g_free);
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        g_autofree gchar *label = rs_model_dup_rank_label(m, i);
        const gchar *note = r->missing ? "no capture of this rank" : rs_model_str(m, r->note);
        g_autofree gchar *line = g_strdup_printf("%s: %s", label, note);
        if (*note)
            g_ptr_array_add(out, rs_escape_dup_text(line));
    }
    for (guint i = 0; i < m->warnings->len; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        g_autofree gchar *at =
            w->offset ? g_strdup_printf(", byte %" G_GUINT64_FORMAT, w->offset) : g_strdup("");
        g_autofree gchar *line =
            g_strdup_printf("%s%s%s%s", w->path, at, *w->path ? ": " : "", w->text);
        g_ptr_array_add(out, rs_escape_dup_text(line));
    }
    return out;
}
