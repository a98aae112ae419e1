/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the stand-in CUDA runtime. Argument: a seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cudart-check.h"
#include "hostcuda.h"

static unsigned seed;

/* ---- what is drawn: streams that compute, each in its own cell, and tell each other by events
 * ---- */

#define STREAMS 4
#define STEPS   40

struct step {
    enum { COMPUTE, TELL, HEAR } kind;
    int stream, event;
    uint64_t factor;
    uint64_t *cell, *message;
};

struct program {
    uint64_t cells[STREAMS], messages[STEPS];
    struct step steps[STEPS];
    int told[STEPS], told_count;
};

static void compute(void *argument)
{
    struct step *step = argument;
    *step->cell = *step->cell * step->factor + step->factor;
}

static void hear(void *argument)
{
    struct step *step = argument;
    *step->cell = *step->cell * step->factor + *step->message;
}

/* Streams but the first do nothing before they have heard of another that is in. */
static void draw(struct program *p)
{
    int in[STREAMS] = {1};
    p->told_count = 0;
    for (int i = 0; i < STREAMS; i++)
        p->cells[i] = (uint64_t)rand_r(&seed);
    for (int i = 0; i < STEPS; i++) {
        struct step *s = &p->steps[i];
        int kind = rand_r(&seed) % 3;
        do
            s->stream = rand_r(&seed) % STREAMS;
        while (!in[s->stream] && (kind != HEAR || p->told_count == 0));
        s->kind = kind == HEAR && p->told_count == 0 ? COMPUTE : (unsigned)kind;
        s->event = s->kind == HEAR ? p->told[rand_r(&seed) % p->told_count] : i;
        s->factor = (uint64_t)rand_r(&seed) | 1;
        s->cell = &p->cells[s->stream];
        s->message = &p->messages[s->event];
        in[s->stream] = 1;
        if (s->kind == TELL)
            p->told[p->told_count++] = i;
    }
}

static void enqueue(struct program *p, cudaStream_t *streams, cudaEvent_t *events)
{
    for (int i = 0; i < STEPS; i++) {
        struct step *s = &p->steps[i];
        cudaStream_t stream = streams[s->stream];
        if (s->kind == HEAR)
            OK(cudaStreamWaitEvent(stream, events[s->event], 0));
        if (s->kind == TELL) {
            OK(cudaMemcpyAsync(s->message, s->cell, sizeof *s->cell, cudaMemcpyDeviceToDevice,
                               stream));
            OK(cudaEventRecord(events[i], stream));
        } else {
            OK(cudaLaunchHostFunc(stream, s->kind == HEAR ? hear : compute, s));
        }
    }
}

static void run_serially(struct program *p)
{
    for (int i = 0; i < STEPS; i++) {
        struct step *s = &p->steps[i];
        if (s->kind == TELL)
            *s->message = *s->cell;
        else if (s->kind == HEAR)
            hear(s);
        else
            compute(s);
    }
}

static void join_all(struct program *p, cudaStream_t *streams)
{
    for (int i = 1; i < STREAMS; i++) {
        enum cudaStreamCaptureStatus status = status_of(streams[i]);
        cudaEvent_t event;
        if (status == cudaStreamCaptureStatusNone)
            continue;
        OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        OK(cudaEventRecord(event, streams[i]));
        OK(cudaStreamWaitEvent(streams[0], event, 0));
        OK(cudaEventDestroy(event));
    }
}

