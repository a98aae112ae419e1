/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome-horovod.c - Horovod's timelines (definitions.md section 8): a pid is a tensor, and rank 0,
 * which coordinates, writes for all. When a rank was ready stands in a tensor's NEGOTIATE slice as
 * a tick that is named by the rank.
 *
 * Each rank gets a span from its tick to the negotiation's end, of domain "horovod" and with the
 * tensor as category, as the runtime's own ranges are: rendezvous.c finds who came last. What the
 * coordinator did with the tensors are tracks of rank 0.
 */
#include "chrome-internal.h"

#define RANKS_MAX 65536 /* each is a process: no name makes more of them */

typedef struct {
    guint32 track;
    gint32 rank;
    gint64 ns;
    guint32 order;
} Tick;

typedef struct {
    guint32 track;
    RsStr name;
    gint64 from, to;
    gboolean open;
} Negotiation;

gboolean rs_chrome_is_negotiation(const RsJsonSpan *name)
{
    return name->n > 10 && memcmp(name->at, "NEGOTIATE_", 10) == 0;
}

gboolean rs_chrome_tick(RsChrome *c, const RsChromeRecord *r, gint64 ns)
{
    RsJsonSpan number = r->name;
    guint64 rank;
    if (number.n == 0 || !g_ascii_isdigit(*number.at) || number.n > 6 ||
        !rs_json_u64(&number, &rank) || rank >= RANKS_MAX)
        return FALSE;
    Tick t = {rs_chrome_track(c, r), (gint32)rank, ns, c->ticks->len};
    g_array_append_val(c->ticks, t);
    return TRUE;
}

void rs_chrome_negotiated(RsChrome *c, const RsChromeStackRow *begin, gint64 end_ns, gboolean open)
{
    Negotiation n = {begin->track, begin->name, begin->ns, end_ns, open};
    if (g_str_has_prefix(rs_builder_text(c->b, begin->name), "NEGOTIATE_"))
        g_array_append_val(c->negotiations, n);
}

void rs_chrome_horovod_init(RsChrome *c)
{
    c->ticks = g_array_new(FALSE, FALSE, sizeof(Tick));
    c->negotiations = g_array_new(FALSE, FALSE, sizeof(Negotiation));
}

void rs_chrome_horovod_release(RsChrome *c)
{
    g_array_unref(c->ticks);
    g_array_unref(c->negotiations);
}

static gint compare_ticks(gconstpointer a, gconstpointer b)
{
    const Tick *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static guint first_tick(const GArray *ticks, guint32 track, gint64 ns)
{
    guint low = 0, high = ticks->len;
    while (low < high) {
        guint mid = low + (high - low) / 2;
        const Tick *t = &g_array_index(ticks, Tick, mid);
        if (t->track < track || (t->track == track && t->ns < ns))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* One rank's readiness: `tracks` by rank. */
static void add_ready(RsChrome *c, const Negotiation *n, const Tick *t, const guint32 *tracks)
{
    const RsChromeTrack *track = &g_array_index(c->tracks, RsChromeTrack, n->track);
    const RsChromePid *tensor = &g_array_index(c->pids, RsChromePid, track->pid);
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_SPAN, NULL);
    s.name = n->name;
    s.domain = rs_builder_string(c->b, "horovod");
    s.category = tensor->name;
    if (s.category == 0) {
        g_autofree gchar *name = g_strdup_printf("tensor %" G_GUINT64_FORMAT, tensor->id.value);
        s.category = rs_builder_string(c->b, name);
    }
    rs_builder_event(c->b, tracks[t->rank], rs_builder_sig(c->b, &s), t->ns, n->to,
                     n->open ? RS_FLAG_OPEN : 0, 0, 0);
}

static void add_all(RsChrome *c, const guint32 *tracks)
{
    g_array_sort(c->ticks, compare_ticks);
    for (guint i = 0; i < c->negotiations->len; i++) {
        const Negotiation *n = &g_array_index(c->negotiations, Negotiation, i);
        for (guint k = first_tick(c->ticks, n->track, n->from); k < c->ticks->len; k++) {
            const Tick *t = &g_array_index(c->ticks, Tick, k);
            if (t->track != n->track || t->ns > n->to)
                break;
            add_ready(c, n, t, tracks);
        }
    }
}

static gint32 count_ranks(const RsChrome *c)
{
    gint32 n = 1;
    for (guint i = 0; i < c->ticks->len; i++)
        n = MAX(n, g_array_index(c->ticks, Tick, i).rank + 1);
    return n;
}

void rs_chrome_place_horovod(RsChrome *c)
{
    gint32 n = count_ranks(c);
    g_autofree guint32 *tracks = g_new(guint32, n);
    guint32 coordinator = RS_NONE;
    c->world_size = n;
    for (gint32 rank = 0; rank < n; rank++) {
        guint32 process = rs_chrome_add_process(c, rank, NULL);
        coordinator = rank == 0 ? process : coordinator;
        tracks[rank] = rs_builder_add_track(c->b, process, "negotiations", 0, FALSE);
    }
    for (guint i = 0; i < c->tracks->len; i++) {
        const RsChromeTrack *t = &g_array_index(c->tracks, RsChromeTrack, i);
        const RsChromePid *p = &g_array_index(c->pids, RsChromePid, t->pid);
        if (t->track != RS_NONE)
            rs_builder_set_track(c->b, t->track, coordinator,
                                 p->name ? rs_builder_text(c->b, p->name) : "tensor", FALSE);
    }
    add_all(c, tracks);
}
