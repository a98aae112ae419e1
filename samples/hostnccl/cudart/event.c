/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait is for the record that is the event's last when the wait is put on a stream, whatever
 * records follow it elsewhere; so a record is a thing of its own, which is reached when its task
 * has run.
 */
#include <stdlib.h>
#include <time.h>

#include "cudart.h"

#define EVENT_MAGIC 0x45564e54u

struct record {
    unsigned references; /* of its event, while it is the last; of tasks; of threads that wait */
    bool reached;
    uint64_t reached_ns;
};

struct CUevent_st {
    uint32_t magic;
    unsigned generation, flags;
    uint32_t references;  /* atomic: of the program, and of tasks */
    pthread_mutex_t lock; /* of its records */
    pthread_cond_t reached_more;
    struct record *last; /* NULL: never recorded */
    struct cudart_place place;
};

/* A queued record of, or wait for, an event. */
struct event_task {
    cudaEvent_t event;
    struct record *record; /* NULL: a template, or a wait for what was never recorded */
};

static bool is_event(cudaEvent_t e)
{
    return e && e->magic == EVENT_MAGIC && e->generation == cudart_generation();
}

/* The event is locked, here and in the next; NULL-safe both. */
static struct record *hold_record(struct record *r)
{
    if (r)
        r->references++;
    return r;
}

static void drop_record(struct record *r)
{
    if (r && --r->references == 0)
        free(r);
}

