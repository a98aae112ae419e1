/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fault.h - planted faults: what RT_FAULT says, and what a program calls so that they play.
 *
 * RT_FAULT is empty, or faults joined by ';', each a name and its parameters; in [] those that may
 * be left out:
 *
 *   slow-rank:rank=2,ms=5        that rank computes 5 ms more, each step
 *   slow-code:rank=2,phase=NAME,ms=5   ... in that phase
 *   slow-host:host=1,factor=1.5  all ranks of that logical host compute 1.5 times as long
 *   imbalance:spread=0.3[,seed=N]      each step each rank computes up to 30 % longer, drawn anew
 *   jitter:rank=1,prob=0.02,ms=20[,seed=N]   in one step of 50, drawn, it computes 20 ms more
 *   contend:rank=1               another process works on that rank's core, which it can't leave
 *   comm-steals-cpu              each rank stays on one core; what communicates works there too
 *   slow-link:hosts=0-1,mbps=200[,flows=N]   sockets between those logical hosts carry 200 Mbit/s
 *                                in all, each way, in N connections (pacer.c)
 *   loss:hosts=0-1,percent=1     their TCP segments get lost, each way
 *   slow-loader:rank=all,ms=8    a batch comes 8 ms late; rank=N: on that rank
 *   slow-checkpoint:every=20,ms=200    a checkpoint every 20 steps, on a disk that takes 200 ms
 * more slow-launch:rank=1,us=500    that rank's NCCL kernels begin 500 us after they could
 *   late-send:rank=0,ms=5        that rank is 5 ms late with its messages
 *   small-tensors:bytes=256      gradients come in pieces of 256 bytes
 *   no-fusion                    tensors go one by one (RT_FUSION_THRESHOLD=0)
 *   no-overlap                   gradients are handed over after the whole backward pass
 *   algorithm:NAME               how all allreduces go (RT_ALLREDUCE=NAME)
 *   pipeline:stages=4            the network lies in 4 parts on 4 ranks, which wait for each other
 *   mismatch:rank=1,step=7,what=count|dtype|op   that rank's first gradient differs in this
 *   skip:rank=3,step=9           that rank hands over no gradients
 *   swap-order:rank=1,step=5     that rank hands over its first two gradients in the other order
 *   deadlock:step=9              every rank sends before it receives, round a ring
 *   die:rank=3,step=9,signal=KILL|TERM|SEGV|ABRT
 *   flip-bit:rank=2,step=6       one bit of that rank's first result is wrong
 *   version:rank=1,lib=nccl,value=2.19   that rank has another NCCL (the stand-in)
 *
 * Model: a program says what it plays, and its phases (rt_faults_begin), and marks steps and
 * phases. Faults of time and of the machine then play by themselves; for those of its own structure
 * it asks rt_faults_find. What lies beneath the program is in rt-fault-hooks.h, pacer.c and
 * play-files.c. An unknown fault or parameter, one that the program doesn't play, a rank that the
 * job hasn't: all are errors, as a test that plants nothing proves nothing. Time: added as the
 * program spends its own, working (processor time of the thread) or sleeping. Draws are functions
 * of seed, rank and step: a run can be repeated. Nothing here says anything to a profiler: what is
 * planted must be found by what it does. Threads: one calls; hooks may come on any. Memory: `struct
 * rt_faults` is the caller's, from begin to end.
 */
#ifndef RT_FAULT_H
#define RT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the manual above has them, in its order. */
enum rt_fault_kind {
    RT_FAULT_SLOW_RANK,
    RT_FAULT_SLOW_CODE,
    RT_FAULT_SLOW_HOST,
    RT_FAULT_IMBALANCE,
    RT_FAULT_JITTER,
    RT_FAULT_CONTEND,
    RT_FAULT_COMM_STEALS_CPU,
    RT_FAULT_SLOW_LINK,
    RT_FAULT_LOSS,
    RT_FAULT_SLOW_LOADER,
    RT_FAULT_SLOW_CHECKPOINT,
    RT_FAULT_SLOW_LAUNCH,
    RT_FAULT_LATE_SEND,
    RT_FAULT_SMALL_TENSORS,
    RT_FAULT_NO_FUSION,
    RT_FAULT_NO_OVERLAP,
    RT_FAULT_ALGORITHM,
    RT_FAULT_PIPELINE,
    RT_FAULT_MISMATCH,
    RT_FAULT_SKIP,
    RT_FAULT_SWAP_ORDER,
    RT_FAULT_DEADLOCK,
    RT_FAULT_DIE,
    RT_FAULT_FLIP_BIT,
    RT_FAULT_VERSION,
    RT_FAULT_KIND_COUNT
};

enum rt_fault_what { RT_FAULT_COUNT, RT_FAULT_DTYPE, RT_FAULT_OP };

