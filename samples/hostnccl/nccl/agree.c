/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do all ranks mean the same collective? Each notes, in the memory that all share, what its next
 * one is, then looks at what the others noted under the same number: of two that differ the later
 * one sees it. It writes down what it saw before it leaves, so that all can say it.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "internal.h"

/* A collective in two words; 0 in the number while it is written. */
struct note {
    uint64_t number; /* atomic: 1 + how many the rank has run before */
    uint64_t what;   /* atomic: of function, operation, type, root */
    uint64_t count;  /* atomic */
};

#define NOTES 64u /* a rank that is further ahead than that isn't compared with */

struct hostnccl_notes {
    struct note notes[NOTES];
};

/* What ranks differ in, once anybody has seen it. */
struct hostnccl_verdict {
    uint32_t state; /* atomic */
    char text[380];
};
#define WRITES_FOR 10000 /* pauses: its writer may have died then */
enum { VERDICT_NONE, VERDICT_WRITTEN_NOW, VERDICT_THERE };

/* How many bytes the n-th message between two ranks has, to its sender (0) and its receiver (1). */
struct size_note {
    uint64_t number; /* atomic: n, from 1; 0 while it is written */
    uint64_t bytes;  /* atomic */
};
#define SIZES 16u

struct pair_notes {
    uint64_t last[2]; /* of each side's own */
    struct size_note sizes[2][SIZES];
};

size_t hostnccl_notes_bytes(int ranks)
{
    return sizeof(struct hostnccl_verdict) + (size_t)ranks * sizeof(struct hostnccl_notes) +
           (size_t)ranks * (size_t)ranks * sizeof(struct pair_notes);
}

static struct hostnccl_verdict *verdict_of(ncclComm_t comm)
{
    return comm->region.notes;
}

static struct hostnccl_notes *notes_of(ncclComm_t comm, int rank)
{
    return (struct hostnccl_notes *)(verdict_of(comm) + 1) + rank;
}

static uint64_t pack(const struct hostnccl_op *op)
{
    bool reduces = hostnccl_has_redop(op->func);
    uint64_t type = (uint64_t)op->type, redop = reduces ? (uint64_t)op->op + 1 : 0;
    return (uint64_t)op->func | type << 8 | redop << 16 | (uint64_t)op->multiplies << 24 |
           (uint64_t)(uint32_t)op->root << 32;
}

static void describe(uint64_t what, uint64_t count, char *ret, size_t size)
{
    static const char *const ops[] = {"", ", sum", ", product", ", max", ", min", ", average"};
    unsigned redop = what >> 16 & 0xff, func = what & 0xff;
    const char *op = what >> 24 & 1                     ? ", a sum of multiples"
                     : redop < sizeof ops / sizeof *ops ? ops[redop]
                                                        : "";
    int n = snprintf(ret, size, "%s of %llu %s%s", hostnccl_func_name((enum hostnccl_func)func),
                     (unsigned long long)count,
                     hostnccl_type_name((enum rt_type)(what >> 8 & 0xff)), op);
    if ((func == FUNC_BROADCAST || func == FUNC_REDUCE) && n > 0 && (size_t)n < size)
        snprintf(ret + n, size - (size_t)n, ", root %u", (unsigned)(what >> 32));
}