static void drop(cudaEvent_t e)
{
    if (__atomic_sub_fetch(&e->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    drop_record(e->last);
    cudart_capture_forget(&e->place);
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
    t->record->reached = true;
    t->record->reached_ns = now_ns();
    pthread_cond_broadcast(&e->reached_more);
    pthread_mutex_unlock(&e->lock);
}

/* Only what stands on a stream is the event's last record: one that was refused changes nothing. */
static void queued_record(void *argument)
{
    struct event_task *t = argument;
    pthread_mutex_lock(&t->event->lock);
    drop_record(t->event->last);
    t->event->last = hold_record(t->record);
    pthread_mutex_unlock(&t->event->lock);
}

static void release_task(void *argument)
{
    struct event_task *t = argument;
    pthread_mutex_lock(&t->event->lock);
    drop_record(t->record);
    pthread_mutex_unlock(&t->event->lock);
    drop(t->event);
    free(t);
}

/* The event is locked; the record is held. NULL: there is none. */
static void wait_for(cudaEvent_t e, const struct record *r)
{
    while (r && !r->reached)
        pthread_cond_wait(&e->reached_more, &e->lock);
}

static void run_wait(void *argument)
{
    struct event_task *t = argument;
    pthread_mutex_lock(&t->event->lock);
    wait_for(t->event, t->record);
    pthread_mutex_unlock(&t->event->lock);
}

/* Takes the record's reference, also where it fails. */
static struct event_task *task_new(cudaEvent_t e, struct record *record)
{
    struct event_task *t = malloc(sizeof *t);
    if (!t) {
        pthread_mutex_lock(&e->lock);
        drop_record(record);
        pthread_mutex_unlock(&e->lock);
        return NULL;
    }
    *t = (struct event_task){e, record};
    __atomic_fetch_add(&e->references, 1, __ATOMIC_RELAXED);
    return t;
}

static struct event_task *record_new(cudaEvent_t e)
{
    struct record *r = calloc(1, sizeof *r);
    return r ? task_new(e, hold_record(r)) : NULL;
}

static struct event_task *wait_new(cudaEvent_t e)
{
    pthread_mutex_lock(&e->lock);
    struct record *r = hold_record(e->last);
    pthread_mutex_unlock(&e->lock);
    return task_new(e, r);
}

/* As a graph's nodes they are new ones in each launch. */
static void *copy_record(const void *template)
{
    return record_new(((const struct event_task *)template)->event);
}

static void *copy_wait(const void *template)
{
    return wait_new(((const struct event_task *)template)->event);
}

static const struct hostcuda_work record_work = {
    .run = run_record,
    .release = release_task,
    .queued = queued_record,
    .copy = copy_record,
    .type = cudaGraphNodeTypeEventRecord,
};
static const struct hostcuda_work wait_work = {
    .run = run_wait,
    .release = release_task,
    .copy = copy_wait,
    .type = cudaGraphNodeTypeWaitEvent,
};

/* Takes the task; NULL: there was no memory for it. */
static cudaError_t put_task(cudaStream_t s, const struct hostcuda_work *work, struct event_task *t)
{
    if (!t)
        return cudaErrorMemoryAllocation;
    cudaError_t error = cudart_stream_put(s, work, t);
    if (error != cudaSuccess)
        release_task(t);
    return error;
}

CUDART_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    if (!event)
        return cudart_result(cudaErrorInvalidValue);
    cudaEvent_t e = calloc(1, sizeof *e);
    if (!e)
        return cudart_result(cudaErrorMemoryAllocation);
    e->magic = EVENT_MAGIC;
    e->generation = cudart_generation();
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

static cudaError_t record(cudaEvent_t event, cudaStream_t s, bool external)
{
    cudaError_t error;
    if (external) /* of each launch of the graph */
        return cudart_stream_is_capturing(s) ? put_task(s, &record_work, task_new(event, NULL))
                                             : cudaErrorInvalidValue;
    if (cudart_capture_record(s, &event->place, &error))
        return error;
    error = put_task(s, &record_work, record_new(event));
    if (error == cudaSuccess)
        cudart_capture_forget(&event->place);
    return error;
}

CUDART_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                                   unsigned int flags)
{
    cudaStream_t s = is_event(event) ? cudart_stream_hold(stream) : NULL;
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = flags & ~(unsigned)cudaEventRecordExternal
                            ? cudaErrorInvalidValue
                            : record(event, s, flags == cudaEventRecordExternal);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

static cudaError_t wait(cudaStream_t s, cudaEvent_t event, bool external)
{
    cudaError_t error;
    if (external)
        return cudart_stream_is_capturing(s) ? put_task(s, &wait_work, task_new(event, NULL))
                                             : cudaErrorInvalidValue;
    if (cudart_capture_wait(s, &event->place, &error))
        return error;
    return put_task(s, &wait_work, wait_new(event));
}

CUDART_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                              unsigned int flags)
{
    cudaStream_t s = is_event(event) ? cudart_stream_hold(stream) : NULL;
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = flags & ~(unsigned)cudaEventWaitExternal
                            ? cudaErrorInvalidValue
                            : wait(s, event, flags == cudaEventWaitExternal);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_capture_forbids_event(&event->place);
    if (error != cudaSuccess)
        return cudart_result(error);
    pthread_mutex_lock(&event->lock);
    bool reached = !event->last || event->last->reached;
    pthread_mutex_unlock(&event->lock);
    return reached ? cudaSuccess : cudaErrorNotReady;
}

static void wait_for_last(cudaEvent_t e)
{
    pthread_mutex_lock(&e->lock);
    struct record *r = hold_record(e->last);
    wait_for(e, r);
    drop_record(r);
    pthread_mutex_unlock(&e->lock);
}

CUDART_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (!is_event(event))
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_capture_forbids_event(&event->place);
    if (error == cudaSuccess)
        wait_for_last(event);
    return cudart_result(error);
}

/* When an event was reached: an error where it wasn't recorded, isn't reached yet, or takes no
 * time. */
static cudaError_t reached_at(cudaEvent_t e, uint64_t *ret_ns)
{
    if (!is_event(e) || (e->flags & cudaEventDisableTiming))
        return cudaErrorInvalidResourceHandle;
    pthread_mutex_lock(&e->lock);
    cudaError_t error = !e->last            ? cudaErrorInvalidResourceHandle
                        : !e->last->reached ? cudaErrorNotReady
                                            : cudaSuccess;
    *ret_ns = error == cudaSuccess ? e->last->reached_ns : 0;
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
