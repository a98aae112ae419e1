/* SPDX-License-Identifier: Apache-2.0 */
/* export-csv.c - one line an event, for spreadsheets and scripts. */
#include "escape.h"
#include "export.h"
#include "names.h"
#include "stream.h"

/* What a signature adds to its events' lines: kind, API, name, communicator, peer, bytes, ... */
static gchar *make_fragment(const RsModel *m, const RsSig *s)
{
    GString *f = g_string_new(NULL);
    g_string_append_printf(f, ",%s,%s,", rs_kind_name(s->kind), s->api ? rs_api_name(s->api) : "");
    rs_escape_csv(f, rs_model_str(m, s->name));
    g_string_append_c(f, ',');
    rs_escape_csv(f, rs_model_str(m, s->domain));
    g_string_append_c(f, ',');
    if (s->comm != RS_NONE)
        g_string_append_printf(f, "0x%" G_GINT64_MODIFIER "x",
                               g_array_index(m->comms, RsComm, s->comm).identity);
    if (s->peer >= 0)
        g_string_append_printf(f, ",%d,", s->peer);
    else
        g_string_append(f, ",,");
    g_string_append_printf(f, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",", s->count, s->bytes);
    rs_escape_csv(f, rs_model_str(m, s->dtype));
    return g_string_free(f, FALSE);
}

static gchar *make_track(const RsModel *m, const RsTrack *t)
{
    const RsRank *r = rs_model_rank(m, t->rank);
    GString *f = g_string_new(NULL);
    g_string_append_printf(f, "%d,", r->rank);
    rs_escape_csv(f, rs_model_host_name(m, r->host));
    g_string_append_c(f, ',');
    rs_escape_csv(f, rs_model_str(m, t->name));
    g_string_append_c(f, ',');
    return g_string_free(f, FALSE);
}

static void put_line(RsStream *s, const RsModel *m, guint32 i, const gchar *track,
                     const gchar *fragment)
{
    rs_stream_put(s, track);
    rs_stream_put_i64(s, m->events.start_ns[i]);
    rs_stream_put(s, ",");
    rs_stream_put_i64(s, m->events.end_ns[i]);
    rs_stream_put(s, fragment);
    rs_stream_put(s, ",");
    if (m->events.flags[i] & RS_FLAG_SEQ)
        rs_stream_put_u64(s, m->events.seq[i]);
    rs_stream_put(s, m->events.flags[i] & RS_FLAG_OPEN     ? ",unfinished\n"
                     : m->events.flags[i] & RS_FLAG_FAILED ? ",failed\n"
                                                           : ",\n");
}

gboolean rs_export_csv(const RsExport *x, const gchar *path, GError **error)
{
    const RsModel *m = x->model;
    RsStream *s = rs_stream_open(path, error);
    if (!s)
        return FALSE;
    g_autoptr(GPtrArray) fragments = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < m->sigs->len; i++)
        g_ptr_array_add(fragments, make_fragment(m, &g_array_index(m->sigs, RsSig, i)));
    rs_stream_put(s, "rank,host,track,start_ns,end_ns,kind,api,name,domain,communicator,peer,count,"
                     "bytes,datatype,seq,state\n");
    for (guint32 t = 0; t < m->tracks->len; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        g_autofree gchar *text = make_track(m, track);
        for (guint32 i = track->first; i < track->first + track->n; i++)
            put_line(s, m, i, text, g_ptr_array_index(fragments, m->events.sig[i]));
        if (x->progress)
            x->progress((gdouble)(t + 1) / (m->tracks->len + 1), "writing CSV", x->data);
    }
    return rs_stream_finish(s, error);
}
