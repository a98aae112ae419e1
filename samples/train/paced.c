/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paced - a training program without arithmetic: each phase of a step takes the time it is told to,
 * asleep (or, with --work, in processor time), so that runs don't depend on free cores; everything
 * else is real: batches are read from a file, gradients go over all ranks while the backward pass
 * goes on, checkpoints are written. It plays every planted fault (rt-fault.h).
 *
 * By default on the runtime; with --plain by MPI alone: gradients one by one after the backward
 * pass, and a message to each neighbour after the forward pass. --log DIR keeps what each phase
 * took, for whoever wants to measure without a profiler.
 * Prints, at the end, whether all ranks have the same parameters, and ends well also if not: as a
 * program does that doesn't look.
 */
#include <errno.h>
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#include "paced.h"
#include "rt-clock.h"
#include "rt-nvtx.h"

void paced_die(const struct paced *p, const char *what, const char *why)
{
    fprintf(stderr, "paced: rank %d: %s: %s\n", p->rank, what, why);
    exit(1);
}

/* ---- phases ---- */

struct phase {
    const char *name;
    int64_t start_ns;
};

static struct phase begin(struct paced *p, const char *name)
{
    struct phase phase = {name, (int64_t)rt_now_ns()};
    rt_nvtx_push(name);
    rt_faults_phase_begin(&p->faults, name);
    return phase;
}

static void end(struct paced *p, struct phase phase)
{
    rt_faults_phase_end(&p->faults);
    rt_nvtx_pop();
    if (p->log)
        fprintf(p->log, "%s %lld %lld\n", phase.name, (long long)phase.start_ns,
                (long long)((int64_t)rt_now_ns() - phase.start_ns));
}

/* `parts` of the step's computing time are 1. */
static void compute(struct paced *p, double parts)
{
    rt_faults_spend(&p->faults, (int64_t)(p->o.compute_ms * 1e6 / parts));
    rt_faults_part(&p->faults);
}

/* ---- tensors ---- */

static void add_tensor(struct paced *p, int layer, int piece, uint64_t count)
{
    struct paced_tensor *grown = realloc(p->tensors, (p->n + 1) * sizeof *grown);
    if (!grown)
        paced_die(p, "tensors", "no memory");
    p->tensors = grown;
    struct paced_tensor *t = &grown[p->n++];
    *t = (struct paced_tensor){.layer = layer, .count = count};
    snprintf(t->name, sizeof t->name, "gradient.layer%d.%d", layer + 1, piece);
    t->value = calloc(count, sizeof *t->value);
    t->gradient = calloc(count, sizeof *t->gradient);
    if (!t->value || !t->gradient)
        paced_die(p, "tensors", "no memory");
}

/* Layers differ, as in a network: every second one has three times as much. */
static void make_tensors(struct paced *p)
{
    const struct rt_fault *small = rt_faults_find(&p->faults, RT_FAULT_SMALL_TENSORS);
    const uint64_t all = p->o.bytes / sizeof(float), unit = all / (uint64_t)(2 * p->o.layers);
    for (int layer = 0; layer < p->o.layers; layer++) {
        uint64_t left = layer % 2 ? 3 * unit : unit;
        const uint64_t most = small ? small->bytes / sizeof(float) : left;
        for (int piece = 0; left > 0; piece++) {
            uint64_t count = left < most ? left : most;
            add_tensor(p, layer, piece, count);
            left -= count;
        }
    }
}

/* The first of the layer's tensors; that of layer `layers` is one past the last. */
static unsigned first_of(const struct paced *p, int layer)
{
    unsigned i = 0;
    while (i < p->n && p->tensors[i].layer < layer)
        i++;
    return i;
}

/* Another sum in every step, exact in a float. */
static void fill(struct paced *p, struct paced_tensor *t, int step)
{
    for (uint64_t i = 0; i < t->count; i++)
        t->gradient[i] = (float)((p->rank + step + 3 * t->layer + (int)(i & 15)) % 64);
}

static void descend(struct paced *p)
{
    for (unsigned k = 0; k < p->n; k++)
        for (uint64_t i = 0; i < p->tensors[k].count; i++)
            p->tensors[k].value[i] -= p->tensors[k].gradient[i];
}

