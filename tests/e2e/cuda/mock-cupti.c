/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock-cupti.c - a libcupti.so.13 for the stand-in CUDA runtime, after the vendor's header alone.
 *
 * Preloaded before the tracer, it stands before the stand-in's calls that put work on a stream; it
 * numbers them, times the work where it runs, and hands records to whoever has subscribed, in
 * buffers that it asks for: a host function of libnccl is an NCCL kernel, another one a kernel of
 * the program's. Streams get small numbers as they are seen. The environment makes it fail:
 * MOCK_CUPTI_VERSION=N what it says it is MOCK_CUPTI_SUBSCRIBE=N       result of cuptiSubscribe
 * MOCK_CUPTI_NO_KIND=N a kind that can't be enabled MOCK_CUPTI_NO_CLOCK=1        it takes no clock
 * of others MOCK_CUPTI_SHORT=1           kernels' records are as short as those of an unknown
 * version MOCK_CUPTI_REPEAT=N          each kernel's record N times
 */
#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hostcuda.h"

#define EXPORT    __attribute__((visibility("default")))
#define SHORT     144
#define STREAMS   256
#define KINDS_MAX 64

enum { NONE, KERNEL, COPY, SET };

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc clock_of_tool;
static bool enabled[KINDS_MAX], by_gettid;
static size_t lost;               /* atomic */
static uint32_t last_correlation; /* atomic */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static uint8_t *buffer;
static size_t size, used;
static struct {
    void *stream;
    int device;
} streams[STREAMS];
static uint32_t stream_count;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static uint64_t now(void)
{
    struct timespec t;
    if (clock_of_tool)
        return clock_of_tool();
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- buffers ---- */

static size_t size_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return setting("MOCK_CUPTI_SHORT", 0) ? SHORT : sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        return sizeof(CUpti_ActivityAPI);
    default:
        return sizeof(CUpti_ActivitySynchronization2);
    }
}

static void hand_over(void)
{
    if (buffer)
        complete(NULL, 0, buffer, size, used);
    buffer = NULL;
}

static void put(const void *record)
{
    CUpti_ActivityKind kind;
    size_t records = 0;
    memcpy(&kind, record, sizeof kind);
    if (!enabled[kind] || !request)
        return;
    pthread_mutex_lock(&lock);
    if (buffer && used + size_of(kind) > size)
        hand_over();
    if (!buffer) {
        used = 0;
        request(&buffer, &size, &records);
    }
    if (buffer && ((uintptr_t)buffer % 8 || size < size_of(kind)))
        abort();
    if (buffer) {
        memcpy(buffer + used, record, size_of(kind));
        used += size_of(kind);
    } else {
        __atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- what the tool calls ---- */

EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = (uint32_t)setting("MOCK_CUPTI_VERSION", CUPTI_API_VERSION);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                  void *data)
{
    return (CUptiResult)setting("MOCK_CUPTI_SUBSCRIBE", 0);
}

EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    request = NULL;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc asks,
                                                  CUpti_BuffersCallbackCompleteFunc completes)
{
    complete = completes;
    request = asks;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc tells)
{
    if (setting("MOCK_CUPTI_NO_CLOCK", 0))
        return CUPTI_ERROR_NOT_SUPPORTED;
    clock_of_tool = tells;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    by_gettid = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if ((long)kind == setting("MOCK_CUPTI_NO_KIND", 0))
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    enabled[kind] = true;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    pthread_mutex_lock(&lock);
    hand_over();
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *from, size_t valid, CUpti_Activity **record)
{
    uint8_t *at = *record ? (uint8_t *)*record + size_of((*record)->kind) : from;
    if (at >= from + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)at;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                     size_t *dropped)
{
    *dropped = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = now();
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    static const char *const names[] = {"cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020",
                                        "cudaMemsetAsync_v3020",  "cudaStreamWaitEvent_v3020",
                                        "cudaGetDevice_v3020",    "cudaGraphLaunch_v10000"};
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
        *name = "cuLaunchKernelEx";
    else
        *name = names[id % 6];
    return CUPTI_SUCCESS;
}

/* ---- the work ---- */

static void *real(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    if (!f)
        abort();
    return f;
}

/* Numbers from 7 on, as CUDA's own; the default stream's is 7 too. */
static uint32_t number_of(void *stream, int device)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < stream_count && (streams[i].stream != stream || streams[i].device != device))
        i++;
    if (i == stream_count && stream_count < STREAMS) {
        streams[i].stream = stream;
        streams[i].device = device;
        stream_count++;
    }
    pthread_mutex_unlock(&lock);
    return 7 + i;
}

static int current_device(void)
{
    cudaError_t (*get)(int *) = (cudaError_t(*)(int *))real("cudaGetDevice");
    int device;
    if (get(&device) != cudaSuccess)
        abort();
    return device;
}

/* What the runtime's call that this thread is in puts on a stream. */
static __thread struct {
    int what;
    uint32_t correlation;
    uint64_t bytes;
} caller;

struct work {
    struct hostcuda_work own; /* the runtime's, or NCCL's */
    void *argument;
    int what;
    uint32_t correlation, stream, graph;
    int device;
    uint64_t start, bytes;
    const char *name;
};

static uint32_t next_correlation(void)
{
    return __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
}

