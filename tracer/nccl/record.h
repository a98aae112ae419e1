/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what a wrapped NCCL call does around the real one.
 *
 * Model: struct rs_nccl_call stands on the wrapper's stack; between enter and leave it is the
 * thread's current call, by which the profiler plug-in (profiler.c), called by NCCL from inside,
 * learns whose execution it is told about. Inside a group an operation's record waits, in memory
 * of the thread that is kept for the next group, until the outermost group end: its interval is
 * from its call to there.
 * Numbers: collectives on a communicator count from 0 in order of call; a call that fails gives its
 * number back.
 */
#ifndef RS_TRACER_NCCL_RECORD_H
#define RS_TRACER_NCCL_RECORD_H

#include "abi.h"
#include "core.h"

#define RS_EXPORT __attribute__((visibility("default")))

struct rs_nccl_call {
    uint16_t op, flags;
    int32_t peer;
    uint64_t count, start;
    struct rs_comm *on; /* NULL: none, or one that can't be known */
    uint32_t dtype, redop, seq;
    uint32_t dtype_bytes;
    bool numbered, is_operation;
    bool off; /* it began while capture was off: it is not recorded, nor is its execution */
    const void *send, *recv;
    cudaStream_t stream;
    uint64_t execution; /* handle of execution.h, 0 none yet */
};

/* The call that this thread is in, NULL none. */
extern __thread struct rs_nccl_call *rs_nccl_current RS_HIDDEN
    __attribute__((tls_model("initial-exec")));

/* Grows or shrinks the depth of the thread's groups; the first start forgets an older group. */
void rs_nccl_group_depth(int change) RS_HIDDEN;
bool rs_nccl_in_group(void) RS_HIDDEN;
/* The calls that wait for the group's end: the `i`th, NULL past the last. */
struct rs_nccl_call *rs_nccl_waiting(unsigned i) RS_HIDDEN;

/* Fill in type and reduction, then the number on the communicator. */
void rs_nccl_typed(struct rs_nccl_call *c, ncclDataType_t datatype) RS_HIDDEN;
void rs_nccl_reduces(struct rs_nccl_call *c, ncclRedOp_t op) RS_HIDDEN;

/* Ends of the call, with its result: records it. An operation waits for the end of its group. */
void rs_nccl_leave(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result) RS_HIDDEN;
void rs_nccl_leave_operation(struct rs_thread *t, struct rs_nccl_call *c,
                             ncclResult_t result) RS_HIDDEN;
void rs_nccl_group_end(struct rs_thread *t, struct rs_nccl_call *c, ncclResult_t result) RS_HIDDEN;
/* Nothing of the group was run: its records and numbers are taken back. */
void rs_nccl_group_simulate_end(struct rs_thread *t, struct rs_nccl_call *c,
                                ncclResult_t result) RS_HIDDEN;

/* NULL, 0: not a type of NCCL 2.28. */
const char *rs_nccl_type_name(ncclDataType_t datatype) RS_HIDDEN;
uint32_t rs_nccl_type_bytes(ncclDataType_t datatype) RS_HIDDEN;

/* The communicator, defined at first use; NULL where NCCL doesn't tell its rank and size. */
struct rs_comm *rs_nccl_comm(struct rs_thread *t, ncclComm_t comm) RS_HIDDEN;
/* The same without asking NCCL: NULL where it was not used yet. */
struct rs_comm *rs_nccl_known(struct rs_thread *t, ncclComm_t comm) RS_HIDDEN;
void rs_nccl_comm_freed(ncclComm_t comm) RS_HIDDEN;

static inline struct rs_thread *rs_nccl_recording(void)
{
    if (RS_UNLIKELY(!rs_core) || !(rs_core->parts & RS_PART_NCCL))
        return NULL;
    return rs_thread_if_recording();
}

/* Where capture is switched off: as core.h has them. */
static inline struct rs_thread *rs_nccl_off(void)
{
    if (RS_UNLIKELY(!rs_core) || !(rs_core->parts & RS_PART_NCCL))
        return NULL;
    return rs_thread_if_off();
}
static inline struct rs_thread *rs_nccl_keeping(void)
{
    return rs_nccl_off() ? rs_thread_if_keeping() : NULL;
}
/* A call that fails gives its number back. */
static inline void rs_nccl_off_ended(struct rs_comm *on, uint32_t number, ncclResult_t result)
{
    if (RS_UNLIKELY(result != RS_NCCL_SUCCESS && result != RS_NCCL_IN_PROGRESS) && on &&
        on->next_seq == number + 1)
        on->next_seq = number;
}

static inline void rs_nccl_number(struct rs_nccl_call *c)
{
    c->numbered = c->on != NULL;
    c->seq = c->on ? c->on->next_seq++ : 0;
}

static inline void rs_nccl_enter(struct rs_thread *t, struct rs_nccl_call *c)
{
    rs_nccl_current = c;
    c->off = t->keeping;
    c->start = rs_call_enter(t, c->op, c->on ? c->on->id : 0, c->seq, c->peer, c->count, c->dtype);
}

#endif
