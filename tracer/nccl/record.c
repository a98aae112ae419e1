/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "execution.h"
#include "graphs.h"
#include "ops-numbers.h"
#include "record.h"
#include "thread-memory.h"

#define CHUNK_CALLS 250

struct chunk {
    struct chunk *next;
    struct rs_nccl_call calls[CHUNK_CALLS];
};

/* Kept small: a library that is loaded late has little room for thread-local data. */
static __thread struct {
    unsigned depth, n;
    struct chunk *first;
} group;

__thread struct rs_nccl_call *rs_nccl_current;

/* ---- types ---- */

static const struct {
    const char *name;
    uint32_t bytes;
} type_names[RS_NCCL_TYPES] = {
    {"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclInt32", 4},      {"ncclUint32", 4},
    {"ncclInt64", 8},   {"ncclUint64", 8},   {"ncclFloat16", 2},    {"ncclFloat32", 4},
    {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
};
static const char *const redop_names[RS_NCCL_REDOPS + 1] = {
    "ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg", "ncclPreMulSum",
};

const char *rs_nccl_type_name(ncclDataType_t datatype)
{
    return datatype >= 0 && datatype < RS_NCCL_TYPES ? type_names[datatype].name : NULL;
}

uint32_t rs_nccl_type_bytes(ncclDataType_t datatype)
{
    return datatype >= 0 && datatype < RS_NCCL_TYPES ? type_names[datatype].bytes : 0;
}

static struct rs_type *types[RS_NCCL_TYPES], *redops[RS_NCCL_REDOPS + 1];

void rs_nccl_typed(struct rs_nccl_call *c, ncclDataType_t datatype)
{
    c->is_operation = true;
    if (datatype < 0 || datatype >= RS_NCCL_TYPES)
        return;
    struct rs_type *type = __atomic_load_n(&types[datatype], __ATOMIC_ACQUIRE);
    if (RS_UNLIKELY(!type)) {
        int saved = errno;
        type = rs_core->define_dtype(RS_COMM_NCCL, (uint64_t)datatype, type_names[datatype].name,
                                     type_names[datatype].bytes);
        __atomic_store_n(&types[datatype], type, __ATOMIC_RELEASE);
        errno = saved;
    }
    c->dtype = type ? type->id : 0;
    c->dtype_bytes = type_names[datatype].bytes;
}

void rs_nccl_reduces(struct rs_nccl_call *c, ncclRedOp_t op)
{
    int i = op < 0 || op > RS_NCCL_REDOPS ? RS_NCCL_REDOPS : op;
    struct rs_type *redop = __atomic_load_n(&redops[i], __ATOMIC_ACQUIRE);
    if (RS_UNLIKELY(!redop)) {
        int saved = errno;
        redop = rs_core->define_redop(RS_COMM_NCCL, (uint64_t)i, redop_names[i]);
        __atomic_store_n(&redops[i], redop, __ATOMIC_RELEASE);
        errno = saved;
    }
    c->redop = redop ? redop->id : 0;
}

/* ---- writing ---- */

static const void *offset(const void *base, const struct rs_nccl_call *c)
{
    uint64_t bytes = (uint64_t)c->on->rank * c->count * c->dtype_bytes;
    return (const char *)base + bytes;
}

/* As NCCL's manual defines in place. */
static bool in_place(const struct rs_nccl_call *c)
{
    if (!c->send || !c->recv)
        return false;
    if (c->op == RS_OP_ncclAllGather && c->on)
        return c->send == offset(c->recv, c);
    if (c->op == RS_OP_ncclReduceScatter && c->on)
        return c->recv == offset(c->send, c);
    return c->send == c->recv && c->op != RS_OP_ncclBcast;
}

static void write_record(struct rs_thread *t, const struct rs_nccl_call *c, uint64_t end)
{
    unsigned ext = c->is_operation;
    if (c->off || !rs_room_of_before(t, 1 + ext))
        return;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){.op = c->op,
                           .flags = c->flags,
                           .peer = c->peer,
                           .start = c->start,
                           .end = end,
                           .count = c->count,
                           .comm = c->on ? c->on->id : 0,
                           .dtype = c->dtype,
                           .seq = c->seq,
                           .redop = c->redop};
    if (ext) {
        struct rs_ext_stream *s = rs_slot(t, 1);
        e->flags |= RS_EVENT_EXT;
        *s = (struct rs_ext_stream){.op = RS_EXT_STREAM,
                                    .stream = (uintptr_t)c->stream,
                                    .send = (uintptr_t)c->send,
                                    .recv = (uintptr_t)c->recv};
    }
    rs_commit(t, 1 + ext);
}

