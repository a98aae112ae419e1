/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fault.h"
#include "rt-file.h"
#include "rt-nvtx.h"
#include "rt-train.h"

struct training {
    const struct train_program *program;
    struct train_options o;
    struct rt_faults faults;
    struct train_model model;
    struct rt_gradients gradients;
    struct rt_gradient *gradient;
    char (*gradient_name)[64];
    struct rt_parameter *state; /* all that a checkpoint has */
    unsigned states;
    struct rt_shard shard;
    uint64_t *item;
    /* stand in the state */
    int64_t step;
    double first_loss, last_loss;
    bool checkpoint_failed;
};

static void __attribute__((noreturn, format(printf, 2, 3)))
die(const struct training *t, const char *format, ...)
{
    char text[640];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (rt_rank() < 0) /* the runtime has not begun */
        fprintf(stderr, "%s: %s\n", t->program->name, text);
    else
        fprintf(stderr, "%s: rank %d: %s\n", t->program->name, rt_rank(), text);
    exit(1);
}

static void check(const struct training *t, const char *what, int result)
{
    if (result < 0)
        die(t, "%s: %s", what, rt_error());
}

static void begin(struct training *t, const char *phase)
{
    rt_nvtx_push(phase);
    rt_faults_phase_begin(&t->faults, phase);
}

static void end(struct training *t)
{
    rt_faults_phase_end(&t->faults);
    rt_nvtx_pop();
}

/* ---- state ---- */

static void list_state(struct training *t)
{
    struct train_model *m = &t->model;
    t->state = calloc(m->tensors + m->states + 3, sizeof *t->state);
    t->gradient = calloc(m->tensors, sizeof *t->gradient);
    t->gradient_name = calloc(m->tensors, sizeof *t->gradient_name);
    if (!t->state || !t->gradient || !t->gradient_name ||
        rt_gradients_init(&t->gradients, t->gradient, m->tensors, (unsigned)t->o.passes,
                          m->items > 0) < 0)
        die(t, "no memory");
    for (unsigned i = 0; i < m->tensors; i++) {
        struct train_tensor *tensor = &m->tensor[i];
        snprintf(t->gradient_name[i], sizeof t->gradient_name[i], "gradient.%s", tensor->name);
        t->gradient[i] = (struct rt_gradient){t->gradient_name[i], tensor->gradient, tensor->count};
        t->state[t->states++] =
            (struct rt_parameter){tensor->name, tensor->value, tensor->count, RT_FLOAT32};
    }
    for (unsigned i = 0; i < m->states; i++)
        t->state[t->states++] = m->state[i];
    t->state[t->states++] = (struct rt_parameter){"step", &t->step, 1, RT_INT64};
    t->state[t->states++] = (struct rt_parameter){"first-loss", &t->first_loss, 1, RT_FLOAT64};
    t->state[t->states++] = (struct rt_parameter){"last-loss", &t->last_loss, 1, RT_FLOAT64};
}

static void share_state(struct training *t, int root)
{
    check(t, "broadcast of the state", rt_broadcast_parameters(t->state, t->states, root, NULL));
}

static void share_from_first(struct training *t, const char *name, int32_t *value)
{
    int handle = rt_broadcast_async(name, value, 1, RT_INT32, 0, NULL);
    check(t, name, handle < 0 ? handle : rt_wait(handle));
}

/* At the end of a long run is too late to hear of it. */
static void check_checkpoint(const struct training *t)
{
    int result = t->o.checkpoint && rt_rank() == 0 ? rt_file_replaceable(t->o.checkpoint) : 0;
    if (result < 0)
        die(t, "--checkpoint %s: %s", t->o.checkpoint, rt_file_why(result));
}

/* Rank 0 reads; every rank ends where it can't. */
static void resume(struct training *t)
{
    char message[RT_CHECKPOINT_MESSAGE_BYTES];
    int32_t result = 0;
    if (rt_rank() == 0) {
        result = rt_checkpoint_read(t->o.checkpoint, t->model.description, t->state, t->states,
                                    message, sizeof message);
        if (result < 0)
            fprintf(stderr, "%s: %s\n", t->program->name, message);
    }
    share_from_first(t, "resumed", &result);
    if (result < 0) {
        rt_shutdown();
        exit(1);
    }
}

static void save(struct training *t)
{
    char message[RT_CHECKPOINT_MESSAGE_BYTES];
    if (rt_rank() != 0)
        return;
    begin(t, "checkpoint");
    if (rt_checkpoint_write(t->o.checkpoint, t->model.description, t->state, t->states, message,
                            sizeof message) < 0) {
        fprintf(stderr, "%s: step %lld: %s\n", t->program->name, (long long)t->step, message);
        t->checkpoint_failed = true;
    }
    end(t);
}

/* ---- a step ---- */

