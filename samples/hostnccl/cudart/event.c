/* SPDX-License-Identifier: Apache-2.0 */
/* An event counts its records; record n is reached when its task has run. */
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

#define EVENT_MAGIC 0x45564e54u

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    uint32_t references; /* atomic */
    pthread_mutex_t lock;
    pthread_cond_t reached_more;
    uint64_t recorded, reached;
    uint64_t reached_ns; /* of the last record that was reached */
};

/* A queued record of, or wait for, an event. */
struct event_task {
    cudaEvent_t event;
    uint64_t record;
};

static bool is_event(cudaEvent_t e)
{
    return e && e->magic == EVENT_MAGIC;
}

static void drop(cudaEvent_t e)
{
    if (__atomic_sub_fetch(&e->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_cond_destroy(&e->reached_more);
    pthread_mutex_destroy(&e->lock);
    e->magic = 0;
    free(e);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void run_record(void *argument)
{
    struct event_task *t = argument;
    cudaEvent_t e = t->event;
    pthread_mutex_lock(&e->lock);
    if (t->record > e->reached) {
        e->reached = t->record;
        e->reached_ns = now_ns();
    }
    pthread_cond_broadcast(&e->reached_more);
    pthread_mutex_unlock(&e->lock);
    drop(e);
    free(t);
}

static void wait_for_record(cudaEvent_t e, uint64_t record)
{
    pthread_mutex_lock(&e->lock);
    while (e->reached < record)
        pthread_cond_wait(&e->reached_more, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void run_wait(void *argument)
{
    struct event_task *t = argument;
    wait_for_record(t->event, t->record);
    drop(t->event);
    free(t);
}

static cudaError_t put_event_task(cudaStream_t stream, task_fn *fn, cudaEvent_t e, uint64_t record)
{
    struct event_task *t = malloc(sizeof *t);
    cudaStream_t s = cudart_stream_hold(stream);
    cudaError_t error = !s  ? cudaErrorInvalidResourceHandle
                        : t ? cudaSuccess
                            : cudaErrorMemoryAllocation;
    if (error == cudaSuccess) {
        *t = (struct event_task){e, record};
        __atomic_fetch_add(&e->references, 1, __ATOMIC_RELAXED);
        error = cudart_stream_put(s, fn, t);
        if (error == cudaSuccess)
            t = NULL;
        else
            drop(e);
    }
    if (s)
        cudart_stream_drop(s);
    free(t);
    return error;
}

static uint64_t last_record(cudaEvent_t e)
{
    pthread_mutex_lock(&e->lock);
    uint64_t record = e->recorded;
    pthread_mutex_unlock(&e->lock);
    return record;
}

CUDART_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    if (!event)
        return cudart_result(cudaErrorInvalidValue);
    cudaEvent_t e = calloc(1, sizeof *e);
    if (!e)
        return cudart_result(cudaErrorMemoryAllocation);
    e->magic = EVENT_MAGIC;
    e->flags = flags;
    e->references = 1;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->reached_more, NULL);
    *event = e;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

CUDART_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    drop(event);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    pthread_mutex_lock(&event->lock);
    uint64_t record = ++event->recorded;
    pthread_mutex_unlock(&event->lock);
    return cudart_result(put_event_task(stream, run_record, event, record));
}

CUDART_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                                   unsigned int flags)
{
    return flags == cudaEventRecordDefault ? cudaEventRecord(event, stream)
                                           : cudart_result(cudaErrorNotSupported);
}

CUDART_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned int flags)
{
    if (!is_event(event) || flags != cudaEventWaitDefault)
        return cudart_result(is_event(event) ? cudaErrorNotSupported
                                             : cudaErrorInvalidResourceHandle);
    return cudart_result(put_event_task(stream, run_wait, event, last_record(event)));
}

CUDART_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    pthread_mutex_lock(&event->lock);
    bool reached = event->reached >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return reached ? cudaSuccess : cudaErrorNotReady;
}

CUDART_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    wait_for_record(event, last_record(event));
    return cudaSuccess;
}

/* When an event was reached: an error where it wasn't recorded, isn't reached yet, or takes no
 * time. */
static cudaError_t reached_at(cudaEvent_t e, uint64_t *ret_ns)
{
    if (!is_event(e) || (e->flags & cudaEventDisableTiming))
        return cudaErrorInvalidResourceHandle;
    pthread_mutex_lock(&e->lock);
    cudaError_t error = e->recorded == 0           ? cudaErrorInvalidResourceHandle
                        : e->reached < e->recorded ? cudaErrorNotReady
                                                   : cudaSuccess;
    *ret_ns = e->reached_ns;
    pthread_mutex_unlock(&e->lock);
    return error;
}

CUDART_EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    uint64_t start_ns = 0, end_ns = 0;
    cudaError_t error = ms ? reached_at(start, &start_ns) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = reached_at(end, &end_ns);
    if (error == cudaSuccess)
        *ms = (float)((double)(int64_t)(end_ns - start_ns) / 1e6);
    return error == cudaErrorNotReady ? error : cudart_result(error);
}
