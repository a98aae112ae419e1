/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paced.h - the inside of paced: its options, its tensors, and the two ways its gradients go.
 *
 * Threads: all of it on one.
 */
#ifndef PACED_H
#define PACED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rt-fault.h"

struct paced_options {
    int steps, layers, microbatches, checkpoint_every;
    uint64_t bytes, batch_bytes, message_bytes;
    double compute_ms;
    bool works, plain;
    const char *dir, *log;
};

/* Prints to stderr, or the help to stdout, and ends the program where the line isn't right. */
struct paced_options paced_options_read(int argc, char **argv);

struct paced_tensor {
    char name[64];
    int layer;
    uint64_t count;
    float *value, *gradient;
    int handle;
};

struct paced {
    struct paced_options o;
    struct rt_faults faults;
    const struct paced_way *way;
    int rank, size;
    struct paced_tensor *tensors; /* by layer */
    unsigned n;
    FILE *log;
    int batches, stages; /* descriptor; 1: no pipeline */
    char batches_path[512], checkpoint_path[512];
    void *batch, *message; /* batch_bytes, message_bytes */
};

/* How ranks get together. Failures end the program, with a message. */
struct paced_way {
    bool has_messages; /* MPI is the program's, for messages too */
    void (*begin)(struct paced *p, int *argc, char ***argv);
    /* From now on its gradient may be averaged over the ranks that share it; in this order on all.
     */
    void (*hand_over)(struct paced *p, struct paced_tensor *t);
    /* All that were handed over are averaged. */
    void (*finish)(struct paced *p);
    /* How many ranks have another checksum than the first of those that share tensors; on all. */
    int (*differing)(struct paced *p, uint64_t checksum);
    void (*end)(struct paced *p);
};
extern const struct paced_way paced_by_runtime, paced_by_mpi;

/* ---- paced-mpi.c: messages ---- */

/* With both neighbours in a ring. */
void paced_exchange(struct paced *p);
void paced_send(struct paced *p, int to);
void paced_receive(struct paced *p, int from);

/* ---- paced-files.c: a file of batches, read again and again, and new ones for checkpoints ---- */

void paced_files_open(struct paced *p);
void paced_files_close(struct paced *p);
void paced_read_batch(struct paced *p, int step);
void paced_write_checkpoint(struct paced *p);

/* Says what and why, and ends the program. */
_Noreturn void paced_die(const struct paced *p, const char *what, const char *why);

#endif