static void take_number_back(struct rs_nccl_call *c)
{
    if (c->numbered && c->on->next_seq == c->seq + 1)
        c->on->next_seq = c->seq;
    c->flags |= c->numbered ? RS_EVENT_NO_SEQ : 0;
}

static uint64_t leave(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result)
{
    rs_nccl_current = NULL;
    if (result != RS_NCCL_SUCCESS && result != RS_NCCL_IN_PROGRESS)
        c->flags |= RS_EVENT_FAILED;
    return rs_call_leave(t);
}

void rs_nccl_leave(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result)
{
    write_record(t, c, leave(t, c, result));
}

/* ---- groups ---- */

void rs_nccl_group_depth(int change)
{
    if (change > 0 && group.depth++ == 0)
        group.n = 0;
    if (change < 0 && group.depth > 0)
        group.depth--;
}

bool rs_nccl_in_group(void)
{
    return group.depth > 0;
}

static struct chunk *next_chunk(struct chunk **link)
{
    return *link ? *link : rs_thread_memory(link, sizeof(struct chunk));
}

struct rs_nccl_call *rs_nccl_waiting(unsigned i)
{
    struct chunk *chunk = group.first;
    if (i >= group.n)
        return NULL;
    for (; i >= CHUNK_CALLS; i -= CHUNK_CALLS)
        chunk = chunk->next;
    return &chunk->calls[i];
}

static bool wait_for_group(const struct rs_nccl_call *c)
{
    struct chunk **link = &group.first;
    unsigned i = group.n;
    for (; i >= CHUNK_CALLS; i -= CHUNK_CALLS)
        link = &(*link)->next;
    struct chunk *chunk = next_chunk(link);
    if (!chunk)
        return false;
    chunk->calls[i] = *c;
    group.n++;
    return true;
}

void rs_nccl_leave_operation(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result)
{
    uint64_t end = leave(t, c, result);
    c->flags |= in_place(c) ? RS_EVENT_IN_PLACE : 0;
    c->flags |= rs_graph_is_captured(c->stream) ? RS_EVENT_CAPTURED : 0;
    if (c->flags & RS_EVENT_FAILED) {
        take_number_back(c);
    } else if (group.depth > 0) {
        c->flags |= RS_EVENT_GROUPED;
        if (wait_for_group(c))
            return;
    }
    write_record(t, c, end);
    rs_execution_release(c->execution);
}

void rs_nccl_group_end(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result)
{
    uint64_t end = leave(t, c, result);
    struct rs_nccl_call *waiting;
    if (group.depth == 0) {
        for (unsigned i = 0; (waiting = rs_nccl_waiting(i)); i++) {
            waiting->flags |= c->flags & RS_EVENT_FAILED;
            write_record(t, waiting, end);
            rs_execution_release(waiting->execution);
        }
        group.n = 0;
    }
    write_record(t, c, end);
}

void rs_nccl_group_simulate_end(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result)
{
    uint64_t end = leave(t, c, result);
    if (group.depth == 0) {
        for (unsigned i = group.n; i-- > 0;)
            take_number_back(rs_nccl_waiting(i));
        group.n = 0;
    }
    write_record(t, c, end);
}
