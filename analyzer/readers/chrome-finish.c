/* SPDX-License-Identifier: Apache-2.0 */
/* chrome-finish.c - what could only be paired once all records are known. */
#include "chrome-internal.h"
#include "chrome-open.h"

/* ---- B and E ---- */

static gint compare_stack(gconstpointer a, gconstpointer b)
{
    const RsChromeStackRow *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static gboolean is_sorted(const GArray *rows)
{
    const RsChromeStackRow *r = (const RsChromeStackRow *)(void *)rows->data;
    for (guint i = 1; i < rows->len; i++)
        if (compare_stack(&r[i - 1], &r[i]) > 0)
            return FALSE;
    return TRUE;
}

static void close_slice(RsChrome *c, const RsChromeStackRow *begin, gint64 ns, gboolean open)
{
    rs_builder_end(c->b, begin->event, ns, open ? 0 : RS_FLAG_OPEN);
    if (c->is_horovod)
        rs_chrome_negotiated(c, begin, ns, open);
}

/* What has no end goes on to the end of the trace. In a collective, its rank did not come to its
 * own end. */
static void close_rest(RsChrome *c, RsChromeOpen *open)
{
    guint32 row;
    for (guint at = 0; rs_chrome_open_next(open, &at, &row); c->trouble[RS_CHROME_BEGIN_ALONE]++) {
        const RsChromeStackRow *r = &g_array_index(c->stack, RsChromeStackRow, row);
        const RsSig *s = r->event != RS_NONE ? rs_builder_peek_event_sig(c->b, r->event) : NULL;
        c->is_stuck |= s && s->coll != RS_COLL_NONE && s->comm != RS_NONE;
        close_slice(c, r, c->last_ns, TRUE);
    }
    rs_chrome_open_clear(open);
}

static void take_end_row(RsChrome *c, RsChromeOpen *open, const RsChromeStackRow *end)
{
    guint32 row;
    gboolean inside;
    if (!rs_chrome_open_take(open, end->name, &row, &inside)) {
        c->trouble[RS_CHROME_END_ALONE]++;
        return;
    }
    c->trouble[RS_CHROME_CROSSING] += inside;
    close_slice(c, &g_array_index(c->stack, RsChromeStackRow, row), end->ns, FALSE);
}

static void pair_stack(RsChrome *c)
{
    g_auto(RsChromeOpen) open;
    rs_chrome_open_init(&open);
    if (!is_sorted(c->stack))
        g_array_sort(c->stack, compare_stack);
    for (guint i = 0; i < c->stack->len; i++) {
        const RsChromeStackRow *r = &g_array_index(c->stack, RsChromeStackRow, i);
        if (i > 0 && r->track != r[-1].track)
            close_rest(c, &open);
        if (r->event != RS_NONE)
            rs_chrome_open_push(&open, r->name, i);
        else
            take_end_row(c, &open, r);
    }
    close_rest(c, &open);
}

/* ---- asynchronous slices ---- */

static gint compare_pairs(gconstpointer a, gconstpointer b)
{
    const RsChromePairRow *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void take_async(RsChrome *c, RsChromeOpen *open, const RsChromePairRow *r)
{
    guint32 track = rs_chrome_builder_track(c, r->track), event;
    gboolean inside;
    if (r->phase == 'b') {
        event = rs_builder_event(c->b, track, r->sig, r->ns, c->last_ns, RS_FLAG_OPEN, 0, 0);
        rs_chrome_open_push(open, r->name, event);
    } else if (r->phase == 'n') {
        RsSig s = *rs_builder_peek_sig(c->b, r->sig);
        s.kind = RS_KIND_MARK;
        rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), r->ns, r->ns, 0, 0, 0);
    } else if (rs_chrome_open_take(open, r->name, &event, &inside)) {
        rs_builder_end(c->b, event, r->ns, RS_FLAG_OPEN);
    } else {
        c->trouble[RS_CHROME_ASYNC_END_ALONE]++;
    }
}