#define RT_FAULT_ANY (-1) /* of a fault without that parameter: every rank, every step */

/* What a kind has no parameter for is 0, rank and step ANY. */
struct rt_fault {
    enum rt_fault_kind kind;
    int rank;
    int64_t step;
    double ms;
    double factor, spread, prob;
    int hosts[2]; /* the lower first */
    int host;
    double mbps, percent;
    int flows; /* 0: not said */
    uint64_t seed, bytes;
    int every, stages, signal;
    enum rt_fault_what what;
    int version;   /* as NCCL counts it: 21900 */
    char name[32]; /* of a phase or an algorithm */
};

#define RT_FAULT_MAX           16
#define RT_FAULT_MESSAGE_BYTES 640

enum rt_fault_phase_kind {
    RT_FAULT_PHASE_COMPUTE = 1,
    RT_FAULT_PHASE_LOAD,       /* reads a batch */
    RT_FAULT_PHASE_CHECKPOINT, /* writes one, on this rank */
    RT_FAULT_PHASE_OTHER,
};

struct rt_fault_phase {
    const char *name;
    enum rt_fault_phase_kind kind;
};

#define RT_FAULT_BIT(kind) (1u << RT_FAULT_##kind)
/* What plays in every program that marks steps and the phases concerned. */
#define RT_FAULT_BITS_TIME                                                                         \
    (RT_FAULT_BIT(SLOW_RANK) | RT_FAULT_BIT(SLOW_CODE) | RT_FAULT_BIT(SLOW_HOST) |                 \
     RT_FAULT_BIT(IMBALANCE) | RT_FAULT_BIT(JITTER) | RT_FAULT_BIT(DIE))
/* ... that works, rather than sleeps; that has sockets; that uses the stand-in NCCL. */
#define RT_FAULT_BITS_WORK    RT_FAULT_BIT(CONTEND)
#define RT_FAULT_BITS_SOCKETS (RT_FAULT_BIT(SLOW_LINK) | RT_FAULT_BIT(LOSS))
#define RT_FAULT_BITS_NCCL                                                                         \
    (RT_FAULT_BIT(SLOW_LAUNCH) | RT_FAULT_BIT(FLIP_BIT) | RT_FAULT_BIT(VERSION))
/* ... that runs on the runtime. */
#define RT_FAULT_BITS_RUNTIME                                                                      \
    (RT_FAULT_BITS_NCCL | RT_FAULT_BIT(NO_FUSION) | RT_FAULT_BIT(ALGORITHM))

struct rt_faults_program {
    const char *name;                    /* for messages */
    uint32_t plays;                      /* RT_FAULT_BITs */
    const struct rt_fault_phase *phases; /* NULL, or ends with a name of NULL */
    bool sleeps;                         /* where it would compute */
};

struct rt_faults {
    struct rt_fault fault[RT_FAULT_MAX];
    int n;
    /* what follows is set by begin, and the library's */
    struct rt_faults_program program;
    int rank, size, host; /* host -1: none */
    int64_t step;
    const struct rt_fault_phase *phase;
    int64_t part_start_ns;
    bool step_computed, code_played;
};

/* `text` may be NULL. -EINVAL, and the message says what is wrong where. */
int rt_faults_parse(struct rt_faults *ret, const char *text, char *message, size_t message_bytes);
/* From RT_FAULT. */
int rt_faults_read(struct rt_faults *ret, char *message, size_t message_bytes);
const char *rt_fault_name(enum rt_fault_kind kind);

/*
 * Reads RT_FAULT for this rank, as the launcher's variables number it (none: 0 of 1), and starts
 * what plays by itself. Before MPI and the runtime start: it may set their settings, keep the
 * process on one core, and fork. Once in a process.
 */
int rt_faults_begin(struct rt_faults *f, const struct rt_faults_program *program, char *message,
                    size_t message_bytes);
void rt_faults_end(struct rt_faults *f);

/* Step `step` begins. Steps don't nest, phases neither. */
void rt_faults_step(struct rt_faults *f, int64_t step);
/* Between begin and end of a step: around the work of that phase. */
void rt_faults_phase_begin(struct rt_faults *f, const char *phase);
void rt_faults_phase_end(struct rt_faults *f);
/* Inside a computing phase, after a part of it: what makes all computing longer plays here too. */
void rt_faults_part(struct rt_faults *f);
/* Computes, as the program does: works, or sleeps. */
void rt_faults_spend(const struct rt_faults *f, int64_t ns);
/* Right before a message is sent. */
void rt_faults_send(struct rt_faults *f);

/* The fault of that kind that concerns this rank in this step; NULL where there is none. */
const struct rt_fault *rt_faults_find(const struct rt_faults *f, enum rt_fault_kind kind);

#ifdef __cplusplus
}
#endif

#endif
