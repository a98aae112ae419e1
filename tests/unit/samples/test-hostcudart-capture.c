/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in CUDA runtime doesn't allow while streams are captured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>

#include "cudart-check.h"

static void assert_spoilt(cudaStream_t s)
{
    cudaGraph_t graph = (cudaGraph_t)1;
    assert_int_equal(status_of(s), cudaStreamCaptureStatusInvalidated);
    assert_int_equal(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
    assert_null(graph);
    assert_int_equal(status_of(s), cudaStreamCaptureStatusNone);
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static char block[256];

/* What is tried in a capture on `s`; `other` is a stream outside it, `event` recorded inside. */
typedef cudaError_t try_fn(cudaStream_t s, cudaStream_t other, cudaEvent_t event);

static cudaError_t try_malloc(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    void *p;
    cudaError_t error = cudaMalloc(&p, 100);
    if (error == cudaSuccess)
        cudaFree(p);
    return error;
}
static cudaError_t try_malloc_host(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    void *p;
    cudaError_t error = cudaMallocHost(&p, 100);
    if (error == cudaSuccess)
        cudaFreeHost(p);
    return error;
}
static cudaError_t try_memcpy(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaMemcpy(block, block + 128, 8, cudaMemcpyDefault);
}
static cudaError_t try_memset(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaMemset(block, 0, 8);
}
static cudaError_t try_stream_synchronize(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaStreamSynchronize(s);
}
static cudaError_t try_stream_query(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaStreamQuery(s);
}
static cudaError_t try_device_synchronize(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaDeviceSynchronize();
}
static cudaError_t try_event_query(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaEventQuery(event);
}
static cudaError_t try_event_synchronize(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaEventSynchronize(event);
}
static cudaError_t try_foreign_event_query(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    cudaEvent_t foreign;
    OK(cudaEventCreate(&foreign));
    cudaError_t error = cudaEventQuery(foreign);
    OK(cudaEventDestroy(foreign));
    return error;
}
static cudaError_t try_wait_from_outside(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    cudaEvent_t foreign;
    OK(cudaEventCreate(&foreign));
    OK(cudaEventRecord(foreign, other));
    cudaError_t error = cudaStreamWaitEvent(s, foreign, 0);
    OK(cudaEventDestroy(foreign));
    return error;
}
static void ignore_callback(cudaStream_t stream, cudaError_t status, void *argument)
{
}
static cudaError_t try_callback(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaStreamAddCallback(s, ignore_callback, NULL, 0);
}
static cudaError_t try_launch(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    cudaError_t error = cudaGraphLaunch(exec, s);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    return error;
}
static cudaError_t try_legacy_wait(cudaStream_t s, cudaStream_t other, cudaEvent_t event)
{
    return cudaStreamWaitEvent(NULL, event, 0);
}

enum { NEVER, UNLESS_RELAXED };
static const struct {
    const char *name;
    try_fn *try;
    cudaError_t error;
    int forbidden;
} tries[] = {
    {"cudaMalloc", try_malloc, cudaErrorStreamCaptureUnsupported, UNLESS_RELAXED},
    {"cudaMallocHost", try_malloc_host, cudaErrorStreamCaptureUnsupported, UNLESS_RELAXED},
    {"cudaMemcpy", try_memcpy, cudaErrorStreamCaptureUnsupported, UNLESS_RELAXED},
    {"cudaMemset", try_memset, cudaErrorStreamCaptureUnsupported, UNLESS_RELAXED},
    {"a query of another event", try_foreign_event_query, cudaErrorStreamCaptureUnsupported,
     UNLESS_RELAXED},
    {"cudaStreamSynchronize", try_stream_synchronize, cudaErrorStreamCaptureUnsupported, NEVER},
    {"cudaStreamQuery", try_stream_query, cudaErrorStreamCaptureUnsupported, NEVER},
    {"cudaDeviceSynchronize", try_device_synchronize, cudaErrorStreamCaptureUnsupported, NEVER},
    {"cudaEventQuery", try_event_query, cudaErrorCapturedEvent, NEVER},
    {"cudaEventSynchronize", try_event_synchronize, cudaErrorCapturedEvent, NEVER},
    {"an event from outside", try_wait_from_outside, cudaErrorStreamCaptureIsolation, NEVER},
    {"cudaStreamAddCallback", try_callback, cudaErrorStreamCaptureUnsupported, NEVER},
    {"cudaGraphLaunch", try_launch, cudaErrorStreamCaptureUnsupported, NEVER},
    {"the legacy stream waits", try_legacy_wait, cudaErrorStreamCaptureImplicit, NEVER},
};

static void forbidden_call_fails_and_spoils_the_capture(void **state)
{
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        for (int mode = 0; mode <= cudaStreamCaptureModeRelaxed; mode++) {
            cudaStream_t other = new_stream();
            cudaStream_t s = new_capture((enum cudaStreamCaptureMode)mode);
            cudaEvent_t event;
            OK(cudaEventCreate(&event));
            OK(cudaEventRecord(event, s));
            bool allowed =
                tries[i].forbidden == UNLESS_RELAXED && mode == cudaStreamCaptureModeRelaxed;
            cudaError_t error = tries[i].try(s, other, event);
            if (error != (allowed ? cudaSuccess : tries[i].error))
                fail_msg("%s, mode %d: %s", tries[i].name, mode, cudaGetErrorName(error));
            if (!allowed) {
                assert_int_equal(cudaGetLastError(), error);
                assert_int_equal(cudaMemsetAsync(block, 0, 8, s),
                                 cudaErrorStreamCaptureInvalidated);
                assert_spoilt(s);
            } else {
                assert_int_equal(status_of(s), cudaStreamCaptureStatusActive);
                OK(cudaStreamEndCapture(s, NULL));
                OK(cudaStreamDestroy(s));
            }
            OK(cudaEventDestroy(event));
            OK(cudaStreamDestroy(other));
        }
}

struct elsewhere {
    enum cudaStreamCaptureMode mode;
    cudaError_t error;
    cudaStream_t ends;
};

static void *call_elsewhere(void *argument)
{
    struct elsewhere *e = argument;
    cudaGraph_t graph = NULL;
    void *p = NULL;
    cudaThreadExchangeStreamCaptureMode(&e->mode);
    e->error = e->ends ? cudaStreamEndCapture(e->ends, &graph) : cudaMalloc(&p, 100);
    if (!e->ends && e->error == cudaSuccess)
        cudaFree(p);
    if (graph)
        cudaGraphDestroy(graph);
    return NULL;
}

static cudaError_t elsewhere(enum cudaStreamCaptureMode mode, cudaStream_t ends)
{
    struct elsewhere e = {mode, cudaSuccess, ends};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_elsewhere, &e), 0);
    pthread_join(thread, NULL);
    assert_int_equal(e.mode, cudaStreamCaptureModeGlobal); /* a thread's first */
    return e.error;
}

