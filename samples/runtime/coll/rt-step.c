/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *rt_scratch(struct rt_transport *t, int which, uint64_t bytes)
{
    struct rt_scratch *s = &t->scratch[which];
    if (s->bytes >= bytes)
        return s->data;
    free(s->data);
    uint64_t rounded = (bytes + 63) & ~(uint64_t)63;
    s->data = aligned_alloc(64, rounded);
    s->bytes = s->data ? rounded : 0;
    return s->data;
}

void rt_transport_release(struct rt_transport *t)
{
    for (int i = 0; i < RT_SCRATCH_COUNT; i++) {
        free(t->scratch[i].data);
        t->scratch[i] = (struct rt_scratch){0};
    }
}

void rt_copy(void *out, const void *in, uint64_t count, enum rt_type type)
{
    if (out != in && count > 0)
        memcpy(out, in, count * rt_type_bytes(type));
}

int rt_exchange(struct rt_transport *t, int to, const void *send, uint64_t send_count, int from,
                void *recv, uint64_t recv_count, enum rt_type type)
{
    struct rt_request requests[2];
    unsigned n = 0;
    int error = 0;
    /* the receive first: a network then needn't keep an unexpected message */
    if (from >= 0 && recv_count > 0)
        error = t->ops->recv(t, recv, recv_count * rt_type_bytes(type), from, &requests[n++]);
    if (!error && to >= 0 && send_count > 0)
        error = t->ops->send(t, send, send_count * rt_type_bytes(type), to, &requests[n++]);
    return error || n == 0 ? error : t->ops->wait(t, requests, n);
}

static int exchange_then_reduce(struct rt_transport *t, int to, const void *send,
                                uint64_t send_count, int from, void *out, const void *operand,
                                uint64_t recv_count, enum rt_type type, enum rt_op op)
{
    void *received = rt_scratch(t, RT_SCRATCH_RECEIVE, recv_count * rt_type_bytes(type));
    if (!received && recv_count > 0)
        return -ENOMEM;
    int error = rt_exchange(t, to, send, send_count, from, received, recv_count, type);
    if (!error && from >= 0 && recv_count > 0)
        rt_reduce(out, operand, received, recv_count, type, op);
    return error;
}

int rt_exchange_reduce(struct rt_transport *t, int to, const void *send, uint64_t send_count,
                       int from, void *out, const void *operand, uint64_t recv_count,
                       enum rt_type type, enum rt_op op)
{
    if (!t->ops->recv_reduce)
        return exchange_then_reduce(t, to, send, send_count, from, out, operand, recv_count, type,
                                    op);
    struct rt_request requests[2];
    unsigned n = 0;
    int error = 0;
    if (to >= 0 && send_count > 0)
        error = t->ops->send(t, send, send_count * rt_type_bytes(type), to, &requests[n++]);
    if (!error && from >= 0 && recv_count > 0)
        error = t->ops->recv_reduce(t, out, operand, recv_count, type, op, from, &requests[n++]);
    return error || n == 0 ? error : t->ops->wait(t, requests, n);
}
