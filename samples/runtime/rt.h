/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt.h - a reference allreduce runtime: named tensors, summed over all ranks in the background.
 *
 * Model: as in Horovod. Every rank hands over tensors by name, in any order; rank 0 hears of them,
 * and as soon as all ranks have handed over one, tells all to work on it, so that they do the same
 * in the same order. Small tensors that are ready together go as one (fusion). Inside a host data
 * moves by NCCL, between hosts by MPI: reduce-scatter inside, allreduce of the parts between,
 * allgather inside; or by MPI alone, as a table that rt_tune has measured says for each size.
 * A host is RT_HOST, else the host's name. Where the program has no MPI, or RT_FABRIC is tcp, it is
 * TCP that stands below for MPI. Results are the same bits on every rank; where one is a NaN, it is
 * one everywhere, of whichever bits, also with RT_DETERMINISTIC.
 *
 * A rank that has run out of data joins: until all have, it takes part in what the others do with
 * zeros, and no rows. The divisor of an average stays the number of all ranks.
 *
 * Process sets: an operation whose options name one is one of its ranks alone; each has names of
 * its own, so that the same name in two sets is two tensors. Only its ranks may hand over in it. As
 * in Horovod a root is a rank of the job, and so are ranks in messages and ret_last; what comes by
 * rank (parts, splits, rows) comes by place in the set, whose ranks are in ascending order. An
 * average is one over the set's ranks, a join one of the set alone. Sets may overlap: rank 0 orders
 * what is ready in any of them in one sequence, which all obey; it looks for that each cycle
 * (RT_CYCLE_TIME) as long as there are sets without it. Tensors are fused within a set; cache and
 * fusion buffer are the set's own. The timeline, a profiler and messages call a tensor "grad of
 * process set 3"; the timeline's activities are rank 0's, so that of sets without it there is the
 * negotiation alone. Which algorithm a set's allreduce takes follows from the ranks on each host,
 * by the table that the set's lowest rank reads.
 *
 * Types: those of rt-types.h; arithmetic as rt-coll.h says it. A tensor of int16, uint16 or bool,
 * which NCCL has not, goes by MPI alone. Scales multiply in double and round once; an integer is
 * cut toward zero and stays within its type; a bool keeps its truth unless the scale is 0.
 *
 * Compression: with it float32 and float64 are reduced as float16 or bfloat16, and come back as
 * what they were. Before the wire they are multiplied by the prescale, and of an average to float16
 * divided by a power of two, at least the number of ranks; after it by the rest of the average and
 * the postscale; each side in double, rounded once. So an average is as finite as what it is of,
 * whatever the number of ranks; a sum in float16 passes 65504 to infinity. A NaN stays one, an
 * infinity too. What is lost: bits (float16 keeps 11, bfloat16 8), and in float16 what is small:
 * below 2^-14 bits, up to 2^-25 everything, in an average over n ranks from n times that on. A
 * prescale of some power of two, with its inverse as postscale, moves that range. Measured
 * (tests/bench/compression) on averages over 8 ranks of normally distributed gradients: of a size
 * of 1e-2 none become 0 and 0.5 % lose bits; of 1e-4 none and 76 %; of 1e-6 5 % and 95 %, with a
 * scale of 2^10 none and 10 %; of 1e-8 all become 0; over 512 ranks those of 1e-6 do. In bfloat16
 * none do.
 *
 * RT_ADASUM: gradients of any float type are combined in pairs, each tensor by itself (also in a
 * group, or fused): orthogonal ones are added, parallel ones averaged (coll/allreduce-adasum.c has
 * the formula, and which ranks pair). Any number of ranks; where it is no power of two the first
 * ones pair before the rest, so that their gradients are combined once more. It goes by MPI alone;
 * the learning rate needs no scaling by the number of ranks. A rank that has joined brings zeros,
 * which change nothing.
 *
 * Scales of 16-bit tensors follow the same rule: prescale and what an average divides by are one
 * multiplication that rounds once, and the rest of the average and the postscale are another.
 *
 * Memory: buffers are host memory (hostnccl takes it), the caller's, at any address, and must stay
 * until the operation was waited for; `in` may equal `out`. Those of rt_buffer_alloc the ranks of a
 * host reach without a copy.
 *
 * Timeline: rank 0 writes a file in the format of Horovod's, for chrome://tracing and what reads
 * that: each tensor is a "process", with NEGOTIATE_ALLREDUCE (and so on) from when the first rank
 * had it ready, a tick of each rank when it was, then ALLREDUCE and what rank 0 did for it. A
 * thread of its own writes, some 50 ms late; the file is whole JSON at any time. Where it can't be
 * written a line on stderr says so, once, and the run goes on. The same phases are NVTX ranges, on
 * every rank.
 *
 * Threads: rt_init and rt_shutdown from one thread, the rest from any. MPI is used by the runtime's
 * own thread alone, which initialises it, unless the program did so with MPI_THREAD_MULTIPLE.
 * MPI can't begin twice in a process: only in that case may rt_init be called again after
 * rt_shutdown. In a child made by fork the runtime isn't running.
 *
 * Death of a rank (killed, crashed, ended without rt_shutdown): every other rank says on standard
 * error within milliseconds which it was, with host and process; what is not done fails with
 * -ECONNRESET and that text, and so does all that follows. Buffers handed over may still be written
 * to until the process ends. One that hasn't ended by itself a second later (its threads may wait
 * in MPI for the dead) is ended with status 1, unless RT_ON_DEATH=error. A host that is cut off or
 * without power says nothing; its ranks count as dead after RT_HOST_TIMEOUT, and a tenth of it, at
 * least a second, more; they, cut off, say the same of rank 0. A rank whose runtime has failed, for
 * want of memory or descriptors, counts as dead, too, and says why. Launchers act too: Open
 * MPI's and MPICH's end all ranks when one is killed or fails, often before they could say a word;
 * the launcher's own message names the rank, or its process, then. MPICH's mpiexec has been seen to
 * end with status 0 nevertheless (4.0.2); Open MPI's mpirun, told to go on by --mca
 * orte_abort_on_non_zero_status 0, to wait on after all ranks had ended, one of them killed
 * (4.1.4).
 *
 * A rank that is stopped (by a signal, a debugger, a container's freezer) is not dead: the others
 * wait, and go on when it does. Once it has given no answer for RT_STALL_WARNING_TIME, at least a
 * second, rank 0 says so on standard error, or of rank 0 all others do, and when it answers again.
 * RT_STALL_SHUTDOWN_TIME doesn't end that wait.
 *
 * Errors: 0 (or a handle >= 0), else a negative errno, and rt_error() says what was wrong:
 * -EINVAL ranks disagree about a tensor or a setting is wrong, -ENOENT there is no such process set
 * (any more), -EPERM this rank is not in it, -EEXIST the name is in use, -EBUSY
 * this rank has joined, -ESHUTDOWN not running, or a rank left, -ECONNRESET a rank is gone,
 * -ETIMEDOUT RT_STALL_SHUTDOWN_TIME has passed, -EIO the transport failed.
 *
 * Environment: RT_FUSION_THRESHOLD, bytes that go as one (128 MiB; 0: no fusion) · RT_CYCLE_TIME,
 * ms that tensors handed over while others are under way are held for more to go with them, at most
 * (1; 0: not at all) · RT_CACHE_CAPACITY, tensors whose description ranks
 * tell each other once (1024; rank 0's counts; 0: always) · RT_ALLREDUCE, how all allreduces go:
 * ring, recursive-doubling, halving-doubling, tree, double-tree, flat (by MPI over all ranks),
 * hierarchical or hierarchical:NAME (NCCL inside hosts, that one between them), two-level-ring
 * (auto: by the table) · RT_TABLE, rt_tune's file (~/.config/ringscope/allreduce.table; none:
 * hierarchical, by size between hosts; rt-choice.h) · RT_DETERMINISTIC, 1: bit-for-bit equal
 * results in every run on as many ranks, whatever was ready when and fused with what, of allreduces
 * also however ranks are laid on hosts: they go by recursive-doubling and halving-doubling over all
 * ranks (0) · RT_COMPRESSION, none, fp16 or bf16 where an operation says nothing (none) ·
 * RT_FAULT and RT_HOST_RANKS, faults to plant, refused where a program plants none (rt-fault.h; of
 * another name that begins with RT_ rank 0 says on standard error that it has no effect) ·
 * RT_TIMELINE, the file that rank 0 writes (none) · RT_TIMELINE_MARK_CYCLES, 1: with a mark where a
 * cycle starts (0) · RT_STALL_WARNING_TIME, seconds after which rank 0 says on standard error which
 * tensors wait for which ranks, and which rank gives no answer, and again after as many (60; 0:
 * never) · RT_STALL_SHUTDOWN_TIME,
 * seconds after which they fail on the ranks that have handed them over (0: never) · RT_ON_DEATH,
 * exit or error (exit) · RT_HOST_TIMEOUT, seconds without a sign of life from a host after which
 * its ranks count as dead (30; 0: never) · RT_FABRIC, mpi or tcp (mpi, where the program has it and
 * RT_RANK isn't set); with tcp RT_ADDR, RT_PORT, RT_RANK, RT_SIZE, RT_INTERFACE, RT_START_TIMEOUT,
 * RT_JOB, RT_LISTEN_FD (rt-rendezvous.h) · RT_HOST · of rt-run alone RT_SSH, and for programs,
 * which it tells them, RT_LOCAL_RANK and RT_LOCAL_SIZE.
 */
#ifndef RT_H
#define RT_H

#include <stdint.h>

#include "rt-types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RT_NAME_MAX       255 /* bytes of a tensor's name */
#define RT_DIMENSIONS_MAX 8

/* What goes over the wire in place of float32 and float64: 16 bits. */
enum rt_compression {
    RT_COMPRESSION_DEFAULT, /* RT_COMPRESSION's */
    RT_COMPRESSION_NONE,
    RT_COMPRESSION_FP16, /* float16 */
    RT_COMPRESSION_BF16, /* bfloat16 */
    RT_COMPRESSION_COUNT
};

#define RT_GLOBAL_SET 0 /* the process set of all ranks */

/* What an operation may say beside; NULL, or zeros, for nothing. */
struct rt_options {
    int set; /* rt_add_process_set's: the operation is one of its ranks alone */
    /* Of what is ready at once the higher goes first. Where ranks differ, the highest counts. */
    int priority;
    /* The tensor's shape, whose product is the count (the first dimension: the rows; the product of
     * the others: the elements of a row). Ranks' must be the same, but for rows that may differ; it
     * stands in the message where they are not. A group has none. */
    unsigned dimensions; /* 0: [count], or [rows,row_count] */
    const uint64_t *shape;
    /* Of float32 and float64 in an allreduce, a group of them or a reducescatter; all ranks alike.
     */
    enum rt_compression compression;
};

/* Starts the runtime; every rank of the launcher's job calls it. */
int rt_init(void);
/* Waits until every rank has called it, then ends the runtime. A rank that still waits for this one
 * gets -ESHUTDOWN. */
int rt_shutdown(void);

/* -ESHUTDOWN where the runtime isn't running. */
int rt_rank(void);
int rt_size(void);
int rt_local_rank(void); /* among the ranks of this host */
int rt_local_size(void);
int rt_cross_rank(void); /* this host's place among those with a rank of this local rank */
int rt_cross_size(void);

/* Makes a process set of these ranks, in any order; two sets may have the same. All ranks of the
 * job call it together, with the same ranks, and none has joined; one change of sets at a time.
 * Waits; returns the set's number, the same on all ranks and never used again. */
int rt_add_process_set(const int *ranks, int n);
/* All ranks together, as above; waits. What ranks of the set have handed over in it and not all
 * others fails. */
int rt_remove_process_set(int set);
/* 1 where this rank is in it, else 0. These five: -ENOENT, no such set. */
int rt_process_set_included(int set);
int rt_process_set_rank(int set); /* this rank's place in it; -EPERM: it isn't in it */
int rt_process_set_size(int set);
/* Writes its ranks, ascending, at most `room` of them; returns how many there are. */
int rt_process_set_ranks(int set, int *ret, int room);
/* As rt_rows_of, of the set's rank at that place. */
uint64_t rt_process_set_rows_of(int set, uint64_t rows, int place);

/* Memory for tensors; any other serves, too. NULL: none. Not tied to rt_init and rt_shutdown. */
void *rt_buffer_alloc(uint64_t bytes);
/* NULL-safe. No operation of any rank may still use it: this rank has waited for its own. */
void rt_buffer_free(void *buffer);

/* out = postscale * op over ranks (prescale * in). Returns a handle. */
int rt_allreduce_async(const char *name, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, double prescale, double postscale,
                       const struct rt_options *options);
struct rt_group_member {
    const void *in;
    void *out;
    uint64_t count;
};
/* As above, of `n` tensors of one type, under the group's name: all are done, or none. Returns one
 * handle. */
int rt_grouped_allreduce_async(const char *name, const struct rt_group_member *members, unsigned n,
                               enum rt_type type, enum rt_op op, double prescale, double postscale,
                               const struct rt_options *options);
/* Of `rows` rows of `row_count` elements, reduced over ranks, `out` gets those of this rank: the
 * ranks' rows are consecutive and differ by at most one, the more first (rt_rows_of). out =
 * postscale * op over ranks (prescale * in). Returns a handle. */
int rt_reducescatter_async(const char *name, const void *in, void *out, uint64_t rows,
                           uint64_t row_count, enum rt_type type, enum rt_op op, double prescale,
                           double postscale, const struct rt_options *options);
/* How many of `rows` rows rt_reducescatter_async gives `rank`; 0 where there is no such rank. */
uint64_t rt_rows_of(uint64_t rows, int rank);

/* What came from the ranks, by rank, one after the other. */
struct rt_parts {
    void *data;
    uint64_t *rows; /* from each rank */
    uint64_t total; /* rows */
};
/* NULL-safe, also in its members; what is cleared is empty. */
void rt_parts_clear(struct rt_parts *parts);

/* All ranks' rows, of which each may have another number, to all. A row has `row_count` elements.
 * *ret is written when the operation is done without error, and is the caller's to clear. Returns a
 * handle. */
int rt_allgather_async(const char *name, const void *in, uint64_t rows, uint64_t row_count,
                       enum rt_type type, struct rt_parts *ret, const struct rt_options *options);
/* splits[r] of this rank's rows go to rank r, in this order (rt_size() splits); else as above. */
int rt_alltoall_async(const char *name, const void *in, const uint64_t *splits, uint64_t row_count,
                      enum rt_type type, struct rt_parts *ret, const struct rt_options *options);

/* Done when every rank has called it; until then this rank may hand over nothing else. What it
 * handed over before is still done. *ret_last is the rank that came last. Returns a handle. */
int rt_join_async(int *ret_last, const struct rt_options *options);
/* root's `data` to all; fails where root has joined. Returns a handle. */
int rt_broadcast_async(const char *name, void *data, uint64_t count, enum rt_type type, int root,
                       const struct rt_options *options);
/* Done when every rank has called it. Returns a handle. One at a time. */
int rt_barrier_async(const struct rt_options *options);

/* From now on rank 0 writes a timeline to the file, as RT_TIMELINE does from the start; on other
 * ranks nothing. -EBUSY: one is being written, or why the file can't be. */
int rt_timeline_start(const char *path, int mark_cycles);
/* What has happened until now is in the file. Fails where it couldn't be written. */
int rt_timeline_stop(void);

/* 1 done, 0 not yet, -EINVAL no such handle. */
int rt_poll(int handle);
/* Waits, returns the operation's result, and frees the handle. */
int rt_wait(int handle);
/* What the last failed call of this thread met; "" where none failed. Valid until its next call. */
const char *rt_error(void);

struct rt_parameter {
    const char *name;
    void *data;
    uint64_t count;
    enum rt_type type;
};

/* Gives all ranks root's parameters, and waits for it. -EEXIST: two have one name. */
int rt_broadcast_parameters(const struct rt_parameter *parameters, unsigned n, int root,
                            const struct rt_options *options);

#ifdef __cplusplus
}
#endif

#endif
