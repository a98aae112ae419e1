/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - what each ordered pair of hosts exchanged in messages, and how fast (transfers.h).
 */
#include "analyses.h"
#include "transfers.h"

typedef struct {
    GArray *transfers; /* RsTransfer */
} State;

static void init(gpointer state, const RsContext *ctx)
{
    ((State *)state)->transfers = g_array_new(FALSE, FALSE, sizeof(RsTransfer));
}

static void feed(gpointer state, const RsWindow *w)
{
    rs_transfers_collect(((State *)state)->transfers, w);
}

static void merge(gpointer state, gconstpointer other)
{
    const State *o = other;
    g_array_append_vals(((State *)state)->transfers, o->transfers->data, o->transfers->len);
}

static void say_why_none(const RsContext *ctx, RsResults *results)
{
    guint hosts = ctx->model->hosts->len;
    if (!rs_model_hosts_are_known(ctx->model))
        rs_results_not_applicable(results, "links",
                                  "nothing tells which hosts the ranks were on: traces of other "
                                  "tools don't");
    else if (hosts < 2)
        rs_results_not_applicable(results, "links", "all ranks are on one host");
    else
        rs_results_not_applicable(results, "links",
                                  "no message between two hosts was seen from both of its sides");
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    GArray *transfers = ((State *)state)->transfers;
    rs_transfers_sort(transfers);
    const RsTransfer *t = (const RsTransfer *)(void *)transfers->data;
    for (guint from = 0, to; from < transfers->len; from = to) {
        to = rs_transfers_link_end(transfers, from);
        RsLinkMetric r = {.src_host = t[from].src_host, .dst_host = t[from].dst_host};
        rs_transfers_measure(t + from, to - from, &r);
        g_array_append_val(results->links, r);
    }
    if (transfers->len == 0)
        say_why_none(ctx, results);
}

static void release(gpointer state)
{
    g_array_unref(((State *)state)->transfers);
}

const RsAnalysis rs_analysis_links = {
    .name = "links",
    .help = "bytes and bandwidth of each pair of hosts, from messages",
    .state_size = sizeof(State),
    .init = init,
    .feed = feed,
    .merge = merge,
    .finish = finish,
    .release = release,
};
