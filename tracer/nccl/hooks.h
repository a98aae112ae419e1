/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.h - what follows a call that made communicators: nccl.api's `hook`, called with its result
 * and arguments. */
#ifndef RS_TRACER_NCCL_HOOKS_H
#define RS_TRACER_NCCL_HOOKS_H

#include "abi.h"
#include "core.h"

void rs_hook_ncclCommInitRank(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                              int nranks, ncclUniqueId id, int rank) RS_HIDDEN;
void rs_hook_ncclCommInitAll(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm, int ndev,
                             const int *devlist) RS_HIDDEN;
void rs_hook_ncclCommInitRankConfig(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                                    int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) RS_HIDDEN;
void rs_hook_ncclCommInitRankScalable(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                                      int nranks, int rank, int n_ids, ncclUniqueId *ids,
                                      ncclConfig_t *config) RS_HIDDEN;
void rs_hook_ncclCommSplit(struct rs_thread *t, ncclResult_t result, ncclComm_t parent, int color,
                           int key, ncclComm_t *comm, ncclConfig_t *config) RS_HIDDEN;
void rs_hook_ncclCommShrink(struct rs_thread *t, ncclResult_t result, ncclComm_t parent,
                            int *excluded, int n_excluded, ncclComm_t *comm, ncclConfig_t *config,
                            int flags) RS_HIDDEN;

#endif
