/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll-cases.h - what a rank does to try one collective of rt_coll, and many such cases: a covering
 * array of strength two, or the full product.
 *
 * For tests, over any transport. Results are compared with rt-reference's; bytes behind buffers,
 * and inputs, must stay as they were.
 */
#ifndef COLL_CASES_H
#define COLL_CASES_H

#include "rt-ranks.h"

/* What a rank returns. */
enum { WRONG_VALUE = 1, WRONG_GUARD, WRONG_INPUT, FAILED, NO_MEMORY };

/* Ranks on hosts: the first ones on the first, ...; one on each in turn; one on each but the last,
 * which has the rest. */
enum laid { LAID_IN_ORDER, LAID_IN_TURN, LAID_UNEVEN, LAID_COUNT };
#define MAX_HOSTS 4
int host_of(int rank, int size, int hosts, enum laid laid);

/* What a rank brings to an allreduce of what isn't finite, and whether that is what must come of
 * it; `infinite`: the type has infinities. */
double special_value(uint64_t i, int rank, int size, bool infinite);
bool is_special_result(double got, uint64_t i, int size, enum rt_op op, bool infinite);

struct subject {
    const char *algorithm; /* its name in coll_cases */
    enum rt_type type;
    enum rt_op op;
    bool in_place;
    int hosts; /* where it knows of hosts */
    enum laid laid;
    const uint64_t *counts; /* one collective of each */
    unsigned count_count;
};

/* The argument is a struct subject. The last tries one allreduce, of floats, of what isn't finite.
 */
rank_fn allreduce_rank, hosts_rank, reduce_scatter_rank, reduce_rank, allgather_rank,
    allgatherv_rank, alltoallv_rank, broadcast_rank, not_finite_rank;

struct coll_case {
    const char *name;
    rank_fn *run;
};
extern const struct coll_case coll_cases[];
extern const unsigned coll_case_count;

struct coll_runner {
    uint64_t seed;
    bool all;             /* the full product: millions */
    bool progress;        /* of which it says on stderr how many are done */
    unsigned transports;  /* how many to choose from */
    uint64_t block_bytes; /* about theirs: lengths round it are tried */
    /* `fn` as `size` ranks over that transport; returns what the lowest that fails does. */
    int (*run)(int size, unsigned transport, rank_fn *fn, struct subject *s);
};
/* Until one fails: then says which on stderr, and returns what it returned. */
int coll_cases_run(const struct coll_runner *r);

#endif
