/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic-run.h - makes models of runs whose truth is known, for tests of what reads a model.
 *
 * Model of the run: every rank repeats a step of: compute (jittered, so that inputs are not
 * uniform), a ring of messages to the next rank (Irecv, Send, Wait), a tensor negotiated, and
 * collectives. All times are true times; what is planted is added to them.
 */
#ifndef RS_TESTS_SYNTHETIC_RUN_H
#define RS_TESTS_SYNTHETIC_RUN_H

#include "model-builder.h"

G_BEGIN_DECLS

typedef struct {
    guint32 seed;
    guint n_ranks, n_hosts;     /* ranks are laid on hosts in blocks: host0, host1, ... */
    guint n_steps;              /* 0: none */
    gboolean mark_steps;        /* a range "step" around each, with "forward" inside */
    gint64 compute_ns;          /* per step; jitter adds up to an eighth */
    guint collectives_per_step; /* MPI_Allreduce of float, each twice the size of the one before */
    guint64 count;              /* elements of the first of them */
    gint64 transfer_ns;         /* of a collective */
    gboolean nccl;              /* collectives are NCCL calls with device intervals */
    guint64 message_bytes;      /* 0: no messages */
    gdouble bytes_per_s;        /* of every link */
    gboolean negotiate;         /* Horovod's NEGOTIATE_ALLREDUCE of tensor "grad" in each step */

    gint32 slow_rank; /* -1 none: computes late_ns longer in every step */
    gint64 late_ns;
    gint32 slow_src, slow_dst; /* -1 none: hosts between which messages run at slow_bytes_per_s */
    gdouble slow_bytes_per_s;
    gint32 missing_rank; /* -1 none: its capture is not there */
} RsSyntheticRun;

/* 4 ranks on 2 hosts, 20 steps of 10 ms, 2 collectives, 1 MiB messages at 1 GB/s, nothing planted.
 */
extern const RsSyntheticRun rs_synthetic_healthy;

RsModel *rs_synthetic_run(const RsSyntheticRun *spec);

G_END_DECLS
#endif
