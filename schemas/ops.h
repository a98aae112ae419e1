/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - what Ringscope knows of every function it wraps, as one table.
 *
 * The rows come from the ops folder (syntax: ops/README.md); schemas/ops/gen writes them
 * into the build folder as ops-table.c (rs_op_table) and ops-numbers.h (RS_OP_MPI_Allreduce = ...).
 * A number, once given, is never used for another function: captures outlive versions.
 */
#ifndef RS_SCHEMAS_OPS_H
#define RS_SCHEMAS_OPS_H

#include <stddef.h>
#include <stdint.h>

enum rs_op_api { RS_API_NONE, RS_API_MPI, RS_API_NCCL, RS_API_NVTX, RS_API_CUDA, RS_API_GLOO,
                 RS_API_IO, RS_API_COUNT };

enum rs_op_class {
    RS_CLASS_OTHER,
    RS_CLASS_COLL,       /* blocking collective, or a device collective's call */
    RS_CLASS_COLL_START, /* nonblocking collective: ends at a completion call */
    RS_CLASS_SEND,
    RS_CLASS_SEND_START,
    RS_CLASS_RECV,
    RS_CLASS_RECV_START,
    RS_CLASS_SENDRECV,
    RS_CLASS_PROBE,
    RS_CLASS_COMPLETE,   /* wait and test family */
    RS_CLASS_COMM,       /* makes or frees a communicator */
    RS_CLASS_GROUP,      /* ncclGroupStart, ncclGroupEnd */
    RS_CLASS_ENV,        /* init, finalize, abort */
    RS_CLASS_RMA,        /* one-sided: peer is the target */
    RS_CLASS_SYNC,       /* waits for others, of whom nobody is told: locks, flushes, epochs */
    RS_CLASS_FILE,       /* file I/O by the library */
    RS_CLASS_COUNT,
};

/* What is computed, whatever the library calls it. No bandwidth is defined for barrier and scan. */
enum rs_coll {
    RS_COLL_NONE, RS_COLL_ALLREDUCE, RS_COLL_REDUCE, RS_COLL_BROADCAST, RS_COLL_ALLGATHER,
    RS_COLL_REDUCE_SCATTER, RS_COLL_ALLTOALL, RS_COLL_GATHER, RS_COLL_SCATTER, RS_COLL_BARRIER,
    RS_COLL_SCAN, RS_COLL_COUNT
};

struct rs_op_info {
    uint16_t op;
    uint8_t api;   /* enum rs_op_api */
    uint8_t klass; /* enum rs_op_class */
    uint8_t coll;  /* enum rs_coll */
    uint8_t vector; /* count is this rank's own total (-v and -w forms) */
    const char *name;
};

extern const struct rs_op_info rs_op_table[];
extern const size_t rs_op_table_len;

/* Returns the row of `op`, NULL where this version doesn't know it. Rows are sorted by number. */
const struct rs_op_info *rs_op_find(uint16_t op);
const char *rs_coll_name(enum rs_coll coll); /* "allreduce", ...; "none" */

#endif