static uint64_t checksum(const struct paced *p)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by words */
    for (unsigned k = 0; k < p->n; k++)
        for (uint64_t i = 0; i < p->tensors[k].count; i++) {
            uint32_t bits;
            memcpy(&bits, &p->tensors[k].value[i], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
    return hash;
}

/* ---- a step ---- */

/* The layer's gradients; the last layer's come first. */
static void hand_over_layer(struct paced *p, int layer, int step)
{
    const unsigned from = first_of(p, layer), to = first_of(p, layer + 1);
    for (unsigned i = from; i < to; i++)
        fill(p, &p->tensors[i], step);
    if (rt_faults_find(&p->faults, RT_FAULT_SKIP))
        return;
    for (unsigned i = from; i < to; i++)
        p->way->hand_over(p, &p->tensors[i]);
}

/* The order in which layers are handed over: the last first; two that are swapped stand for what a
 * program does whose order is left to chance. */
static int layer_at(const struct paced *p, int place)
{
    bool swaps = rt_faults_find(&p->faults, RT_FAULT_SWAP_ORDER) != NULL && place < 2;
    return p->o.layers - 1 - (swaps ? 1 - place : place);
}

static void backward_layers(struct paced *p, int step)
{
    const bool overlaps = !rt_faults_find(&p->faults, RT_FAULT_NO_OVERLAP);
    struct phase phase = begin(p, "backward");
    for (int i = 0; i < p->o.layers; i++) {
        compute(p, 1.5 * p->o.layers);
        if (overlaps)
            hand_over_layer(p, layer_at(p, i), step);
    }
    for (int i = 0; i < p->o.layers && !overlaps; i++)
        hand_over_layer(p, layer_at(p, i), step);
    end(p, phase);
}

static void forward_and_backward(struct paced *p, int step)
{
    struct phase phase = begin(p, "forward");
    compute(p, 3);
    end(p, phase);
    if (p->way->has_messages && p->size > 1) {
        phase = begin(p, "exchange");
        paced_exchange(p);
        end(p, phase);
    }
    backward_layers(p, step);
}

/* Each rank has one part of the network; microbatches go through all of them and back. */
static void pass_stages(struct paced *p, int step)
{
    const int stage = p->rank % p->stages, micro = p->o.microbatches;
    const int before = stage > 0 ? p->rank - 1 : -1;
    const int after = stage < p->stages - 1 ? p->rank + 1 : -1;
    struct phase phase = begin(p, "forward");
    for (int i = 0; i < micro; i++) {
        paced_receive(p, before);
        compute(p, 3.0 * micro);
        paced_send(p, after);
    }
    end(p, phase);
    phase = begin(p, "backward");
    for (int i = 0; i < micro; i++) {
        paced_receive(p, after);
        compute(p, 1.5 * micro);
        paced_send(p, before);
    }
    for (int i = 0; i < p->o.layers; i++)
        hand_over_layer(p, layer_at(p, i), step);
    end(p, phase);
}

static bool checkpoint_is_due(const struct paced *p, int step)
{
    const struct rt_fault *slow = rt_faults_find(&p->faults, RT_FAULT_SLOW_CHECKPOINT);
    int every = slow ? slow->every : p->o.checkpoint_every;
    return p->rank == 0 && every > 0 && step % every == every - 1;
}

static void train_step(struct paced *p, int step)
{
    struct phase phase = begin(p, "load");
    paced_read_batch(p, step);
    end(p, phase);

    if (p->stages > 1)
        pass_stages(p, step);
    else
        forward_and_backward(p, step);

    phase = begin(p, "synchronize");
    p->way->finish(p);
    end(p, phase);

    phase = begin(p, "optimizer");
    descend(p);
    end(p, phase);

    if (checkpoint_is_due(p, step)) {
        phase = begin(p, "checkpoint");
        paced_write_checkpoint(p);
        end(p, phase);
    }
}

static void train(struct paced *p)
{
    for (int s = 0; s < p->o.steps; s++) {
        rt_faults_step(&p->faults, s);
        int64_t start = (int64_t)rt_now_ns();
        rt_nvtx_push("step");
        train_step(p, s);
        rt_nvtx_pop();
        if (p->log)
            fprintf(p->log, "step %lld %lld\n", (long long)start,
                    (long long)((int64_t)rt_now_ns() - start));
        if (p->rank == 0) {
            printf("step %d\n", s);
            fflush(stdout);
        }
    }
}

/* ---- begin and end ---- */

static void begin_faults(struct paced *p)
{
    static const struct rt_fault_phase phases[] = {
        {"load", RT_FAULT_PHASE_LOAD},
        {"forward", RT_FAULT_PHASE_COMPUTE},
        {"exchange", RT_FAULT_PHASE_OTHER},
        {"backward", RT_FAULT_PHASE_COMPUTE},
        {"synchronize", RT_FAULT_PHASE_OTHER},
        {"optimizer", RT_FAULT_PHASE_COMPUTE},
        {"checkpoint", RT_FAULT_PHASE_CHECKPOINT},
        {NULL, RT_FAULT_PHASE_OTHER},
    };
    const uint32_t plain =
        RT_FAULT_BIT(LATE_SEND) | RT_FAULT_BIT(PIPELINE) | RT_FAULT_BIT(DEADLOCK);
    const uint32_t runtime = RT_FAULT_BITS_RUNTIME | RT_FAULT_BIT(NO_OVERLAP);
    const struct rt_faults_program program = {
        .name = p->o.plain ? "paced --plain" : "paced without --plain",
        .plays = RT_FAULT_BITS_TIME | RT_FAULT_BITS_SOCKETS | RT_FAULT_BIT(SLOW_LOADER) |
                 RT_FAULT_BIT(SLOW_CHECKPOINT) | RT_FAULT_BIT(SMALL_TENSORS) |
                 RT_FAULT_BIT(MISMATCH) | RT_FAULT_BIT(SKIP) | RT_FAULT_BIT(SWAP_ORDER) |
                 (p->o.plain ? plain : runtime) | (p->o.works ? RT_FAULT_BITS_WORK : 0) |
                 (p->o.works && !p->o.plain ? RT_FAULT_BIT(COMM_STEALS_CPU) : 0),
        .phases = phases,
        .sleeps = !p->o.works,
    };
    char message[RT_FAULT_MESSAGE_BYTES];
    if (rt_faults_begin(&p->faults, &program, message, sizeof message)) {
        fprintf(stderr, "paced: %s\n", message);
        exit(2);
    }
    const struct rt_fault *pipeline = rt_faults_find(&p->faults, RT_FAULT_PIPELINE);
    p->stages = pipeline ? pipeline->stages : 1;
}

static void open_log(struct paced *p)
{
    char path[512];
    int version = 0;
    if (!p->o.log)
        return;
    snprintf(path, sizeof path, "%s/rank-%d", p->o.log, p->rank);
    p->log = fopen(path, "we");
    if (!p->log)
        paced_die(p, path, strerror(errno));
    setvbuf(p->log, NULL, _IOLBF, 0);
    ncclGetVersion(&version);
    fprintf(p->log, "nccl %d 0\n", version);
}

static void release(struct paced *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        free(p->tensors[i].value);
        free(p->tensors[i].gradient);
    }
    free(p->tensors);
    free(p->batch);
    free(p->message);
    if (p->log)
        fclose(p->log);
}

int main(int argc, char **argv)
{
    struct paced p = {.o = paced_options_read(argc, argv)};
    begin_faults(&p);
    p.way = p.o.plain ? &paced_by_mpi : &paced_by_runtime;
    p.way->begin(&p, &argc, &argv);
    if (p.size % p.stages != 0)
        paced_die(&p, "pipeline", "the number of ranks is no multiple of its stages");
    open_log(&p);
    make_tensors(&p);
    p.batch = calloc(1, p.o.batch_bytes + 1);
    p.message = calloc(1, p.o.message_bytes + 1);
    if (!p.batch || !p.message)
        paced_die(&p, "buffers", "no memory");
    paced_files_open(&p);
    train(&p);
    uint64_t sum = checksum(&p);
    int differing = p.way->differing(&p, sum);
    if (p.rank == 0)
        printf("parameters %s on %d ranks, checksum %016llx\n", differing ? "DIFFER" : "identical",
               p.size, (unsigned long long)sum);
    paced_files_close(&p);
    p.way->end(&p);
    release(&p);
    rt_faults_end(&p.faults);
    return 0;
}
