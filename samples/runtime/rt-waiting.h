/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-waiting.h - a tensor that some ranks have announced: what each said of it, and the texts that
 * tell where they differ.
 *
 * Memory: a rank that says what the first said costs a pointer; only others are kept in full.
 */
#ifndef RT_WAITING_H
#define RT_WAITING_H

#include <stdbool.h>

#include "rt-message.h"

struct rt_waiting {
    struct rt_tensor tensor; /* as the first rank to announce it said; the highest priority */
    int ranks;               /* of the job */
    const bool *members;     /* by rank: of the process set; NULL: all; borrowed */
    int announced;           /* ranks */
    bool differs;            /* some rank said otherwise */
    bool lost;               /* a rank left without it */
    bool given_up;           /* it has waited too long */
    bool closed;             /* its process set is removed */
    uint64_t since_ns;       /* its first announcement */
    uint64_t sequence;       /* when it became ready, among others */
    const struct rt_tensor *said[]; /* by rank: &tensor, or its own; NULL: not announced */
};

/* NULL: no memory. */
struct rt_waiting *rt_waiting_new(const struct rt_tensor *tensor, int ranks);
void rt_waiting_free(struct rt_waiting *w);

/* -ENOMEM; -EPROTO: that rank has announced it already. */
int rt_waiting_announce(struct rt_waiting *w, int rank, const struct rt_tensor *tensor);

/* Appends to a text, which is ended by a zero that `n` doesn't count. */
__attribute__((format(printf, 2, 3))) void rt_say(struct rt_bytes *text, const char *format, ...);
/* Who has it not: "rank 2, rank 5". */
void rt_waiting_say_missing(const struct rt_waiting *w, struct rt_bytes *text);
/* Each property that ranks differ in, with each rank's value. */
void rt_waiting_say_mismatch(const struct rt_waiting *w, struct rt_bytes *text);

#endif
