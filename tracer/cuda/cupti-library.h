/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cupti-library.h - the CUPTI that belongs to the program's CUDA, found and opened.
 *
 * In this order: one that is loaded; beside the CUDA runtime that is loaded, where toolkits and
 * Python packages have it; by name, as the program itself would find it; in /usr/local/cuda. Never
 * linked to. Nothing is looked for in a process without CUDA's runtime or driver.
 */
#ifndef RS_TRACER_CUPTI_LIBRARY_H
#define RS_TRACER_CUPTI_LIBRARY_H

#include "core.h"
#include "cupti-abi.h"

typedef void rs_cupti_request(uint8_t **buffer, size_t *bytes, size_t *max_records);
typedef void rs_cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                               size_t valid_bytes);
typedef void rs_cupti_callback(void *data, int domain, uint32_t function, const void *more);

/* X(name without "cupti", parameters, needed) */
#define RS_CUPTI_FUNCTIONS(X)                                                                      \
    X(GetVersion, (uint32_t *), 1)                                                                 \
    X(Subscribe, (void **, rs_cupti_callback *, void *), 1)                                        \
    X(Unsubscribe, (void *), 1)                                                                    \
    X(ActivityRegisterCallbacks, (rs_cupti_request *, rs_cupti_complete *), 1)                     \
    X(ActivityEnable, (uint32_t), 1)                                                               \
    X(ActivityFlushAll, (uint32_t), 1)                                                             \
    X(ActivityGetNextRecord, (uint8_t *, size_t, void **), 1)                                      \
    X(ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), 1)                               \
    X(GetCallbackName, (uint32_t, uint32_t, const char **), 1)                                     \
    X(GetTimestamp, (uint64_t *), 1)                                                               \
    X(GetResultString, (int, const char **), 0)                                                    \
    X(SetThreadIdType, (uint32_t), 0)                                                              \
    X(ActivityRegisterTimestampCallback, (uint64_t(*)(void)), 0)

struct rs_cupti {
    char path[256];
    uint32_t version;
#define RS_CUPTI_POINTER(name, parameters, needed) int(*name) parameters;
    RS_CUPTI_FUNCTIONS(RS_CUPTI_POINTER)
#undef RS_CUPTI_POINTER
};

/* Whether this process has CUDA's runtime or driver loaded. */
bool rs_cupti_is_cuda_here(void) RS_HIDDEN;
/* Fills *ret; NULL, or why there is none that can be used (a text of ours, or in `why`). */
const char *rs_cupti_open(struct rs_cupti *ret, char *why, size_t why_size) RS_HIDDEN;

#endif
