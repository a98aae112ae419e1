/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.h - what a device did, from CUPTI's buffers to events of the capture.
 *
 * Model: a buffer is a run of records of many kinds. Those that the capture has a place for become
 * struct rs_activity, with times in CUPTI's nanoseconds; a sink, called for each, makes them ticks
 * and writes two slots: struct rs_range_event and struct rs_ext_device.
 * Threads: a buffer has one reader. Memory: none; names are CUPTI's and hold for the sink's call.
 */
#ifndef RS_TRACER_CUDA_ACTIVITY_H
#define RS_TRACER_CUDA_ACTIVITY_H

#include "core.h"
#include "cupti-abi.h"

struct rs_activity {
    uint16_t op;       /* RS_OP_KERNEL, COPY, SET, SYNC, GRAPH or HOST_CALL */
    uint16_t what;     /* as in struct rs_ext_device */
    bool failed;       /* HOST_CALL: it returned an error */
    uint32_t function; /* HOST_CALL: CUPTI's number of it, in the domain `kind` */
    uint32_t kind;     /* enum rs_cupti_kind */
    const char *name;  /* KERNEL: as the compiler made it; may be NULL */
    uint64_t start_ns, end_ns;
    uint64_t bytes;                                /* COPY, SET */
    uint32_t device, context, stream, correlation; /* RS_CUPTI_NO_ID none */
    uint32_t graph, thread;                        /* 0 none */
    uint64_t graph_node;
};

typedef void rs_activity_sink(const struct rs_activity *activity, void *data);

struct rs_activity_counts {
    uint64_t read;    /* records of any kind */
    uint64_t untimed; /* CUPTI had no times for them: not handed on */
};

/* Fills *ret from a record; false: of a kind that the capture has no place for. */
bool rs_activity_parse(const void *record, struct rs_activity *ret) RS_HIDDEN;
/* How long the beginning is that is read of records of this kind; 0: none of it. */
size_t rs_activity_least_bytes(uint32_t kind) RS_HIDDEN;

/* Hands all records of a buffer to `sink`. 0; -EPROTO where a record is shorter than it must be,
 * so that this CUPTI isn't one that we know: nothing after it is read. */
int rs_activities_read(uint8_t *buffer, size_t valid_bytes, rs_cupti_next *next,
                       rs_activity_sink *sink, void *data,
                       struct rs_activity_counts *counts) RS_HIDDEN;

/* Writes one into the ring; the times are ticks, `name` is a RS_DEF_STRING id. */
void rs_activity_write(struct rs_thread *t, const struct rs_activity *a, uint32_t name,
                       uint64_t start, uint64_t end) RS_HIDDEN;

/* A text for what is named by its kind: a copy's direction, a set, a wait, a graph. */
const char *rs_activity_name(const struct rs_activity *a) RS_HIDDEN;
/* CUPTI's name of a function without what it adds: cudaLaunchKernel for cudaLaunchKernel_v7000.
 * Returns the length of it. */
size_t rs_activity_plain_name(const char *name) RS_HIDDEN;
/* A function that only asks or chooses, is called all the time, and enqueues nothing. */
bool rs_activity_is_idle_talk(const char *name) RS_HIDDEN;

#endif
