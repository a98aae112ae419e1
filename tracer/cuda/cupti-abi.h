/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti-abi.h - what the tracer uses of CUPTI's interface, so that it builds without its header.
 *
 * Records grow at their end from version to version, and the walk over a buffer is CUPTI's own, so
 * the beginnings below serve every version from RS_CUPTI_OLDEST to RS_CUPTI_NEWEST: CUDA 12.0 to
 * all of 13. A test that has the vendor's header compares them with the records of all versions in
 * it. Enumerations are 32 bits; fields that nothing reads are called `skipped`.
 */
#ifndef RS_TRACER_CUPTI_ABI_H
#define RS_TRACER_CUPTI_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion: 19 for CUDA 12.0, 28 for 12.9, then 13MMPP for 13.MM. */
#define RS_CUPTI_OLDEST 19u
#define RS_CUPTI_NEWEST 139999u

enum rs_cupti_result {
    RS_CUPTI_SUCCESS = 0,
    RS_CUPTI_MAX_LIMIT_REACHED = 12, /* of a walk: no more records */
    RS_CUPTI_NOT_INITIALIZED = 15,
    RS_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
    RS_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
    RS_CUPTI_VIRTUALIZED_PRIVILEGES = 40,
    RS_CUPTI_UNKNOWN = 999, /* what all say where there is no driver */
};

enum rs_cupti_kind {
    RS_CUPTI_MEMCPY = 1,
    RS_CUPTI_MEMSET = 2,
    RS_CUPTI_KERNEL = 3, /* one at a time: never asked for, but read */
    RS_CUPTI_DRIVER = 4,
    RS_CUPTI_RUNTIME = 5,
    RS_CUPTI_CONCURRENT_KERNEL = 10,
    RS_CUPTI_MEMCPY2 = 22, /* between devices */
    RS_CUPTI_SYNCHRONIZATION = 38,
    RS_CUPTI_GRAPH_TRACE = 51, /* a whole graph: never asked for, as it hides the kernels */
};

#define RS_CUPTI_FLUSH_FORCED   1u
#define RS_CUPTI_THREAD_SYSTEM  1u /* thread ids are gettid's */
#define RS_CUPTI_DOMAIN_DRIVER  1u /* of cuptiGetCallbackName */
#define RS_CUPTI_DOMAIN_RUNTIME 2u
#define RS_CUPTI_NO_ID          0xffffffffu /* of a stream or event that a record has none of */

struct rs_cupti_kernel { /* CUpti_ActivityKernel6 to 10 */
    uint32_t kind, skipped1[3];
    uint64_t start, end, skipped2;
    uint32_t device, context, stream;
    uint32_t skipped3[10];
    uint32_t correlation;
    uint64_t skipped4;
    const char *name;
    uint64_t skipped5[4];
    uint64_t graph_node;
    uint32_t skipped6, graph;
};

struct rs_cupti_memcpy { /* CUpti_ActivityMemcpy4 to 6 */
    uint32_t kind;
    uint8_t copy, skipped1[3];
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint64_t skipped2[2];
    uint64_t graph_node;
    uint32_t graph;
};

struct rs_cupti_memcpy2 { /* CUpti_ActivityMemcpyPtoP3 and 4 */
    uint32_t kind;
    uint8_t copy, skipped1[3];
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t from_device, from_context, to_device, to_context;
    uint32_t correlation;
    uint64_t skipped2;
    uint64_t graph_node;
    uint32_t graph;
};

struct rs_cupti_memset { /* CUpti_ActivityMemset3 and 4 */
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint64_t skipped[2];
    uint64_t graph_node;
    uint32_t graph;
};

struct rs_cupti_api { /* CUpti_ActivityAPI */
    uint32_t kind, function;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
};

struct rs_cupti_sync { /* CUpti_ActivitySynchronization and 2 */
    uint32_t kind, type;
    uint64_t start, end;
    uint32_t correlation, context, stream, event;
};

struct rs_cupti_graph { /* CUpti_ActivityGraphTrace and 2 */
    uint32_t kind, correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
};

static_assert(offsetof(struct rs_cupti_kernel, correlation) == 92, "kernel");
static_assert(offsetof(struct rs_cupti_kernel, graph) == 156, "kernel");
static_assert(offsetof(struct rs_cupti_memcpy, graph) == 72, "memcpy");
static_assert(offsetof(struct rs_cupti_memcpy2, graph) == 80, "memcpy2");
static_assert(offsetof(struct rs_cupti_memset, graph) == 72, "memset");

typedef int rs_cupti_next(uint8_t *buffer, size_t valid_bytes, void **record);

#endif
