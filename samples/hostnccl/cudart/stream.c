/* SPDX-License-Identifier: Apache-2.0 */
#include "cudart.h"

#include <signal.h>
#include <stdlib.h>

#define STREAM_MAGIC 0x5354524du

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaStream_t all_streams;
static __thread cudaStream_t running_on;

/* ---- life ---- */

static bool is_stream(cudaStream_t s)
{
    return s && s->magic == STREAM_MAGIC && s->generation == cudart_generation();
}

void cudart_streams_after_fork(void)
{
    list_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    all_streams = NULL;
    running_on = NULL;
}

static void list_remove(cudaStream_t stream)
{
    pthread_mutex_lock(&list_lock);
    cudaStream_t *at = &all_streams;
    while (*at && *at != stream)
        at = &(*at)->next;
    if (*at)
        *at = stream->next;
    pthread_mutex_unlock(&list_lock);
}

cudaStream_t cudart_stream_new(int device, unsigned flags, int priority)
{
    cudaStream_t s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->magic = STREAM_MAGIC;
    s->generation = cudart_generation();
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->references = 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    pthread_mutex_lock(&list_lock);
    s->next = all_streams;
    all_streams = s;
    pthread_mutex_unlock(&list_lock);
    return s;
}

cudaStream_t cudart_stream_new_lane(int device)
{
    cudaStream_t s = cudart_stream_new(device, cudaStreamNonBlocking, 0);
    if (s)
        s->is_lane = true;
    return s;
}

static cudaStream_t hold(cudaStream_t stream)
{
    __atomic_fetch_add(&stream->references, 1, __ATOMIC_RELAXED);
    return stream;
}

