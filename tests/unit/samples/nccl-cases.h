/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-cases.h - what each rank of a test of hostnccl does.
 *
 * For tests. A case gets a communicator of all ranks and returns 0, or the line that failed. It
 * runs in threads of one process or in processes of their own; it destroys what it made, not
 * `comm`.
 */
#ifndef NCCL_CASES_H
#define NCCL_CASES_H

#include "nccl.h"

typedef int nccl_case_fn(ncclComm_t comm, int rank, int size);

struct nccl_case {
    const char *name;
    nccl_case_fn *run;
    int ends_comm; /* the case destroys or breaks `comm` itself */
};

extern const struct nccl_case nccl_cases[];
extern const int nccl_case_count;
/* For processes: rank size / 2 kills itself. */
extern const struct nccl_case nccl_death_cases[];
extern const int nccl_death_case_count;

extern const struct nccl_case nccl_graph_cases[];
extern const int nccl_graph_case_count;

const struct nccl_case *nccl_case_find(const char *name);

#endif
