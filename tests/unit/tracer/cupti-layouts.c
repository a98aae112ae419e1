/* SPDX-License-Identifier: Apache-2.0 */
/* cupti-abi.h against the vendor's header, in all versions that we read: that this compiles is the
 * test. */
#include <cupti.h>

#include "cuda/cupti-abi.h"

#define SAME(theirs, field, ours, own)                                                             \
    static_assert(offsetof(theirs, field) == offsetof(struct ours, own) &&                         \
                      sizeof(((theirs *)0)->field) == sizeof(((struct ours *)0)->own),             \
                  #theirs "." #field)

#define TIMES(theirs, ours)                                                                        \
    SAME(theirs, kind, ours, kind);                                                                \
    SAME(theirs, start, ours, start);                                                              \
    SAME(theirs, end, ours, end);                                                                  \
    SAME(theirs, correlationId, ours, correlation);                                                \
    static_assert(sizeof(theirs) >= offsetof(struct ours, end) + 8, #theirs)

#define PLACE(theirs, ours)                                                                        \
    TIMES(theirs, ours);                                                                           \
    SAME(theirs, deviceId, ours, device);                                                          \
    SAME(theirs, contextId, ours, context);                                                        \
    SAME(theirs, streamId, ours, stream);                                                          \
    SAME(theirs, graphId, ours, graph)

#define NODE(theirs, ours)                                                                         \
    PLACE(theirs, ours);                                                                           \
    SAME(theirs, graphNodeId, ours, graph_node);                                                   \
    static_assert(sizeof(theirs) >= sizeof(struct ours), #theirs)

#define KERNEL(theirs)                                                                             \
    NODE(theirs, rs_cupti_kernel);                                                                 \
    SAME(theirs, name, rs_cupti_kernel, name)
KERNEL(CUpti_ActivityKernel6);
KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel9);
KERNEL(CUpti_ActivityKernel10);

#define COPY(theirs, ours)                                                                         \
    NODE(theirs, ours);                                                                            \
    SAME(theirs, copyKind, ours, copy);                                                            \
    SAME(theirs, bytes, ours, bytes)
COPY(CUpti_ActivityMemcpy4, rs_cupti_memcpy);
COPY(CUpti_ActivityMemcpy5, rs_cupti_memcpy);
COPY(CUpti_ActivityMemcpy6, rs_cupti_memcpy);
COPY(CUpti_ActivityMemcpyPtoP3, rs_cupti_memcpy2);
COPY(CUpti_ActivityMemcpyPtoP4, rs_cupti_memcpy2);

#define MEMSET(theirs)                                                                             \
    NODE(theirs, rs_cupti_memset);                                                                 \
    SAME(theirs, bytes, rs_cupti_memset, bytes)
MEMSET(CUpti_ActivityMemset3);
MEMSET(CUpti_ActivityMemset4);

TIMES(CUpti_ActivityAPI, rs_cupti_api);
SAME(CUpti_ActivityAPI, cbid, rs_cupti_api, function);
SAME(CUpti_ActivityAPI, processId, rs_cupti_api, process);
SAME(CUpti_ActivityAPI, threadId, rs_cupti_api, thread);
SAME(CUpti_ActivityAPI, returnValue, rs_cupti_api, result);
static_assert(sizeof(CUpti_ActivityAPI) == sizeof(struct rs_cupti_api), "api");

#define SYNC(theirs)                                                                               \
    TIMES(theirs, rs_cupti_sync);                                                                  \
    SAME(theirs, type, rs_cupti_sync, type);                                                       \
    SAME(theirs, contextId, rs_cupti_sync, context);                                               \
    SAME(theirs, streamId, rs_cupti_sync, stream);                                                 \
    static_assert(sizeof(theirs) >= sizeof(struct rs_cupti_sync), #theirs)
SYNC(CUpti_ActivitySynchronization);
SYNC(CUpti_ActivitySynchronization2);

PLACE(CUpti_ActivityGraphTrace, rs_cupti_graph);
PLACE(CUpti_ActivityGraphTrace2, rs_cupti_graph);
static_assert(sizeof(CUpti_ActivityGraphTrace) >= sizeof(struct rs_cupti_graph), "graph");

#define EQUAL(theirs, ours) static_assert((int)theirs == (int)ours, #theirs)
EQUAL(CUPTI_SUCCESS, RS_CUPTI_SUCCESS);
EQUAL(CUPTI_ERROR_MAX_LIMIT_REACHED, RS_CUPTI_MAX_LIMIT_REACHED);
EQUAL(CUPTI_ERROR_NOT_INITIALIZED, RS_CUPTI_NOT_INITIALIZED);
EQUAL(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, RS_CUPTI_INSUFFICIENT_PRIVILEGES);
EQUAL(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, RS_CUPTI_MULTIPLE_SUBSCRIBERS);
EQUAL(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, RS_CUPTI_VIRTUALIZED_PRIVILEGES);
EQUAL(CUPTI_ERROR_UNKNOWN, RS_CUPTI_UNKNOWN);
EQUAL(CUPTI_ACTIVITY_KIND_MEMCPY, RS_CUPTI_MEMCPY);
EQUAL(CUPTI_ACTIVITY_KIND_MEMSET, RS_CUPTI_MEMSET);
EQUAL(CUPTI_ACTIVITY_KIND_KERNEL, RS_CUPTI_KERNEL);
EQUAL(CUPTI_ACTIVITY_KIND_DRIVER, RS_CUPTI_DRIVER);
EQUAL(CUPTI_ACTIVITY_KIND_RUNTIME, RS_CUPTI_RUNTIME);
EQUAL(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, RS_CUPTI_CONCURRENT_KERNEL);
EQUAL(CUPTI_ACTIVITY_KIND_MEMCPY2, RS_CUPTI_MEMCPY2);
EQUAL(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, RS_CUPTI_SYNCHRONIZATION);
EQUAL(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, RS_CUPTI_GRAPH_TRACE);
EQUAL(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, RS_CUPTI_FLUSH_FORCED);
EQUAL(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, RS_CUPTI_THREAD_SYSTEM);
EQUAL(CUPTI_CB_DOMAIN_DRIVER_API, RS_CUPTI_DOMAIN_DRIVER);
EQUAL(CUPTI_CB_DOMAIN_RUNTIME_API, RS_CUPTI_DOMAIN_RUNTIME);
EQUAL(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, 10);
EQUAL(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 4);
static_assert(CUPTI_API_VERSION >= RS_CUPTI_OLDEST && CUPTI_API_VERSION <= RS_CUPTI_NEWEST,
              "this header is of a version that we don't read");