void cudart_stream_drop(cudaStream_t stream)
{
    if (__atomic_sub_fetch(&stream->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    stream->magic = 0;
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

cudaStream_t cudart_stream_hold(cudaStream_t handle)
{
    cudaStream_t stream = cudart_stream_is_default(handle) ? cudart_default_stream(handle) : handle;
    return is_stream(stream) ? hold(stream) : NULL;
}

/* ---- the thread of a stream ---- */

/* NULL: the stream has ended. */
static struct task *next_task(cudaStream_t s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->first && !s->ending)
        pthread_cond_wait(&s->changed, &s->lock);
    struct task *t = s->first;
    if (t) {
        s->first = t->next;
        if (!s->first)
            s->last = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return t;
}

static void complete_task(cudaStream_t s)
{
    pthread_mutex_lock(&s->lock);
    s->completed++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *stream_thread(void *argument)
{
    cudaStream_t s = running_on = argument;
    struct task *t;
    while ((t = next_task(s))) {
        t->work.run(t->argument);
        if (t->work.release)
            t->work.release(t->argument);
        free(t);
        complete_task(s);
    }
    list_remove(s); /* only now: until it is through, a destroyed stream is waited for */
    cudart_stream_drop(s);
    return NULL;
}

/* Signals are the program's: its own threads get them. */
static bool start_thread(cudaStream_t s)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, NULL, stream_thread, hold(s)) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok) {
        pthread_setname_np(thread, "hostcuda-stream");
        pthread_detach(thread);
    } else {
        cudart_stream_drop(s);
    }
    return ok;
}

/* ---- putting tasks ---- */

static cudaError_t put_one(cudaStream_t s, const struct hostcuda_work *work, void *argument)
{
    struct task *t = malloc(sizeof *t);
    if (!t)
        return cudaErrorMemoryAllocation;
    *t = (struct task){NULL, *work, argument};
    pthread_mutex_lock(&s->lock);
    if (!s->started)
        s->started = start_thread(s);
    bool ok = s->started;
    if (ok) {
        if (s->last)
            s->last->next = t;
        else
            s->first = t;
        s->last = t;
        s->queued++;
        if (work->queued)
            work->queued(argument);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (!ok)
        free(t);
    return ok ? cudaSuccess : cudaErrorMemoryAllocation;
}

struct join {
    cudaStream_t stream;
    uint64_t ticket;
};

static void wait_for_ticket(cudaStream_t s, uint64_t ticket)
{
    pthread_mutex_lock(&s->lock);
    while (s->completed < ticket)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static cudaError_t take_error(cudaStream_t s);

static void run_join(void *argument)
{
    struct join *j = argument;
    wait_for_ticket(j->stream, j->ticket);
    if (j->stream->is_lane) {
        pthread_mutex_lock(&j->stream->lock);
        cudaError_t error = take_error(j->stream);
        pthread_mutex_unlock(&j->stream->lock);
        hostcuda_fail_stream(error);
    }
}

static void release_join(void *argument)
{
    struct join *j = argument;
    cudart_stream_drop(j->stream);
    free(j);
}

uint64_t cudart_stream_ticket(cudaStream_t s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t ticket = s->queued;
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

static bool is_done(cudaStream_t s, uint64_t ticket)
{
    pthread_mutex_lock(&s->lock);
    bool done = s->completed >= ticket && !(s->is_lane && s->error != cudaSuccess);
    pthread_mutex_unlock(&s->lock);
    return done;
}

cudaError_t cudart_stream_join(cudaStream_t stream, cudaStream_t other, uint64_t ticket)
{
    static const struct hostcuda_work work = {.run = run_join, .release = release_join};
    if (stream == other || is_done(other, ticket))
        return cudaSuccess;
    struct join *j = malloc(sizeof *j);
    if (!j)
        return cudaErrorMemoryAllocation;
    *j = (struct join){hold(other), ticket};
    cudaError_t error = put_one(stream, &work, j);
    if (error != cudaSuccess)
        release_join(j);
    return error;
}

/* The legacy stream waits for the device's blocking streams, and they for it. */
static cudaError_t put_legacy_joins(cudaStream_t s)
{
    cudaError_t error = cudaSuccess;
    if (s->flags & cudaStreamNonBlocking)
        return cudaSuccess;
    if (!cudart_stream_is_legacy(s)) {
        cudaStream_t legacy = cudart_legacy_stream(s->device);
        return legacy ? cudart_stream_join(s, legacy, cudart_stream_ticket(legacy)) : cudaSuccess;
    }
    pthread_mutex_lock(&list_lock);
    for (cudaStream_t other = all_streams; other && error == cudaSuccess; other = other->next)
        if (other != s && other->device == s->device && !(other->flags & cudaStreamNonBlocking))
            error = cudart_stream_join(s, other, cudart_stream_ticket(other));
    pthread_mutex_unlock(&list_lock);
    return error;
}

cudaError_t cudart_stream_put(cudaStream_t s, const struct hostcuda_work *work, void *argument)
{
    cudaError_t error;
    if (cudart_capture_put(s, work, argument, &error))
        return error;
    error = put_legacy_joins(s);
    return error == cudaSuccess ? put_one(s, work, argument) : error;
}

/* ---- waiting ---- */

CUDART_EXPORT void hostcuda_fail_stream(cudaError_t error)
{
    if (!running_on || error == cudaSuccess)
        return;
    pthread_mutex_lock(&running_on->lock);
    if (running_on->error == cudaSuccess)
        running_on->error = error;
    pthread_mutex_unlock(&running_on->lock);
}

static cudaError_t take_error(cudaStream_t s)
{
    cudaError_t error = s->error;
    s->error = cudaSuccess;
    return error;
}

static void wait_for_all(cudaStream_t s)
{
    uint64_t ticket = s->queued;
    while (s->completed < ticket)
        pthread_cond_wait(&s->changed, &s->lock);
}

cudaError_t cudart_stream_finish(cudaStream_t s)
{
    pthread_mutex_lock(&s->lock);
    wait_for_all(s);
    cudaError_t error = take_error(s);
    pthread_mutex_unlock(&s->lock);
    return error;
}

static cudaError_t finish_keeping_error(cudaStream_t s)
{
    pthread_mutex_lock(&s->lock);
    wait_for_all(s);
    pthread_mutex_unlock(&s->lock);
    return cudaSuccess;
}

typedef bool match_fn(cudaStream_t stream, int device);

static bool is_of_device(cudaStream_t s, int device)
{
    return s->device == device;
}
static bool is_blocking(cudaStream_t s, int device)
{
    return s->device == device && !(s->flags & cudaStreamNonBlocking);
}

/* Streams held in a list of their own: waiting is done without the lock. */
static cudaError_t finish_matching(match_fn *matches, int device,
                                   cudaError_t (*finish)(cudaStream_t stream))
{
    cudaStream_t *held = NULL;
    size_t n = 0, capacity = 0;
    pthread_mutex_lock(&list_lock);
    for (cudaStream_t s = all_streams; s; s = s->next)
        capacity++;
    held = calloc(capacity + 1, sizeof *held);
    for (cudaStream_t s = all_streams; s && held; s = s->next)
        if (matches(s, device))
            held[n++] = hold(s);
    pthread_mutex_unlock(&list_lock);
    if (!held)
        return cudaErrorMemoryAllocation;
    cudaError_t first = cudaSuccess;
    for (size_t i = 0; i < n; i++) {
        cudaError_t error = finish(held[i]);
        first = first == cudaSuccess ? error : first;
        cudart_stream_drop(held[i]);
    }
    free(held);
    return first;
}

cudaError_t cudart_finish_legacy_of(int device)
{
    cudaError_t error = cudart_capture_forbids_legacy(device);
    if (error != cudaSuccess)
        return error;
    return finish_matching(is_blocking, device, cudart_stream_finish);
}

cudaError_t cudart_finish_legacy(void)
{
    return cudart_finish_legacy_of(cudart_device());
}

cudaError_t cudart_finish_device(int device)
{
    cudaError_t error = cudart_capture_forbids_device(device);
    if (error != cudaSuccess)
        return error;
    return finish_matching(is_of_device, device, cudart_stream_finish);
}

cudaError_t cudart_quiesce_device(int device)
{
    return finish_matching(is_of_device, device, finish_keeping_error);
}

/* ---- the interface ---- */

CUDART_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags,
                                                       int priority)
{
    if (!pStream || (flags & ~(unsigned)cudaStreamNonBlocking))
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_new(cudart_device(), flags, priority);
    if (!s)
        return cudart_result(cudaErrorMemoryAllocation);
    *pStream = s;
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    return cudaStreamCreateWithPriority(pStream, flags, 0);
}

CUDART_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return cudaStreamCreateWithPriority(pStream, cudaStreamDefault, 0);
}

void cudart_stream_end(cudaStream_t stream)
{
    cudart_capture_forbids_stream(stream);
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    bool started = stream->started;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    if (!started)
        list_remove(stream);
    cudart_stream_drop(stream);
}

CUDART_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (cudart_stream_is_default(stream) || !is_stream(stream))
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudart_stream_end(stream);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_capture_forbids_stream(s);
    if (error == cudaSuccess)
        error = cudart_stream_is_legacy(s) ? cudart_finish_legacy() : cudart_stream_finish(s);
    cudart_stream_drop(s);
    return cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaStream_t s = cudart_stream_hold(stream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudart_capture_forbids_stream(s);
    if (error == cudaSuccess) {
        pthread_mutex_lock(&s->lock);
        error = s->completed < s->queued ? cudaErrorNotReady : take_error(s);
        pthread_mutex_unlock(&s->lock);
    }
    cudart_stream_drop(s);
    return error == cudaErrorNotReady ? error : cudart_result(error);
}

CUDART_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
    if (!flags)
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_hold(hStream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    *flags = s->flags;
    cudart_stream_drop(s);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    if (!priority)
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_hold(hStream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    *priority = s->priority;
    cudart_stream_drop(s);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
    if (!device)
        return cudart_result(cudaErrorInvalidValue);
    cudaStream_t s = cudart_stream_hold(hStream);
    if (!s)
        return cudart_result(cudaErrorInvalidResourceHandle);
    *device = s->device;
    cudart_stream_drop(s);
    return cudaSuccess;
}

CUDART_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
    return cudart_result(cudart_finish_device(cudart_device()));
}
