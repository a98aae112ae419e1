/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudart.h - the inside of the stand-in CUDA runtime.
 *
 * Model: a stream has a queue of tasks and a thread, started with the first task, which runs them
 * in order. Tasks are numbered from 1; "ticket n" is done once `completed` has reached n. A task
 * waits only for tasks put on a queue before it, so waiting can't go in a circle. Memory: streams
 * and events are counted: whoever waits for one, or has it queued, holds it. Threads: a stream's
 * fields are under its lock; the list of streams under a lock of its own, which is taken first.
 */
#ifndef HOSTNCCL_CUDART_H
#define HOSTNCCL_CUDART_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#define CUDART_EXPORT __attribute__((visibility("default")))

typedef void task_fn(void *argument);

struct task {
    struct task *next;
    task_fn *fn;
    void *argument;
};

struct CUstream_st {
    struct CUstream_st *next; /* in the list of streams */
    uint32_t magic;
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
};

/* device.c */
int cudart_device(void);
bool cudart_device_exists(int device);
/* Notes `error` as the thread's last, unless success; returns it. */
cudaError_t cudart_result(cudaError_t error);

/* stream.c */
/* The stream behind a handle, held; NULL: no such stream. 0, 1 and 2 stand for the default ones. */
cudaStream_t cudart_stream_hold(cudaStream_t handle);
void cudart_stream_drop(cudaStream_t stream);
/* Puts a task behind all that is queued, and behind what the legacy stream's rule asks for. */
cudaError_t cudart_stream_put(cudaStream_t stream, task_fn *fn, void *argument);
/* Waits for what is queued now; gives, and forgets, a task's error. */
cudaError_t cudart_stream_finish(cudaStream_t stream);
/* As cudart_stream_finish, for the streams that stream 0 of this thread's device waits for. */
cudaError_t cudart_finish_legacy(void);
cudaError_t cudart_finish_device(int device);
/* Waits likewise, but leaves tasks' errors for whoever synchronises. */
cudaError_t cudart_quiesce_device(int device);

/* For the stand-in NCCL, in a task: the stream it runs on has failed. */
CUDART_EXPORT void hostcuda_fail_stream(cudaError_t error);

#endif
