/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-train.h - what data-parallel training needs beside collectives: a learning rate for the number
 * of ranks, data for each rank, gradients summed while backward goes on, means of metrics,
 * checkpoints.
 *
 * Model: parameters, optimizer state and counters are lists of struct rt_parameter. Whoever starts
 * or resumes gives them to all ranks by rt_broadcast_parameters (rt.h), and one rank writes them by
 * rt_checkpoint_write: what stands in the list is what a resumed run has, to the bit; so a run
 * whose every step depends on the list alone goes on as if it had never stopped.
 *
 * Threads: one, but rates, shards and checkpoints are functions of their arguments. Errors: 0 or a
 * negative errno; where the runtime failed, rt_error() says why.
 */
#ifndef RT_TRAIN_H
#define RT_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- learning rate ---- */

/*
 * Of `factor` times the data in a step (ranks times passes) the rate is `factor` times as high; it
 * gets there from `base` in a line over `warm_up` steps or epochs (0: at once), as a high rate with
 * first parameters diverges.
 */
struct rt_rate {
    double base, factor, warm_up;
};

/* At `position`, steps or epochs done, as warm_up counts; an epoch may be under way (1.25). */
double rt_rate_at(const struct rt_rate *rate, double position);

/* ---- data ---- */

/*
 * `items` rows of data, shuffled anew each epoch by `seed`, in steps of `global_batch` rows, of
 * which the ranks take consecutive parts that differ by at most one, the longer first. So step s of
 * an epoch works on the same rows whatever the number of ranks. The last step has what is left: the
 * first ranks have their usual part, one has less, and the others none: those join (rt_join_async)
 * until the epoch ends.
 */
struct rt_shard {
    uint64_t items, global_batch, seed;
    int rank, size;
    bool in_order; /* not shuffled */
};

/* Steps of an epoch; and of them those in which this rank has rows, the first ones. These four: 0
 * where the batch is 0, or the rank none of `size`. */
uint64_t rt_shard_steps(const struct rt_shard *shard);
uint64_t rt_shard_own_steps(const struct rt_shard *shard);
/* How many rows this rank has in step `step` of an epoch, and which item each is. */
uint64_t rt_shard_rows(const struct rt_shard *shard, uint64_t step);
uint64_t rt_shard_item(const struct rt_shard *shard, uint64_t epoch, uint64_t step, uint64_t row);

/* ---- gradients ---- */

struct rt_gradient {
    const char *name; /* of the tensor that goes over the wire; stays while the list is used */
    float *data;
    uint64_t count;
};

/*
 * Gradients of a step, from `passes` backward passes, each handed over as soon as the last pass has
 * it: while backward goes on with the next, it is on its way.
 *
 * Even: every rank has as many rows in every pass. A pass adds its mean over rows, and the result
 * is the mean over passes and ranks. Weighted: a pass adds its sum over rows, and the result is the
 * sum of all ranks divided by the rows of all ranks: right for parts that differ, and where ranks
 * joined. Where no rank has rows it is zero.
 */
struct rt_gradients {
    const struct rt_gradient *gradient; /* borrowed */
    unsigned n, passes;
    bool weighted;
    const struct rt_options *options; /* of each allreduce; borrowed, NULL: none. Gradients alone
                                         are compressed: rows are counted whole */
    /* what follows belongs to the functions */
    unsigned pass;
    uint64_t step_rows, rows; /* this rank's, all ranks' */
    int rows_handle;
    int *handle; /* n; -1: not handed over */
};

/* -EINVAL: n or passes is 0, or there is no gradient. */
int rt_gradients_init(struct rt_gradients *g, const struct rt_gradient *gradient, unsigned n,
                      unsigned passes, bool weighted);
void rt_gradients_release(struct rt_gradients *g);
/* A pass over `rows` rows begins; the first one of a step clears the gradients. */
int rt_gradients_begin(struct rt_gradients *g, uint64_t rows);
/* This pass has been added to gradient `i`. -EINVAL: there is none. These two: -EALREADY, the
 * step's last pass has said so before. */
int rt_gradients_ready(struct rt_gradients *g, unsigned i);
/* The pass ends. 1: the step's gradients are those of all ranks; 0: more passes to come. -EINVAL:
 * in the last one not all were ready. */
int rt_gradients_wait(struct rt_gradients *g);

/* ---- metrics ---- */

/* values[i] becomes its mean over the ranks, each counted `weight` times (rows, say), whatever
 * RT_COMPRESSION says in double. A weight of 0 on every rank gives zeros. -EINVAL: more than 16. */
int rt_mean_over_ranks(const char *name, double *values, unsigned n, double weight);

/* ---- checkpoints ---- */

/*
 * A file of all of `state`, from one rank. It is written beside (PATH.new), synchronised and
 * renamed: at any time PATH is a whole checkpoint, the old one or the new one, whatever is killed
 * or full. `model` says whose state it is and what was configured; only a checkpoint with the same
 * is read. In native byte order. Where it fails the old file stays, `message` says what and where;
 * after a failed read the contents of state are what they were. -ENOENT no such file, -EBADMSG
 * damaged or no checkpoint, -EINVAL another model's, or a list that can't be one (a name is missing
 * or longer than RT_NAME_MAX, a type unknown), else what the system said.
 */
int rt_checkpoint_write(const char *path, const char *model, const struct rt_parameter *state,
                        unsigned n, char *message, size_t message_bytes);
int rt_checkpoint_read(const char *path, const char *model, const struct rt_parameter *state,
                       unsigned n, char *message, size_t message_bytes);

#define RT_CHECKPOINT_MESSAGE_BYTES 512
#define RT_CHECKPOINT_MODEL_MAX     255 /* bytes of `model` */

#ifdef __cplusplus
}
#endif

#endif