/* Rows of pass `pass` of the step, of `rows` in all: the passes' parts differ by at most one. */
static uint64_t rows_of_pass(uint64_t rows, int passes, int pass)
{
    return rows / (uint64_t)passes + ((uint64_t)pass < rows % (uint64_t)passes);
}

static uint64_t load(struct training *t, int pass, uint64_t *first_row)
{
    if (t->model.items == 0) {
        t->model.load(t->model.self, NULL, t->o.batch);
        return (uint64_t)t->o.batch;
    }
    uint64_t epoch = (uint64_t)t->step / rt_shard_steps(&t->shard);
    uint64_t step = (uint64_t)t->step % rt_shard_steps(&t->shard);
    uint64_t rows = rows_of_pass(rt_shard_rows(&t->shard, step), t->o.passes, pass);
    for (uint64_t k = 0; k < rows; k++)
        t->item[k] = rt_shard_item(&t->shard, epoch, step, *first_row + k);
    *first_row += rows;
    t->model.load(t->model.self, t->item, (int)rows);
    return rows;
}

static void backward(struct training *t, uint64_t rows)
{
    const struct train_model *m = &t->model;
    check(t, "allreduce", rt_gradients_begin(&t->gradients, rows));
    for (unsigned p = m->parts; p-- > 0;) {
        m->backward(m->self, p);
        rt_faults_part(&t->faults);
        for (unsigned i = m->part_first[p]; i < m->part_first[p + 1]; i++)
            check(t, "allreduce", rt_gradients_ready(&t->gradients, i));
    }
}

/* Returns this rank's rows; *ret_loss is their mean loss. */
static uint64_t one_step(struct training *t, const struct rt_rate *rate, double *ret_loss)
{
    uint64_t rows = 0, row = 0;
    double loss = 0;
    for (int pass = 0; pass < t->o.passes; pass++) {
        begin(t, "load");
        uint64_t of_pass = load(t, pass, &row);
        end(t);
        begin(t, "forward");
        loss += t->model.forward(t->model.self) * (double)of_pass;
        end(t);
        begin(t, "backward");
        backward(t, of_pass);
        end(t);
        rows += of_pass;
        begin(t, "synchronize");
        check(t, "allreduce", rt_gradients_wait(&t->gradients));
        end(t);
    }
    begin(t, "optimizer");
    t->model.optimize(t->model.self, rt_rate_at(rate, (double)t->step));
    end(t);
    *ret_loss = rows ? loss / (double)rows : 0;
    return rows;
}

static void tell_loss(struct training *t, double loss, uint64_t rows)
{
    check(t, "mean of the loss", rt_mean_over_ranks("loss", &loss, 1, (double)rows));
    t->first_loss = t->step == 0 ? loss : t->first_loss;
    t->last_loss = loss;
    if (rt_rank() == 0)
        printf("step %lld loss %.4f\n", (long long)t->step, loss);
}

static void steps_to(struct training *t, int64_t last, const struct rt_rate *rate)
{
    while (t->step < last) {
        double loss;
        rt_faults_step(&t->faults, t->step);
        rt_nvtx_push("step");
        uint64_t rows = one_step(t, rate, &loss);
        rt_nvtx_pop();
        if (t->step == 0 || t->step == t->o.steps - 1 || t->step % 10 == 9)
            tell_loss(t, loss, rows);
        t->step++;
        if (t->o.every && t->step % t->o.every == 0 && t->step < t->o.steps)
            save(t);
    }
}

/* To `last`, within an epoch. Where some ranks' data ends before, they join; when all have, they
 * get from the last what they didn't learn. */
static void epoch_to(struct training *t, int64_t last, const struct rt_rate *rate)
{
    int64_t start = t->step - t->step % (int64_t)rt_shard_steps(&t->shard);
    struct rt_shard shortest = t->shard;
    shortest.rank = rt_size() - 1;
    if (start + (int64_t)rt_shard_own_steps(&shortest) >= last) {
        steps_to(t, last, rate);
        return;
    }
    int64_t own = start + (int64_t)rt_shard_own_steps(&t->shard);
    steps_to(t, own < last ? own : last, rate);
    int root, handle = rt_join_async(&root, NULL);
    check(t, "join", handle < 0 ? handle : rt_wait(handle));
    share_state(t, root);
}

static void train(struct training *t)
{
    struct rt_rate rate = {.base = (double)t->o.rate, .factor = 1, .warm_up = t->o.warm_up};
    if (t->o.scale_rate)
        rate.factor = (double)rt_size() * t->o.passes;
    if (t->model.items == 0) {
        if (t->model.skip)
            t->model.skip(t->model.self, (uint64_t)t->step * (uint64_t)t->o.passes);
        steps_to(t, t->o.steps, &rate);
    }
    while (t->step < t->o.steps) {
        int64_t steps = (int64_t)rt_shard_steps(&t->shard);
        int64_t last = (t->step / steps + 1) * steps;
        epoch_to(t, last < t->o.steps ? last : t->o.steps, &rate);
    }
    if (t->o.checkpoint)
        save(t);
}

