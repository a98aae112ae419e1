/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the inside of the stand-in NCCL.
 *
 * Model: a communicator of n ranks has one region of shared memory with two transports of rt_coll:
 * `data` is used by plans on the streams' threads, `control` by the calls that make communicators.
 * What is put on a stream is a plan: the operations of one communicator out of one group. Plans of
 * a communicator run one after the other, in the order of their tickets, whatever their streams. A
 * group is per thread: operations collect until the outermost ncclGroupEnd.
 *
 * Errors: functions return ncclResult_t; the text for ncclGetLastError is noted where the error is
 * made (hostnccl_fail).
 */
#ifndef HOSTNCCL_INTERNAL_H
#define HOSTNCCL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* what this library exports is what the header declares */
#pragma GCC visibility push(default)
#include "nccl.h"
#pragma GCC visibility pop

#include "rt-transport-shm.h"

/* ncclX as a weak name of pncclX. */
#define HOSTNCCL_WEAK(name)                                                                        \
    __typeof__(pnccl##name) nccl##name                                                             \
        __attribute__((weak, alias("pnccl" #name), visibility("default")))

/* The vendor's numbers: a plug-in of version 1 sees them. */
enum hostnccl_func {
    FUNC_BROADCAST,
    FUNC_REDUCE,
    FUNC_ALLGATHER,
    FUNC_REDUCESCATTER,
    FUNC_ALLREDUCE,
    FUNC_SENDRECV,
    FUNC_SEND,
    FUNC_RECV,
    FUNC_ALLTOALL,
    FUNC_SCATTER,
    FUNC_GATHER,
    FUNC_COUNT
};

/* ---- error.c ---- */

ncclResult_t hostnccl_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- region.c: memory that the ranks of a communicator share ---- */

struct hostnccl_region_head;
struct hostnccl_member;

struct hostnccl_region {
    struct hostnccl_region_head *head;
    struct hostnccl_member *members; /* by rank */
    void *notes;                     /* agree.c's */
    void *data, *control, *rescue;   /* where the transports' regions lie in it */
    size_t bytes;
    int ranks;
    int creator_pid;
    uint64_t creator_start;
};

/* Makes a region of unknown size and the id that leads to it. It is a file without a name, kept by
 * this process: nothing is left when the process dies. */
ncclResult_t hostnccl_region_make(ncclUniqueId *ret_id);
ncclResult_t hostnccl_region_open(const ncclUniqueId *id, int ranks, struct hostnccl_region *ret);
void hostnccl_region_close(struct hostnccl_region *region);
/* This process needs the file no longer, if it made it: all have opened it. */
void hostnccl_region_forget(const ncclUniqueId *id);
uint64_t hostnccl_region_hash(const ncclUniqueId *id);
/* `rank` is there; wait until all are, for HOSTNCCL_INIT_TIMEOUT_MS at most. `aborted`, atomic,
 * ends the wait. */
void hostnccl_region_arrive(struct hostnccl_region *region, int rank);
ncclResult_t hostnccl_region_await(const struct hostnccl_region *region, const bool *aborted);
/* `rank`, which had arrived, takes part no longer. */
void hostnccl_region_leave(struct hostnccl_region *region, int rank);
/* Which of the others are gone, as "rank 2 (process 4711) died"; "" where all are there. */
void hostnccl_region_name_gone(const struct hostnccl_region *region, int rank, char *ret,
                               size_t size);

/* ---- communicator ---- */

/* What a ncclConfig_t asks for, as far as it means something here. */
struct hostnccl_settings {
    bool blocking;
    char name[64];
};

struct ncclComm {
    uint32_t magic;
    pid_t pid; /* that made it */
    int rank, size, device;
    bool checks_pointers;
    uint64_t hash;
    struct hostnccl_settings settings;
    struct hostnccl_region region;
    struct rt_transport_shm data, control, rescue;

    pthread_mutex_t lock; /* what follows */
    pthread_cond_t moved;
    uint64_t issued, done; /* tickets: a plan with ticket t runs when done = t */
    unsigned busy;         /* jobs in the background */
    bool connected;        /* the transports are there */
    bool aborted;          /* atomic, too */
    bool finalized, revoked;
    bool ended;               /* nothing runs any more */
    bool gone;                /* its memory is kept for graphs alone */
    unsigned graphs;          /* plans in graphs */
    ncclComm_t made_from;     /* while that one's ranks agree about this one */
    ncclResult_t async_error; /* atomic */
    char async_text[384];
    ncclWindow_t windows; /* registered */

    pthread_mutex_t launch_lock; /* ticket and place on the stream are taken together */
    void *profiler_context;
    bool profiled;
    struct hostnccl_redop *redops; /* made by the program; under `lock` */
    unsigned redop_count;
    uint64_t collectives;             /* that were run */
    uint64_t seq_numbers[FUNC_COUNT]; /* collectives launched, by function, as NCCL counts */
};

/* NULL-safe checks, the first without a message. `comm` can make others where
 * hostnccl_comm_manageable says ncclSuccess, and operations where hostnccl_comm_check does. */
bool hostnccl_comm_is(ncclComm_t comm);
ncclResult_t hostnccl_comm_valid(ncclComm_t comm);
ncclResult_t hostnccl_comm_manageable(ncclComm_t comm);
ncclResult_t hostnccl_comm_check(ncclComm_t comm);
/* Ends `comm` for its rank: later operations fail with `result`. */
void hostnccl_comm_set_error(ncclComm_t comm, ncclResult_t result, const char *text);
/* Said of a transport's error: what ranks differ in, who is gone, or what the error is. Returns the
 * result that goes with it. */
ncclResult_t hostnccl_comm_describe(ncclComm_t comm, int error, char *ret, size_t size);
ncclResult_t hostnccl_from_errno(int error);

/* One without ranks yet; free ends it for its rank, whatever became of it. */
ncclComm_t hostnccl_comm_new(const struct hostnccl_settings *settings, int device);
void hostnccl_comm_free(ncclComm_t comm);
/* Takes `comm`'s rank in the region of `id` and waits for the other ranks. */
ncclResult_t hostnccl_comm_connect(ncclComm_t comm, const ncclUniqueId *id);
/* Until its plans, or its jobs in the background, are through. */
void hostnccl_comm_await_plans(ncclComm_t comm);
void hostnccl_comm_await_jobs(ncclComm_t comm);
/* No plan runs any more; waits likewise. */
void hostnccl_comm_end_plans(ncclComm_t comm);
/* A plan of it is in a graph, and no longer. It can be freed before: then its memory stays. */
void hostnccl_comm_enter_graph(ncclComm_t comm);
void hostnccl_comm_leave_graph(ncclComm_t comm);
void hostnccl_comm_await_graphs(ncclComm_t comm);
/* Ends its operations, those on streams too; others may be made from it still. */
void hostnccl_comm_stop(ncclComm_t comm);
void hostnccl_windows_free(ncclComm_t comm);

/* `inherited`: what is not set; NULL: the defaults. */
ncclResult_t hostnccl_settings_read(const ncclConfig_t *config,
                                    const struct hostnccl_settings *inherited,
                                    struct hostnccl_settings *ret);

/* ---- group.c ---- */

struct hostnccl_op {
    struct hostnccl_op *next;
    enum hostnccl_func func;
    const void *in;
    void *out;
    uint64_t count; /* as the caller gave it */
    ncclDataType_t datatype;
    enum rt_type type;
    ncclRedOp_t redop;
    enum rt_op op;
    bool multiplies;       /* the input, by a scalar, first */
    const void *scalar_at; /* device memory; NULL: `scalar` */
    char scalar[RT_TYPE_BYTES_MAX];
    int root; /* or peer */
    ncclComm_t comm;
    cudaStream_t stream;
    unsigned long long graph;               /* that the stream is captured into; 0 none */
    void *api_event, *event, *kernel_event; /* the profiler's */
};

static inline bool hostnccl_is_p2p(const struct hostnccl_op *op)
{
    return op->func == FUNC_SEND || op->func == FUNC_RECV;
}

/* The operations of one communicator out of one group. */
struct hostnccl_plan {
    ncclComm_t comm;
    struct hostnccl_op *ops; /* in the order of hostnccl_schedule */
    uint64_t ticket;
    void *api_group_event; /* the profiler's */
    bool is_template;      /* captured into a graph */
    bool is_replay;        /* a launch of one */
    bool is_late;          /* the communicator has ended */
};

/* Takes a copy of `op` into the thread's group. */
ncclResult_t hostnccl_group_add(const struct hostnccl_op *op);

/* Work that waits for other ranks, and so may not block inside a group: runs now, or, in threads,
 * at the outermost ncclGroupEnd. Where a communicator of the job's is nonblocking, the work is done
 * in the background: its communicators are ncclInProgress until then, and so is the result. `run`
 * frees `argument`. */
typedef ncclResult_t hostnccl_job_fn(void *argument);
struct hostnccl_job {
    hostnccl_job_fn *run;
    void *argument;
    ncclComm_t comms[2]; /* the second may be NULL */
};
ncclResult_t hostnccl_group_job(const struct hostnccl_job *job);
/* Inside a group: the error of a call is also that of its ncclGroupEnd. Returns `result`. */
ncclResult_t hostnccl_group_note(ncclResult_t result);

/* ---- background.c ---- */

bool hostnccl_in_background(const struct hostnccl_job *job);
/* The communicators are in progress from `begin` on; `start` runs the job in a thread, and then
 * they are so no longer. */
void hostnccl_background_begin(const struct hostnccl_job *job);
ncclResult_t hostnccl_background_start(const struct hostnccl_job *job);
/* How deep the thread is in groups. */
int hostnccl_group_depth(void);

/* ---- redop.c: types and operators ---- */

const char *hostnccl_datatype_name(ncclDataType_t datatype);
/* `call` is for the message. */
ncclResult_t hostnccl_datatype(const char *call, ncclDataType_t datatype, enum rt_type *ret);
/* Sets what op->redop means, for op->datatype. */
ncclResult_t hostnccl_redop_set(struct hostnccl_op *op, const char *call);

const char *hostnccl_type_name(enum rt_type type);

/* ---- operations.c ---- */

const char *hostnccl_func_name(enum hostnccl_func func);
bool hostnccl_has_redop(enum hostnccl_func func);

/* ---- buffers.c ---- */

/* NCCL_CHECK_POINTERS, which counts when a communicator is made. */
bool hostnccl_checks_pointers(void);
/* Those that this rank's part needs. */
ncclResult_t hostnccl_buffers_check(const struct hostnccl_op *op);

/* ---- agree.c: do the ranks call the same? ---- */

size_t hostnccl_notes_bytes(int ranks);
/* Before a collective runs. False: a rank has another one here. */
bool hostnccl_agree(const struct hostnccl_op *op);
/* Before a message to or from another rank runs. False: its two ends differ in size. */
bool hostnccl_agree_message(const struct hostnccl_op *op);
/* What ranks differ in; NULL: nobody has seen any such thing. Who is seeing it writes it down
 * first: that is waited for. */
const char *hostnccl_verdict(ncclComm_t comm);

/* ---- schedule.c ---- */

/* Puts the operations of a plan into the order in which they run and are numbered. */
struct hostnccl_op *hostnccl_schedule(struct hostnccl_op *ops);

/* ---- launch.c ---- */

/* Takes `ops`: all of one communicator, scheduled. */
ncclResult_t hostnccl_launch(struct hostnccl_op *ops, void *api_group_event);
void hostnccl_ops_free(struct hostnccl_op *ops);

/* ---- execute.c ---- */

/* What runs on the stream's thread. */
void hostnccl_execute(void *plan);
/* The algorithm an operation will take, in the vendor's spelling where it is one of theirs. */
const char *hostnccl_algorithm(const struct hostnccl_op *op);

/* ---- profiler.c: a host of the NCCL profiler plug-in; without one, these do nothing ---- */

/* What a plan's launch started and its end stops. */
struct hostnccl_profiler_launch {
    bool on;
    void *group, *kernel;
};

void hostnccl_profiler_open(ncclComm_t comm);
void hostnccl_profiler_close(ncclComm_t comm);
/* Around an API call; the first one of a group starts the group's event. */
void hostnccl_profiler_call_begin(struct hostnccl_op *op);
void hostnccl_profiler_call_end(struct hostnccl_op *op);
/* The event of the thread's group, NULL none. */
void *hostnccl_profiler_group_event(void);
/* At each ncclGroupEnd, and when the outermost has launched. */
void hostnccl_profiler_group_end(void);
void hostnccl_profiler_group_stop(void);
/* Around putting a plan on a stream. `tasks`: it is enqueued to run, not captured. The plan may be
 * gone at the end: `events` are its operations'. */
void hostnccl_profiler_launch_begin(struct hostnccl_plan *plan, bool tasks,
                                    struct hostnccl_profiler_launch *ret);
/* When a captured plan runs: NCCL tells of its operations each time. */
void hostnccl_profiler_replay(struct hostnccl_plan *plan);
void hostnccl_profiler_kernel_launch(struct hostnccl_plan *plan, cudaStream_t stream,
                                     struct hostnccl_profiler_launch *launch);
void hostnccl_profiler_launch_end(const struct hostnccl_profiler_launch *launch,
                                  void *const *events, unsigned n);
/* Around the execution, on the stream's thread. */
void hostnccl_profiler_kernel_begin(struct hostnccl_op *op);
void hostnccl_profiler_kernel_end(struct hostnccl_op *op);

#endif
