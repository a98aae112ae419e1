/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-view.h"

#include <string.h>

static int view_send(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct rt_view *v = (struct rt_view *)t;
    return v->whole->ops->send(v->whole, data, bytes, v->ranks[peer], ret);
}

static int view_recv(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct rt_view *v = (struct rt_view *)t;
    return v->whole->ops->recv(v->whole, data, bytes, v->ranks[peer], ret);
}

static int view_recv_reduce(struct rt_transport *t, void *out, const void *operand, uint64_t count,
                            enum rt_type type, enum rt_op op, int peer, struct rt_request *ret)
{
    struct rt_view *v = (struct rt_view *)t;
    return v->whole->ops->recv_reduce(v->whole, out, operand, count, type, op, v->ranks[peer], ret);
}

static int view_wait(struct rt_transport *t, struct rt_request *requests, unsigned n)
{
    struct rt_view *v = (struct rt_view *)t;
    return v->whole->ops->wait(v->whole, requests, n);
}

static const struct rt_transport_ops plain = {
    .send = view_send, .recv = view_recv, .wait = view_wait};
static const struct rt_transport_ops reducing = {
    .send = view_send, .recv = view_recv, .recv_reduce = view_recv_reduce, .wait = view_wait};

void rt_view_begin(struct rt_view *v, struct rt_transport *whole, const int *ranks, int size,
                   int rank)
{
    *v = (struct rt_view){.base = *whole, .whole = whole, .ranks = ranks};
    v->base.ops = whole->ops->recv_reduce ? &reducing : &plain;
    v->base.rank = rank;
    v->base.size = size;
}

void rt_view_end(struct rt_view *v)
{
    memcpy(v->whole->scratch, v->base.scratch, sizeof v->whole->scratch);
}