static void count_rest(RsChrome *c, RsChromeOpen *open)
{
    guint32 event;
    for (guint at = 0; rs_chrome_open_next(open, &at, &event);)
        c->trouble[RS_CHROME_BEGIN_ALONE]++;
    rs_chrome_open_clear(open);
}

static void pair_async(RsChrome *c)
{
    g_auto(RsChromeOpen) open;
    rs_chrome_open_init(&open);
    g_array_sort(c->async, compare_pairs);
    for (guint i = 0; i < c->async->len; i++) {
        const RsChromePairRow *r = &g_array_index(c->async, RsChromePairRow, i);
        if (i > 0 && r[-1].key != r->key)
            count_rest(c, &open);
        take_async(c, &open, r);
    }
    count_rest(c, &open);
}

/* ---- arrows ---- */

/* Of one key, in order of the file: the k-th start is met by the k-th end; steps are on the way. */
static gint compare_flows(gconstpointer a, gconstpointer b)
{
    const RsChromePairRow *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if ((x->phase == 's') != (y->phase == 's'))
        return x->phase == 's' ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void count_flows(RsChrome *c, const RsChromePairRow *r, guint n)
{
    guint starts = 0, ends = 0;
    while (starts < n && r[starts].phase == 's')
        starts++;
    for (guint i = starts; i < n; i++) {
        if (r[i].phase != 'f')
            continue;
        if (ends < starts)
            c->trouble[RS_CHROME_FLOW_BACK] += r[i].ns < r[ends].ns;
        ends++;
    }
    /* an arrow may fork: one start, several ends */
    c->trouble[RS_CHROME_FLOW_END_ALONE] += starts ? 0 : ends;
    c->trouble[RS_CHROME_FLOW_START_ALONE] +=
        starts > ends && n == starts + ends ? starts - ends : 0;
}

static void pair_flows(RsChrome *c)
{
    g_array_sort(c->flows, compare_flows);
    const RsChromePairRow *r = (const RsChromePairRow *)(void *)c->flows->data;
    for (guint from = 0, to; from < c->flows->len; from = to) {
        for (to = from + 1; to < c->flows->len && r[to].key == r[from].key; to++)
            ;
        count_flows(c, r + from, to - from);
    }
}

/* ---- launches: the outermost call of a correlation is what launched ---- */

static gint compare_launches(gconstpointer a, gconstpointer b)
{
    const RsChromeLaunch *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    if (x->device != y->device)
        return x->device ? 1 : -1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void link_launches(RsChrome *c)
{
    const RsChromeLaunch *call = NULL;
    g_array_sort(c->launches, compare_launches);
    for (guint i = 0; i < c->launches->len; i++) {
        const RsChromeLaunch *l = &g_array_index(c->launches, RsChromeLaunch, i);
        if (!call || call->correlation != l->correlation)
            call = l->device ? NULL : l;
        else if (l->device)
            rs_builder_link(c->b, l->event, call->event);
    }
}

/* ---- collectives that the file does not number ---- */

static gint compare_unnumbered(gconstpointer a, gconstpointer b)
{
    const RsChromeUnnumbered *x = a, *y = b;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void number_collectives(RsChrome *c)
{
    guint32 seq = 0;
    g_array_sort(c->unnumbered, compare_unnumbered);
    for (guint i = 0; i < c->unnumbered->len; i++) {
        const RsChromeUnnumbered *u = &g_array_index(c->unnumbered, RsChromeUnnumbered, i);
        seq = i > 0 && u[-1].comm == u->comm ? seq + 1 : 0;
        rs_builder_number(c->b, u->event, seq);
    }
}

void rs_chrome_finish(RsChrome *c)
{
    pair_stack(c);
    pair_async(c);
    pair_flows(c);
    link_launches(c);
    number_collectives(c);
    if (c->is_horovod)
        rs_chrome_place_horovod(c);
    else
        rs_chrome_place_tracks(c);
}