static void modes_say_which_threads_are_restrained(void **state)
{
    for (int mode = 0; mode <= cudaStreamCaptureModeRelaxed; mode++)
        for (int thread = 0; thread <= cudaStreamCaptureModeRelaxed; thread++) {
            bool forbidden =
                mode == cudaStreamCaptureModeGlobal && thread == cudaStreamCaptureModeGlobal;
            cudaStream_t s = new_capture((enum cudaStreamCaptureMode)mode);
            cudaError_t error = elsewhere((enum cudaStreamCaptureMode)thread, NULL);
            assert_int_equal(error, forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
            if (forbidden) {
                assert_spoilt(s);
                continue;
            }
            error = elsewhere(cudaStreamCaptureModeGlobal, s);
            if (mode == cudaStreamCaptureModeRelaxed) {
                OK(error);
                OK(cudaStreamDestroy(s));
            } else {
                assert_int_equal(error, cudaErrorStreamCaptureWrongThread);
                assert_spoilt(s);
            }
        }
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *p;
    cudaStream_t s = new_capture(cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaMalloc(&p, 100));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, cudaStreamCaptureModeRelaxed);
    OK(cudaStreamEndCapture(s, NULL));
    OK(cudaFree(p));
    OK(cudaStreamDestroy(s));
}

static void increment(void *argument)
{
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_RELAXED);
}

static void capture_ends_well_only_where_it_began_and_is_joined(void **state)
{
    int n = 0;
    cudaGraph_t graph;
    cudaStream_t s = new_stream(), t = new_stream();
    assert_int_equal(cudaStreamEndCapture(s, &graph), cudaErrorIllegalState);
    assert_int_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
                     cudaErrorStreamCaptureUnsupported);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    assert_int_equal(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    lead(s, t);
    assert_int_equal(status_of(t), cudaStreamCaptureStatusActive);
    OK(cudaLaunchHostFunc(t, increment, &n));
    assert_int_equal(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureUnjoined);
    assert_null(graph);
    assert_int_equal(status_of(t), cudaStreamCaptureStatusNone);

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    lead(s, t);
    assert_int_equal(cudaStreamEndCapture(t, &graph), cudaErrorStreamCaptureUnmatched);
    assert_int_equal(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);

    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    OK(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal));
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, s));
    assert_int_equal(cudaStreamWaitEvent(t, event, 0), cudaErrorStreamCaptureMerge);
    assert_spoilt(s);
    assert_spoilt(t);
    assert_int_equal(cudaEventQuery(event), cudaErrorCapturedEvent);
    assert_int_equal(cudaStreamWaitEvent(NULL, event, 0), cudaErrorCapturedEvent);
    OK(cudaEventRecord(event, NULL)); /* is none of a capture any longer */
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
    assert_int_equal(n, 0);
}

static void legacy_stream_is_off_limits_while_a_blocking_stream_is_captured(void **state)
{
    cudaStream_t s;
    enum cudaStreamCaptureStatus status;
    for (int sync = 0; sync < 2; sync++) {
        OK(cudaStreamCreate(&s));
        OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
        assert_int_equal(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
        assert_int_equal(status_of(s), cudaStreamCaptureStatusActive);
        assert_int_equal(sync ? cudaMemset(block, 0, 8) : cudaMemsetAsync(block, 0, 8, NULL),
                         cudaErrorStreamCaptureImplicit);
        assert_spoilt(s);
    }
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaStreamCreate(&s));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    assert_int_equal(cudaEventRecord(event, NULL), cudaErrorStreamCaptureImplicit);
    assert_spoilt(s);
    OK(cudaEventQuery(event)); /* as if it had not been tried */
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
    s = new_capture(cudaStreamCaptureModeRelaxed);
    OK(cudaMemsetAsync(block, 0, 8, NULL));
    OK(cudaStreamIsCapturing(NULL, &status));
    OK(cudaStreamEndCapture(s, NULL));
    OK(cudaStreamDestroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forbidden_call_fails_and_spoils_the_capture),
        cmocka_unit_test(modes_say_which_threads_are_restrained),
        cmocka_unit_test(capture_ends_well_only_where_it_began_and_is_joined),
        cmocka_unit_test(legacy_stream_is_off_limits_while_a_blocking_stream_is_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
