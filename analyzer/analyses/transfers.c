/* SPDX-License-Identifier: Apache-2.0 */
#include "transfers.h"

#include <math.h>
#include <stdlib.h>

/* What one spell gave. */
typedef struct {
    gdouble per_s;
    guint64 bytes;
} Rate;

static gboolean wanted(const RsContext *ctx, const RsMessage *msg)
{
    const RsModel *m = ctx->model;
    if (!msg->timed || msg->src == RS_NONE || msg->dst == RS_NONE || msg->end_ns <= msg->both_ns)
        return FALSE;
    if (rs_model_rank(m, msg->src)->host == rs_model_rank(m, msg->dst)->host)
        return FALSE;
    return ctx->rank_in[msg->src] || ctx->rank_in[msg->dst];
}

void rs_transfers_collect(GArray *array, const RsWindow *w)
{
    const RsModel *m = w->ctx->model;
    for (guint32 i = w->first_message; i < w->last_message; i++) {
        const RsMessage *msg = &g_array_index(m->messages, RsMessage, i);
        if (!wanted(w->ctx, msg))
            continue;
        RsTransfer t = {.src = msg->src, .dst = msg->dst, .step = msg->step, .message = i};
        t.src_host = rs_model_rank(m, msg->src)->host;
        t.dst_host = rs_model_rank(m, msg->dst)->host;
        t.bytes = msg->bytes;
        t.from_ns = msg->both_ns;
        t.to_ns = msg->end_ns;
        g_array_append_val(array, t);
    }
}

static gint compare_transfers(gconstpointer a, gconstpointer b)
{
    const RsTransfer *x = a, *y = b;
    if (x->src_host != y->src_host)
        return x->src_host < y->src_host ? -1 : 1;
    if (x->dst_host != y->dst_host)
        return x->dst_host < y->dst_host ? -1 : 1;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return x->message < y->message ? -1 : x->message > y->message;
}

void rs_transfers_sort(GArray *array)
{
    g_array_sort(array, compare_transfers);
}

guint rs_transfers_link_end(const GArray *array, guint from)
{
    const RsTransfer *t = (const RsTransfer *)(void *)array->data;
    guint to = from + 1;
    while (to < array->len && t[to].src_host == t[from].src_host &&
           t[to].dst_host == t[from].dst_host)
        to++;
    return to;
}

GArray *rs_transfers_spells(const RsTransfer *t, guint n, guint64 big_from)
{
    GArray *spells = g_array_new(FALSE, FALSE, sizeof(RsSpell));
    for (guint i = 0; i < n; i++) {
        if (t[i].bytes < big_from)
            continue;
        RsSpell *last = spells->len ? &g_array_index(spells, RsSpell, spells->len - 1) : NULL;
        if (last && t[i].from_ns <= last->to_ns) {
            last->to_ns = MAX(last->to_ns, t[i].to_ns);
            last->bytes += t[i].bytes;
        } else {
            RsSpell s = {t[i].from_ns, t[i].to_ns, t[i].bytes};
            g_array_append_val(spells, s);
        }
    }
    return spells;
}

gint64 rs_spells_length_ns(const GArray *spells)
{
    gint64 sum = 0;
    for (guint i = 0; i < spells->len; i++) {
        const RsSpell *s = &g_array_index(spells, RsSpell, i);
        sum += s->to_ns - s->from_ns;
    }
    return sum;
}

/* The largest power of two such that messages of it or more hold half of the bytes. */
static guint64 find_big(const RsTransfer *t, guint n, guint64 *ret_count)
{
    guint64 bytes[64] = {0}, count[64] = {0}, total = 0;
    for (guint i = 0; i < n; i++) {
        if (t[i].bytes == 0)
            continue;
        guint32 k = rs_size_class(t[i].bytes);
        bytes[k] += t[i].bytes;
        count[k]++;
        total += t[i].bytes;
    }
    guint64 sum = 0, messages = 0;
    for (gint k = 63; k >= 0 && (1ull << k) >= RS_BIG_FLOOR_BYTES; k--) {
        sum += bytes[k];
        messages += count[k];
        if (messages >= RS_BIG_MIN_COUNT && sum * 2 >= total) {
            *ret_count = messages;
            return 1ull << k;
        }
    }
    return 0;
}

static gint compare_rates(gconstpointer a, gconstpointer b)
{
    const Rate *x = a, *y = b;
    return x->per_s < y->per_s ? -1 : x->per_s > y->per_s;
}

/* The rate that spells with `share` of all bytes don't exceed; `rates` sorted. */
static gdouble quantile_by_bytes(const Rate *rates, guint n, gdouble share)
{
    gdouble total = 0, sum = 0;
    for (guint i = 0; i < n; i++)
        total += (gdouble)rates[i].bytes;
    for (guint i = 0; i < n; i++) {
        sum += (gdouble)rates[i].bytes;
        if (sum >= share * total)
            return rates[i].per_s;
    }
    return NAN;
}

static void measure_bandwidth(const RsTransfer *t, guint n, RsLinkMetric *r)
{
    g_autoptr(GArray) spells = rs_transfers_spells(t, n, r->big_from_bytes);
    g_autofree Rate *rates = g_new(Rate, spells->len + 1);
    for (guint i = 0; i < spells->len; i++) {
        const RsSpell *s = &g_array_index(spells, RsSpell, i);
        rates[i].bytes = s->bytes;
        rates[i].per_s = (gdouble)s->bytes * 1e9 / (gdouble)(s->to_ns - s->from_ns);
    }
    qsort(rates, spells->len, sizeof *rates, compare_rates);
    r->bandwidth = quantile_by_bytes(rates, spells->len, 0.75);
    r->best_bandwidth = quantile_by_bytes(rates, spells->len, 0.9);
}

void rs_transfers_measure(const RsTransfer *t, guint n, RsLinkMetric *r)
{
    r->messages = n;
    r->bytes = r->big_messages = 0;
    for (guint i = 0; i < n; i++)
        r->bytes += t[i].bytes;
    g_autoptr(GArray) all = rs_transfers_spells(t, n, 0);
    r->busy_ns = rs_spells_length_ns(all);
    r->bandwidth = r->best_bandwidth = NAN;
    r->big_from_bytes = find_big(t, n, &r->big_messages);
    if (r->big_from_bytes)
        measure_bandwidth(t, n, r);
}
