/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudart.h - the inside of the stand-in CUDA runtime.
 *
 * Model: a stream has a queue of tasks and a thread, started with the first task, which runs them
 * in order. Tasks are numbered from 1; "ticket n" is done once `completed` has reached n. A task
 * waits only for tasks put on a queue before it, so waiting can't go in a circle. What is put on a
 * stream that is captured goes into a graph (graph.h) and not on its queue. Memory: streams
 * and events are counted: whoever waits for one, or has it queued, holds it. Threads: a stream's
 * fields are under its lock; the list of streams under a lock of its own, which is taken first.
 */
#ifndef HOSTNCCL_CUDART_H
#define HOSTNCCL_CUDART_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "hostcuda.h"

#define CUDART_EXPORT __attribute__((visibility("default")))

#define CUDART_DEVICES_MAX 64

struct task {
    struct task *next;
    struct hostcuda_work work;
    void *argument;
};

struct capture;

struct CUstream_st {
    struct CUstream_st *next; /* in the list of streams */
    uint32_t magic;
    unsigned generation;
    int device;
    unsigned flags;
    int priority;
    uint32_t references; /* atomic */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a task was put, or completed, or the stream is to end */
    struct task *first, *last;
    uint64_t queued, completed;
    cudaError_t error; /* of a task, until somebody asks */
    bool started, ending;
    bool is_lane;            /* of a graph: whoever waits for it takes its error over */
    struct capture *capture; /* capture.c's, as the next */
    unsigned lane;
};

/* Where an event was recorded, if that was in a capture; zeroed at first. */
struct cudart_place {
    struct capture *capture; /* atomic */
    unsigned mark;
};

/* fork.c: a child has no threads, so what its parent made is of no use to it */
/* How many forks there are between the first process and this one. */
unsigned cudart_generation(void);
/* In a child, at its begin. */
void cudart_streams_after_fork(void);
void cudart_default_after_fork(void);
void cudart_captures_after_fork(void);
void cudart_registry_after_fork(void);

/* device.c */
int cudart_device(void);
bool cudart_device_exists(int device);
/* Notes `error` as the thread's last, unless success; returns it. */
cudaError_t cudart_result(cudaError_t error);

/* default.c */
/* 0, 1 and 2 stand for a default stream. */
bool cudart_stream_is_default(cudaStream_t handle);
/* Of this thread's device, made at need; NULL: no memory. */
cudaStream_t cudart_default_stream(cudaStream_t handle);
/* NULL: nobody has asked for it yet. */
cudaStream_t cudart_legacy_stream(int device);
bool cudart_stream_is_legacy(cudaStream_t stream);

/* stream.c */
/* NULL: no memory. */
cudaStream_t cudart_stream_new(int device, unsigned flags, int priority);
/* At once; what is queued still runs. */
void cudart_stream_end(cudaStream_t stream);
/* The stream behind a handle, held; NULL: no such stream. */
cudaStream_t cudart_stream_hold(cudaStream_t handle);
void cudart_stream_drop(cudaStream_t stream);
/* One that runs a graph's branch, not synchronised with stream 0. NULL: no memory. */
cudaStream_t cudart_stream_new_lane(int device);
/* Puts a task behind all that is queued, and behind what the legacy stream's rule asks for; or into
 * the graph that the stream is captured into. On failure the argument stays the caller's. */
cudaError_t cudart_stream_put(cudaStream_t stream, const struct hostcuda_work *work,
                              void *argument);
/* `stream` goes on when what `other` had queued when it gave `ticket` is done. */
uint64_t cudart_stream_ticket(cudaStream_t stream);
cudaError_t cudart_stream_join(cudaStream_t stream, cudaStream_t other, uint64_t ticket);
/* Waits for what is queued now; gives, and forgets, a task's error. */
cudaError_t cudart_stream_finish(cudaStream_t stream);
/* As cudart_stream_finish, for the streams that stream 0 of this thread's device waits for. */
cudaError_t cudart_finish_legacy(void);
cudaError_t cudart_finish_legacy_of(int device);
cudaError_t cudart_finish_device(int device);
/* Waits likewise, but leaves tasks' errors for whoever synchronises. */
cudaError_t cudart_quiesce_device(int device);

/* peer.c */
void cudart_peer_reset(int device);

/* registry.c: memory that the runtime knows of */
enum cudart_kind {
    CUDART_DEVICE,
    CUDART_DEVICE_ELSEWHERE, /* from another allocator: freed by it alone */
    CUDART_MANAGED,
    CUDART_HOST,
    CUDART_REGISTERED, /* the program's own */
};
struct cudart_memory {
    enum cudart_kind kind;
    int device; /* current when it was added */
    unsigned flags;
};
/* cudaErrorHostMemoryAlreadyRegistered: some of it is known. */
cudaError_t cudart_memory_add(const void *p, size_t bytes, enum cudart_kind kind, unsigned flags);
/* `p` may point into it. */
bool cudart_memory_find(const void *p, struct cudart_memory *ret);
/* Where `p` is the begin of memory of one of `kinds` (bits): it is being freed, or not after all.
 * False: it isn't such memory, or is so already. */
bool cudart_memory_retire(const void *p, unsigned kinds, bool retired);
bool cudart_memory_remove(const void *p, unsigned kinds);

/* capture.c: cudaSuccess where no capture says otherwise. What is refused spoils the capture. */
/* For calls whose effect a capture can't see. */
cudaError_t cudart_unsafe(void);
/* For what waits for the streams of stream 0, for all of a device, for one, for an event. */
cudaError_t cudart_capture_forbids_legacy(int device);
cudaError_t cudart_capture_forbids_device(int device);
cudaError_t cudart_capture_forbids_stream(cudaStream_t stream);
cudaError_t cudart_capture_forbids_event(const struct cudart_place *place);
bool cudart_stream_is_capturing(cudaStream_t stream);
/* False: no capture is concerned, and nothing was done. */
bool cudart_capture_put(cudaStream_t stream, const struct hostcuda_work *work, void *argument,
                        cudaError_t *ret);
bool cudart_capture_record(cudaStream_t stream, struct cudart_place *place, cudaError_t *ret);
bool cudart_capture_wait(cudaStream_t stream, struct cudart_place *place, cudaError_t *ret);
void cudart_capture_forget(struct cudart_place *place);

#endif