/* ---- begin and end ---- */

/* Every rank's words against those of rank 0: on how many they differ. */
static int differing_ranks(struct training *t, uint64_t checksum)
{
    int32_t words[2], differs;
    memcpy(words, &checksum, sizeof words);
    int handle = rt_broadcast_async("checksum", words, 2, RT_INT32, 0, NULL);
    check(t, "checksum", handle < 0 ? handle : rt_wait(handle));
    differs = memcmp(words, &checksum, sizeof words) != 0;
    handle = rt_allreduce_async("differs", &differs, &differs, 1, RT_INT32, RT_SUM, 1, 1, NULL);
    check(t, "checksum", handle < 0 ? handle : rt_wait(handle));
    return differs;
}

/* The same status on every rank. */
static int verdict(struct training *t)
{
    uint64_t checksum = train_checksum(t->model.tensor, t->model.tensors);
    int differing = differing_ranks(t, checksum);
    int32_t worse = t->o.steps >= 10 && !(t->last_loss < t->first_loss);
    if (rt_rank() == 0)
        printf("parameters %s on %d ranks, checksum %016llx%s\n",
               differing ? "DIFFER" : "identical", rt_size(), (unsigned long long)checksum,
               worse ? "; the loss has NOT fallen" : "");
    worse |= t->checkpoint_failed;
    share_from_first(t, "verdict", &worse);
    return differing || worse;
}

static void make_model(struct training *t)
{
    char message[512] = "";
    uint64_t size = (uint64_t)rt_size(), passes = (uint64_t)t->o.passes;
    uint64_t batch = t->o.global_batch ? t->o.global_batch : size * passes * (uint64_t)t->o.batch;
    uint64_t rows = (batch + size * passes - 1) / (size * passes);
    if (t->program->make(&t->model, &t->o, (int)rows, rt_rank(), message, sizeof message) < 0)
        die(t, "%s", message);
    size_t used = strlen(t->model.description);
    snprintf(t->model.description + used, sizeof t->model.description - used,
             ", seed %llu, %llu rows of %llu in a step", (unsigned long long)t->o.seed,
             (unsigned long long)batch, (unsigned long long)t->model.items);
    if (t->o.global_batch && t->model.items == 0)
        die(t, "--global-batch needs data that ends: --items N, or a file");
    t->shard = (struct rt_shard){.items = t->model.items,
                                 .global_batch = batch,
                                 .seed = t->o.seed,
                                 .rank = rt_rank(),
                                 .size = rt_size()};
    t->item = calloc(rows, sizeof *t->item);
    if (!t->item)
        die(t, "no memory");
    list_state(t);
}

static const struct rt_fault_phase phases[] = {
    {"load", RT_FAULT_PHASE_LOAD},         {"forward", RT_FAULT_PHASE_COMPUTE},
    {"backward", RT_FAULT_PHASE_COMPUTE},  {"synchronize", RT_FAULT_PHASE_OTHER},
    {"optimizer", RT_FAULT_PHASE_COMPUTE}, {"checkpoint", RT_FAULT_PHASE_CHECKPOINT},
    {NULL, RT_FAULT_PHASE_OTHER},
};

int train_main(int argc, char **argv, const struct train_program *program)
{
    const struct rt_faults_program faults = {
        .name = program->name,
        .plays = RT_FAULT_BITS_TIME | RT_FAULT_BITS_WORK | RT_FAULT_BITS_SOCKETS |
                 RT_FAULT_BITS_RUNTIME | RT_FAULT_BIT(SLOW_LOADER) | RT_FAULT_BIT(COMM_STEALS_CPU),
        .phases = phases,
    };
    struct training t = {.program = program};
    char message[RT_FAULT_MESSAGE_BYTES];
    t.o = train_options_read_for(
        argc, argv, TRAIN_OPTIONS_BASE | TRAIN_OPTIONS_LOOP | program->options, program->rate);
    if (rt_faults_begin(&t.faults, &faults, message, sizeof message)) {
        fprintf(stderr, "%s: %s\n", program->name, message);
        return 2;
    }
    check(&t, "start", rt_init());
    check_checkpoint(&t);
    make_model(&t);
    if (t.o.resume)
        resume(&t);
    share_state(&t, 0);
    train(&t);
    int status = verdict(&t);
    check(&t, "shutdown", rt_shutdown());
    rt_gradients_release(&t.gradients);
    t.model.release(t.model.self);
    free(t.state);
    free(t.gradient);
    free(t.gradient_name);
    free(t.item);
    rt_faults_end(&t.faults);
    return status;
}