static void write_verdict(ncclComm_t comm, uint64_t number, int other, const struct note *mine,
                          const struct note *theirs)
{
    struct hostnccl_verdict *v = verdict_of(comm);
    uint32_t none = VERDICT_NONE;
    char here[96], there[96];
    if (!__atomic_compare_exchange_n(&v->state, &none, VERDICT_WRITTEN_NOW, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    describe(mine->what, mine->count, here, sizeof here);
    describe(theirs->what, theirs->count, there, sizeof there);
    snprintf(v->text, sizeof v->text,
             "ranks differ in their collective number %llu: rank %d %s; rank %d %s",
             (unsigned long long)number - 1, comm->rank, here, other, there);
    __atomic_store_n(&v->state, VERDICT_THERE, __ATOMIC_RELEASE);
}

/* False where the other isn't there yet, or has gone on. */
static bool read_note(const struct note *from, uint64_t number, struct note *ret)
{
    if (__atomic_load_n(&from->number, __ATOMIC_SEQ_CST) != number)
        return false;
    ret->what = __atomic_load_n(&from->what, __ATOMIC_ACQUIRE);
    ret->count = __atomic_load_n(&from->count, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&from->number, __ATOMIC_ACQUIRE) == number;
}

bool hostnccl_agree_message(const struct hostnccl_op *op)
{
    ncclComm_t comm = op->comm;
    int side = op->func == FUNC_RECV, from = side ? op->root : comm->rank;
    int to = side ? comm->rank : op->root;
    struct pair_notes *pair = (struct pair_notes *)notes_of(comm, comm->size);
    pair += (size_t)from * (size_t)comm->size + (size_t)to;
    uint64_t bytes[2], number = ++pair->last[side];
    struct size_note *mine = &pair->sizes[side][number % SIZES];
    const struct size_note *theirs = &pair->sizes[!side][number % SIZES];
    bytes[side] = op->count * rt_type_bytes(op->type);
    __atomic_store_n(&mine->number, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&mine->bytes, bytes[side], __ATOMIC_RELEASE);
    __atomic_store_n(&mine->number, number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&theirs->number, __ATOMIC_SEQ_CST) != number)
        return true;
    bytes[!side] = __atomic_load_n(&theirs->bytes, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&theirs->number, __ATOMIC_ACQUIRE) != number || bytes[0] == bytes[1])
        return true;
    struct hostnccl_verdict *v = verdict_of(comm);
    uint32_t none = VERDICT_NONE;
    if (__atomic_compare_exchange_n(&v->state, &none, VERDICT_WRITTEN_NOW, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        snprintf(v->text, sizeof v->text,
                 "message number %llu from rank %d to rank %d: %llu bytes are sent, %llu received",
                 (unsigned long long)number - 1, from, to, (unsigned long long)bytes[0],
                 (unsigned long long)bytes[1]);
        __atomic_store_n(&v->state, VERDICT_THERE, __ATOMIC_RELEASE);
    }
    return false;
}

bool hostnccl_agree(const struct hostnccl_op *op)
{
    ncclComm_t comm = op->comm;
    struct note mine = {.number = ++comm->collectives, .what = pack(op), .count = op->count};
    struct note *at = &notes_of(comm, comm->rank)->notes[mine.number % NOTES], theirs;
    __atomic_store_n(&at->number, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&at->what, mine.what, __ATOMIC_RELEASE);
    __atomic_store_n(&at->count, mine.count, __ATOMIC_RELEASE);
    __atomic_store_n(&at->number, mine.number, __ATOMIC_SEQ_CST);
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank ||
            !read_note(&notes_of(comm, r)->notes[mine.number % NOTES], mine.number, &theirs) ||
            (theirs.what == mine.what && theirs.count == mine.count))
            continue;
        write_verdict(comm, mine.number, r, &mine, &theirs);
        return false;
    }
    return hostnccl_verdict(comm) == NULL;
}

const char *hostnccl_verdict(ncclComm_t comm)
{
    const struct hostnccl_verdict *v = comm->region.notes;
    const struct timespec pause = {.tv_nsec = 100000};
    if (!v)
        return NULL;
    uint32_t state = __atomic_load_n(&v->state, __ATOMIC_ACQUIRE);
    for (int i = 0; state == VERDICT_WRITTEN_NOW && i < WRITES_FOR; i++) {
        nanosleep(&pause, NULL);
        state = __atomic_load_n(&v->state, __ATOMIC_ACQUIRE);
    }
    return state == VERDICT_THERE ? v->text : NULL;
}