static void graph_of_forked_streams_runs_as_they_would_each_time(void **state)
{
    for (int round = 0; round < 30; round++) {
        struct program p;
        cudaStream_t streams[STREAMS];
        cudaEvent_t events[STEPS];
        uint64_t want[STREAMS], start[STREAMS];
        draw(&p);
        memcpy(start, p.cells, sizeof start);
        for (int i = 0; i < STREAMS; i++)
            streams[i] = new_stream();
        for (int i = 0; i < STEPS; i++)
            OK(cudaEventCreate(&events[i]));
        OK(cudaStreamBeginCapture(streams[0], (enum cudaStreamCaptureMode)(round % 3)));
        enqueue(&p, streams, events);
        join_all(&p, streams);
        cudaGraphExec_t exec = end_and_instantiate(streams[0]);
        assert_memory_equal(p.cells, start, sizeof start); /* nothing has run */
        int launches = rand_r(&seed) % 6;
        for (int i = 0; i < launches; i++)
            OK(cudaGraphLaunch(exec, streams[rand_r(&seed) % STREAMS]));
        OK(cudaDeviceSynchronize());
        memcpy(want, p.cells, sizeof want);
        memcpy(p.cells, start, sizeof start);
        for (int i = 0; i < launches; i++)
            run_serially(&p);
        assert_memory_equal(want, p.cells, sizeof want);
        OK(cudaGraphExecDestroy(exec));
        for (int i = 0; i < STREAMS; i++)
            OK(cudaStreamDestroy(streams[i]));
        for (int i = 0; i < STEPS; i++)
            OK(cudaEventDestroy(events[i]));
    }
}

static void increment(void *argument)
{
    __atomic_fetch_add((int *)argument, 1, __ATOMIC_RELAXED);
}

static void info_and_nodes_tell_of_the_capture(void **state)
{
    int n = 0;
    char from[8] = "1234567", to[8];
    unsigned long long id = 0, other_id = 0;
    cudaGraph_t graph = NULL, ended;
    enum cudaStreamCaptureStatus status;
    cudaStream_t s = new_capture(cudaStreamCaptureModeGlobal), t = new_stream();
    OK(cudaStreamGetCaptureInfo(s, &status, &id, &graph, NULL, NULL, NULL));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    assert_non_null(graph);
    assert_int_equal(cudaGraphDestroy(graph), cudaErrorInvalidValue);
    OK(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal));
    OK(cudaStreamGetCaptureInfo(t, &status, &other_id, NULL, NULL, NULL, NULL));
    assert_true(id != other_id && id != 0);
    OK(cudaStreamEndCapture(t, NULL));
    OK(cudaStreamGetCaptureInfo(t, &status, &other_id, NULL, NULL, NULL, NULL));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    OK(cudaLaunchHostFunc(s, increment, &n));
    OK(cudaMemcpyAsync(to, from, 8, cudaMemcpyDefault, s));
    OK(cudaMemsetAsync(from, 0, 8, s));
    OK(cudaStreamEndCapture(s, &ended));
    assert_ptr_equal(ended, graph);
    size_t count = 0;
    OK(cudaGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 3);
    cudaGraphNode_t nodes[4];
    enum cudaGraphNodeType types[4];
    count = 4;
    OK(cudaGraphGetNodes(graph, nodes, &count));
    for (int i = 0; i < 3; i++)
        OK(cudaGraphNodeGetType(nodes[i], &types[i]));
    assert_int_equal(types[0], cudaGraphNodeTypeHost);
    assert_int_equal(types[1], cudaGraphNodeTypeMemcpy);
    assert_int_equal(types[2], cudaGraphNodeTypeMemset);
    assert_null(nodes[3]);
    assert_int_equal(n, 0);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(t));
}

/* ---- launches ---- */

static void wait_at_gate(void *argument)
{
    sem_wait(argument);
}

static void launches_of_one_graph_follow_each_other_and_outlive_it(void **state)
{
    int n = 0;
    sem_t gate;
    sem_init(&gate, 0, 0);
    cudaStream_t a = new_stream(), b = new_stream();
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    lead(a, b);
    OK(cudaLaunchHostFunc(b, wait_at_gate, &gate));
    lead(b, a);
    OK(cudaLaunchHostFunc(a, increment, &n));
    cudaGraphExec_t exec = end_and_instantiate(a);
    OK(cudaGraphLaunch(exec, a));
    OK(cudaGraphLaunch(exec, b));
    OK(cudaGraphExecDestroy(exec));
    assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
    sem_post(&gate);
    OK(cudaStreamSynchronize(a));
    assert_int_equal(__atomic_load_n(&n, __ATOMIC_RELAXED), 1);
    assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
    sem_post(&gate);
    OK(cudaStreamSynchronize(b));
    assert_int_equal(n, 2);
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    sem_destroy(&gate);
}

static void fail_stream(void *argument)
{
    hostcuda_fail_stream(cudaErrorLaunchFailure);
}