static void put_work(const struct work *w)
{
    uint64_t end = now(), node = w->graph ? (uint64_t)w->graph << 32 | 12 : 0;
    uint32_t device = (uint32_t)w->device;
#define PLACE                                                                                      \
    .start = w->start, .end = end, .deviceId = device, .contextId = device + 1,                    \
    .streamId = w->stream, .correlationId = w->correlation, .graphId = w->graph,                   \
    .graphNodeId = node
    CUpti_ActivityKernel10 k = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .name = w->name, PLACE};
    CUpti_ActivityMemcpy6 c = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                               .bytes = w->bytes,
                               .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                               PLACE};
    CUpti_ActivityMemset4 s = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .bytes = w->bytes, PLACE};
#undef PLACE
    for (long i = setting("MOCK_CUPTI_REPEAT", 1); w->what == KERNEL && i > 0; i--)
        put(&k);
    if (w->what == COPY)
        put(&c);
    if (w->what == SET)
        put(&s);
}

static void work_run(void *data)
{
    struct work *w = data;
    w->start = now();
    w->own.run(w->argument);
    put_work(w);
}

static void work_release(void *data)
{
    struct work *w = data;
    if (w->own.release)
        w->own.release(w->argument);
    free(w);
}

static void work_queued(void *data)
{
    struct work *w = data;
    if (w->own.queued)
        w->own.queued(w->argument);
}

/* A node of a graph that is launched. */
static void *work_copy(const void *template)
{
    const struct work *t = template;
    struct work *w = malloc(sizeof *w);
    if (!w)
        return NULL;
    *w = *t;
    w->argument = t->own.copy ? t->own.copy(t->argument) : t->argument;
    if (!t->own.copy)
        w->own.release = NULL;
    w->correlation = caller.correlation;
    w->graph = 3;
    return w;
}

static void put_call(uint32_t function, uint32_t correlation, uint64_t start)
{
    CUpti_ActivityAPI a = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
                           .cbid = function,
                           .start = start,
                           .end = now(),
                           .processId = (uint32_t)getpid(),
                           .threadId = by_gettid ? (uint32_t)gettid() : 1,
                           .correlationId = correlation};
    CUpti_ActivityAPI inner = a;
    inner.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    inner.start = inner.end = start + (a.end - start) / 2;
    put(&inner); /* what the runtime calls */
    put(&a);
    a.cbid = 4;
    a.correlationId = next_correlation();
    put(&a); /* one that only asks */
}

static bool is_nccls(const struct hostcuda_work *work)
{
    Dl_info info;
    return dladdr((const void *)work->run, &info) && strstr(info.dli_fname, "libnccl");
}

EXPORT cudaError_t hostcuda_launch(cudaStream_t stream, const struct hostcuda_work *work,
                                   void *argument)
{
    static const struct hostcuda_work around = {work_run, work_release, work_queued, work_copy, 0};
    cudaError_t (*next)(cudaStream_t, const struct hostcuda_work *, void *) =
        (cudaError_t(*)(cudaStream_t, const struct hostcuda_work *, void *))real("hostcuda_launch");
    uint64_t start = now();
    bool nccl = caller.what == NONE && is_nccls(work);
    struct work *w = caller.what || nccl ? calloc(1, sizeof *w) : NULL;
    if (!w)
        return next(stream, work, argument);
    w->own = *work;
    w->argument = argument;
    w->what = nccl ? KERNEL : caller.what;
    w->name = nccl ? "_Z20ncclDevKernel_Mockedv" : "_Z4gemmv";
    w->bytes = caller.bytes;
    w->device = current_device();
    w->stream = number_of(stream, w->device);
    uint32_t correlation = w->correlation = nccl ? next_correlation() : caller.correlation;
    struct hostcuda_work mine = around;
    mine.type = work->type;
    cudaError_t result = next(stream, &mine, w);
    if (result != cudaSuccess)
        free(w);
    if (nccl)
        put_call(0, correlation, start);
    return result;
}

/* Around a call of the runtime's that launches `what`. */
#define CALL(number, puts, size, name, type, ...)                                                  \
    type *next = (type *)real(name);                                                               \
    uint64_t start = now();                                                                        \
    uint32_t correlation = caller.correlation = next_correlation();                                \
    caller.what = puts;                                                                            \
    caller.bytes = size;                                                                           \
    cudaError_t result = next(__VA_ARGS__);                                                        \
    caller.what = NONE;                                                                            \
    put_call(number, correlation, start);                                                          \
    return result

typedef cudaError_t launch_function(cudaStream_t, cudaHostFn_t, void *);
typedef cudaError_t copy_function(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
typedef cudaError_t set_function(void *, int, size_t, cudaStream_t);
typedef cudaError_t wait_function(cudaStream_t, cudaEvent_t, unsigned);
typedef cudaError_t graph_function(cudaGraphExec_t, cudaStream_t);

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    CALL(0, KERNEL, 0, "cudaLaunchHostFunc", launch_function, stream, function, data);
}

EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CALL(1, COPY, bytes, "cudaMemcpyAsync", copy_function, to, from, bytes, kind, stream);
}

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    CALL(2, SET, bytes, "cudaMemsetAsync", set_function, to, value, bytes, stream);
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    CALL(5, NONE, 0, "cudaGraphLaunch", graph_function, graph, stream);
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    wait_function *next = (wait_function *)real("cudaStreamWaitEvent");
    int device = current_device();
    uint64_t start = now();
    uint32_t correlation = next_correlation();
    cudaError_t result = next(stream, event, flags);
    CUpti_ActivitySynchronization2 s = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                        .start = start,
                                        .end = now(),
                                        .type =
                                            CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
                                        .correlationId = correlation,
                                        .contextId = (uint32_t)device + 1,
                                        .streamId = number_of(stream, device)};
    put(&s);
    put_call(3, correlation, start);
    return result;
}