static void error_of_a_branch_is_the_launch_streams(void **state)
{
    cudaStream_t a = new_stream(), b = new_stream();
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    lead(a, b);
    OK(cudaLaunchHostFunc(b, fail_stream, NULL));
    lead(b, a);
    cudaGraphExec_t exec = end_and_instantiate(a);
    for (int i = 0; i < 20; i++) {
        OK(cudaGraphLaunch(exec, a));
        assert_int_equal(cudaStreamSynchronize(a), cudaErrorLaunchFailure);
        OK(cudaStreamSynchronize(a));
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
}

static void do_nothing(void *argument)
{
}

static void release_late(void *argument)
{
    for (int i = 0; i < 2000; i++)
        sched_yield();
    *(int *)argument = 1;
}

static void who_waited_for_work_finds_it_released(void **state)
{
    static const struct hostcuda_work work = {.run = do_nothing, .release = release_late};
    cudaStream_t s = new_stream();
    for (int i = 0; i < 5; i++) {
        int released = 0;
        OK(hostcuda_launch(s, &work, &released));
        OK(cudaStreamSynchronize(s));
        assert_int_equal(released, 1);
    }
    OK(cudaStreamDestroy(s));
}

/* ---- forks ---- */

/* A graph of two branches: with one alone no stream of its own would be needed. */
static cudaGraphExec_t new_branches(cudaStream_t a, cudaStream_t b, int *n)
{
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    lead(a, b);
    OK(cudaLaunchHostFunc(b, increment, n));
    lead(b, a);
    OK(cudaLaunchHostFunc(a, increment, n));
    return end_and_instantiate(a);
}

/* 0, or the line of what was not as it should be. */
static int check_in_child(cudaStream_t captured, cudaGraphExec_t parents)
{
    int n = 0;
    void *p;
    enum cudaStreamCaptureStatus status;
    alarm(20); /* to hang is to fail */
    if (cudaStreamIsCapturing(captured, &status) != cudaErrorInvalidResourceHandle)
        return __LINE__;
    if (cudaMalloc(&p, 100) != cudaSuccess || cudaFree(p) != cudaSuccess)
        return __LINE__; /* the parent's capture forbids nothing here */
    cudaStream_t a = new_stream(), b = new_stream();
    if (cudaGraphLaunch(parents, a) != cudaErrorInvalidValue ||
        cudaGraphExecDestroy(parents) != cudaErrorInvalidValue)
        return __LINE__;
    cudaGraphExec_t own = new_branches(a, b, &n);
    OK(cudaGraphLaunch(own, a));
    OK(cudaStreamSynchronize(a));
    return n == 2 ? 0 : __LINE__;
}

static void child_of_a_fork_has_no_part_in_captures_and_launches(void **state)
{
    int n = 0, status = -1;
    cudaStream_t a = new_stream(), b = new_stream(), other = new_stream();
    cudaGraphExec_t exec = new_branches(a, b, &n);
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    OK(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
    pid_t child = fork();
    if (child == 0)
        _exit(check_in_child(other, exec) ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(status_of(other), cudaStreamCaptureStatusActive);
    OK(cudaStreamEndCapture(other, NULL));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    assert_int_equal(n, 4);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    OK(cudaStreamDestroy(other));
}

static void external_events_are_of_each_launch(void **state)
{
    cudaEvent_t started, done;
    int n = 0;
    cudaStream_t a = new_stream(), b = new_stream();
    sem_t gate;
    sem_init(&gate, 0, 0);
    OK(cudaEventCreate(&started));
    OK(cudaEventCreate(&done));
    assert_int_equal(cudaEventRecordWithFlags(done, a, cudaEventRecordExternal),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaStreamWaitEvent(a, done, cudaEventWaitExternal), cudaErrorInvalidValue);
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    OK(cudaStreamWaitEvent(a, started, cudaEventWaitExternal));
    OK(cudaLaunchHostFunc(a, increment, &n));
    OK(cudaEventRecordWithFlags(done, a, cudaEventRecordExternal));
    cudaGraphExec_t exec = end_and_instantiate(a);
    for (int i = 1; i <= 3; i++) {
        OK(cudaLaunchHostFunc(b, wait_at_gate, &gate));
        OK(cudaEventRecord(started, b));
        OK(cudaGraphLaunch(exec, a));
        assert_int_equal(cudaEventQuery(done), cudaErrorNotReady);
        sem_post(&gate);
        OK(cudaEventSynchronize(done));
        assert_int_equal(n, i);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaEventDestroy(started));
    OK(cudaEventDestroy(done));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    sem_destroy(&gate);
}

static void memory_of_a_graph_is_there_in_each_launch(void **state)
{
    unsigned char *p, out[64];
    cudaStream_t s = new_capture(cudaStreamCaptureModeGlobal);
    OK(cudaMallocAsync((void **)&p, 64, s));
    OK(cudaMemsetAsync(p, 7, 64, s));
    OK(cudaMemcpyAsync(out, p, 64, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p, s));
    cudaGraphExec_t exec = end_and_instantiate(s);
    for (int i = 0; i < 3; i++) {
        memset(out, 0, sizeof out);
        OK(cudaGraphLaunch(exec, s));
        OK(cudaStreamSynchronize(s));
        assert_int_equal(out[63], 7);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaStreamDestroy(s));
}

/* Rows of drawn sizes, at once, on a stream and in a graph; what lies between them stays. */
static void rows_are_copied_and_filled_alone(void **state)
{
    enum { SIDE = 40 };
    unsigned char from[SIDE * SIDE], to[SIDE * SIDE], want[SIDE * SIDE];
    cudaStream_t s = new_stream();
    for (int round = 0; round < 60; round++) {
        size_t width = (size_t)(rand_r(&seed) % SIDE), height = (size_t)(rand_r(&seed) % SIDE);
        size_t spitch = width + (size_t)rand_r(&seed) % (SIDE - width);
        size_t dpitch = width + (size_t)rand_r(&seed) % (SIDE - width);
        bool fills = rand_r(&seed) % 2;
        for (int i = 0; i < SIDE * SIDE; i++) {
            from[i] = (unsigned char)rand_r(&seed);
            want[i] = to[i] = (unsigned char)rand_r(&seed);
        }
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++)
                want[y * dpitch + x] = fills ? 9 : from[y * spitch + x];
        if (round % 3 == 0) {
            OK(fills ? cudaMemset2D(to, dpitch, 9, width, height)
                     : cudaMemcpy2D(to, dpitch, from, spitch, width, height, cudaMemcpyDefault));
        } else {
            bool captured = round % 3 == 1;
            if (captured)
                OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
            OK(fills ? cudaMemset2DAsync(to, dpitch, 9, width, height, s)
                     : cudaMemcpy2DAsync(to, dpitch, from, spitch, width, height, cudaMemcpyDefault,
                                         s));
            cudaGraphExec_t exec = captured ? end_and_instantiate(s) : NULL;
            if (captured)
                OK(cudaGraphLaunch(exec, s));
            OK(cudaStreamSynchronize(s));
            if (captured)
                OK(cudaGraphExecDestroy(exec));
        }
        assert_memory_equal(to, want, sizeof to);
    }
    assert_int_equal(cudaMemcpy2D(to, 4, from, 5, 5, 1, cudaMemcpyDefault),
                     cudaErrorInvalidPitchValue);
    assert_int_equal(cudaMemcpy2D(to, 5, from, 4, 5, 1, cudaMemcpyDefault),
                     cudaErrorInvalidPitchValue);
    assert_int_equal(cudaMemset2D(NULL, 5, 0, 5, 1), cudaErrorInvalidValue);
    OK(cudaStreamDestroy(s));
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : (unsigned)time(NULL);
    printf("seed %u\n", seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graph_of_forked_streams_runs_as_they_would_each_time),
        cmocka_unit_test(info_and_nodes_tell_of_the_capture),
        cmocka_unit_test(launches_of_one_graph_follow_each_other_and_outlive_it),
        cmocka_unit_test(error_of_a_branch_is_the_launch_streams),
        cmocka_unit_test(who_waited_for_work_finds_it_released),
        cmocka_unit_test(child_of_a_fork_has_no_part_in_captures_and_launches),
        cmocka_unit_test(external_events_are_of_each_launch),
        cmocka_unit_test(rows_are_copied_and_filled_alone),
        cmocka_unit_test(memory_of_a_graph_is_there_in_each_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
