/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostnccl as a host of NCCL profiler plug-ins: test-hostnccl-profiler VERSION FOLDER
 *
 * FOLDER holds libnccl-profiler-mock<VERSION>.so. hostnccl looks for its plug-in once in a process,
 * so each version is a run of this program. VERSION 0: this program itself is the plug-in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock-profiler.h"
#include "nccl.h"
#include "profiler-abi.h"

#define RANKS 2
#define COUNT 5003

static int version;
static struct mock_profiler *mock;
static ncclComm_t comms[RANKS];
static float *buffers[RANKS];

/* ---- what the plug-in saw ---- */

static struct mock_event *nth_event(uint64_t type, int n)
{
    for (int i = 0; i < mock->event_count; i++)
        if (mock->events[i].type == type && n-- == 0)
            return &mock->events[i];
    return NULL;
}

static int event_count(uint64_t type)
{
    int n = 0;
    while (nth_event(type, n))
        n++;
    return n;
}

static const struct mock_event *child_of(const struct mock_event *parent, uint64_t type)
{
    for (int i = 0; i < mock->event_count; i++)
        if (mock->events[i].type == type && mock->events[i].parent == parent)
            return &mock->events[i];
    return NULL;
}

static void forget_events(void)
{
    memset(mock->events, 0, sizeof mock->events);
    mock->event_count = 0;
}

/* ---- what the program does ---- */

static int make_comms(void **state)
{
    if (ncclCommInitAll(comms, RANKS, NULL) != ncclSuccess)
        return 1;
    for (int i = 0; i < RANKS; i++)
        if (cudaMalloc((void **)&buffers[i], COUNT * sizeof(float)) != cudaSuccess)
            return 1;
    return 0;
}

static int free_comms(void **state)
{
    for (int i = 0; i < RANKS; i++) {
        ncclCommDestroy(comms[i]);
        cudaFree(buffers[i]);
    }
    return 0;
}

static void synchronize(void)
{
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    }
    cudaSetDevice(0);
}

static void allreduce_all(size_t count)
{
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(
            ncclAllReduce(buffers[i], buffers[i], count, ncclFloat32, ncclSum, comms[i], NULL),
            ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    synchronize();
}

/* ---- tests ---- */

static void init_is_told_of_each_rank(void **state)
{
    assert_int_equal(mock->version, version);
    assert_int_equal(mock->init_count, RANKS);
    if (version < 4)
        return;
    int ranks = 0;
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(mock->inits[i].ranks, RANKS);
        assert_true(mock->inits[i].hash != 0 && mock->inits[i].hash == mock->inits[0].hash);
        ranks |= 1 << mock->inits[i].rank;
    }
    assert_int_equal(ranks, 3);
}

static void collective_is_described(void **state)
{
    forget_events();
    allreduce_all(COUNT);
    assert_int_equal(event_count(PROFILE_COLL), RANKS);
    for (int i = 0; i < RANKS; i++) {
        const struct mock_event *e = nth_event(PROFILE_COLL, i);
        assert_int_equal(e->count, COUNT);
        assert_int_equal(e->rank, i);
        assert_ptr_equal(e->in, buffers[i]);
        assert_ptr_equal(e->out, buffers[i]);
        if (version == 1) {
            assert_int_equal(e->func_number, 4);
            assert_int_equal(e->datatype_number, ncclFloat32);
        } else {
            assert_string_equal(e->func, "AllReduce");
            assert_string_equal(e->datatype, "ncclFloat32");
            assert_true(strlen(e->algorithm) > 0);
        }
        if (version < 4)
            assert_true(e->hash != 0);
    }
}

static void numbers_count_by_function_from_zero(void **state)
{
    int32_t *ints[RANKS] = {(int32_t *)buffers[0], (int32_t *)buffers[1]};
    uint64_t before = nth_event(PROFILE_COLL, 0)->seq;
    assert_int_equal(before, 0);
    forget_events();
    allreduce_all(10);
    allreduce_all(0); /* nothing happens, nothing is counted */
    allreduce_all(20);
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        ncclBroadcast(ints[i], ints[i], 30, ncclInt32, 1, comms[i], NULL);
    ncclGroupEnd();
    synchronize();
    assert_int_equal(event_count(PROFILE_COLL), 3 * RANKS);
    assert_int_equal(nth_event(PROFILE_COLL, 0)->seq, 1);
    assert_int_equal(nth_event(PROFILE_COLL, RANKS)->seq, 2);
    assert_int_equal(nth_event(PROFILE_COLL, 2 * RANKS)->seq, 0);
    assert_int_equal(nth_event(PROFILE_COLL, 2 * RANKS)->root, 1);
}

static void events_hang_on_their_parents_and_all_stop(void **state)
{
    forget_events();
    allreduce_all(100);
    const struct mock_event *coll = nth_event(PROFILE_COLL, 0);
    if (version >= 5) {
        const struct mock_event *api_group = nth_event(PROFILE_GROUP_API, 0);
        assert_int_equal(event_count(PROFILE_GROUP_API), 1);
        assert_null(api_group->parent);
        assert_int_equal(api_group->depth, 2); /* the program's group, and the call's own */
        assert_int_equal(api_group->states,
                         1u << STATE_GROUP_START_API_STOP | 1u << STATE_GROUP_END_API_START);
        assert_int_equal(coll->parent->type, PROFILE_COLL_API);
        assert_ptr_equal(coll->parent->parent, api_group);
        assert_string_equal(coll->parent->func, "AllReduce");
        assert_int_equal(coll->group->type, PROFILE_GROUP);
        assert_int_equal(event_count(PROFILE_KERNEL_LAUNCH), RANKS);
        assert_ptr_equal(nth_event(PROFILE_KERNEL_LAUNCH, 0)->parent, api_group);
    } else {
        assert_int_equal(coll->parent->type, PROFILE_GROUP);
        assert_int_equal(event_count(PROFILE_GROUP_API) + event_count(PROFILE_COLL_API) +
                             event_count(PROFILE_KERNEL_LAUNCH),
                         0);
    }
    for (int i = 0; i < mock->event_count; i++)
        assert_int_equal(mock->events[i].stopped, 1);
}

static void kernel_channel_spans_the_execution(void **state)
{
    forget_events();
    allreduce_all(COUNT);
    const struct mock_event *coll = nth_event(PROFILE_COLL, 1);
    const struct mock_event *kernel = child_of(coll, PROFILE_KERNEL_CH);
    if (version < 3) {
        assert_int_equal(event_count(PROFILE_KERNEL_CH), 0);
        return;
    }
    assert_int_equal(event_count(PROFILE_KERNEL_CH), RANKS);
    assert_non_null(kernel);
    assert_int_equal(kernel->stopped, 1);
    if (version < 4)
        return;
    assert_true(kernel->timer > 0);
    assert_true(kernel->stop_timer >= kernel->timer);
    assert_int_equal(kernel->states, 1u << STATE_KERNEL_CH_STOP);
}

static void messages_have_peers(void **state)
{
    forget_events();
    ncclGroupStart();
    assert_int_equal(ncclSend(buffers[0], 40, ncclFloat32, 1, comms[0], NULL), ncclSuccess);
    assert_int_equal(ncclRecv(buffers[1], 40, ncclFloat32, 0, comms[1], NULL), ncclSuccess);
    ncclGroupEnd();
    synchronize();
    assert_int_equal(event_count(PROFILE_P2P), 2);
    const struct mock_event *send = nth_event(PROFILE_P2P, 0), *recv = nth_event(PROFILE_P2P, 1);
    assert_int_equal(send->peer, 1);
    assert_int_equal(recv->peer, 0);
    assert_int_equal(recv->count, 40);
    assert_ptr_equal(send->in, buffers[0]);
    if (version == 1)
        assert_int_equal(send->func_number, 6);
    else
        assert_string_equal(send->func, "Send");
    if (version >= 3)
        assert_non_null(child_of(recv, PROFILE_KERNEL_CH));
    if (version >= 5)
        assert_int_equal(recv->parent->type, PROFILE_P2P_API);
}

/* In call order: 4, 4000, 4001 and 10 floats summed, 20 floats' maximum, a broadcast of 30. */
static void group_runs_in_nccls_order_and_copies_count_bytes(void **state)
{
    static const struct {
        size_t count;
        ncclRedOp_t op;
    } sums[] = {{4, ncclSum}, {4000, ncclSum}, {4001, ncclSum}, {20, ncclMax}, {10, ncclSum}};
    static const uint64_t run[] = {4, 10, 4000, 4001, 30 * 4, 20};
    forget_events();
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++) {
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(ncclAllReduce(buffers[i], buffers[i], sums[k].count, ncclFloat32,
                                           sums[k].op, comms[i], NULL),
                             ncclSuccess);
        assert_int_equal(ncclBroadcast(buffers[i], buffers[i], 30, ncclFloat32, 0, comms[i], NULL),
                         ncclSuccess);
    }
    ncclGroupEnd();
    synchronize();
    assert_int_equal(event_count(PROFILE_COLL), 6 * RANKS);
    for (int n = 0; n < 6; n++)
        assert_int_equal(nth_event(PROFILE_COLL, n)->count, run[n]);
    const struct mock_event *copy = nth_event(PROFILE_COLL, 4);
    if (version == 1)
        assert_int_equal(copy->datatype_number, ncclInt8);
    else
        assert_string_equal(copy->datatype, "ncclInt8");
    if (version >= 5)
        assert_int_equal(copy->parent->count, 30);
}

static void capture_allreduce(cudaStream_t *streams, cudaGraphExec_t *ret)
{
    cudaGraph_t graph;
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        assert_int_equal(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), 0);
        assert_int_equal(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeGlobal), 0);
    }
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(
            ncclAllReduce(buffers[i], buffers[i], 50, ncclFloat32, ncclSum, comms[i], streams[i]),
            ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(cudaStreamEndCapture(streams[i], &graph), 0);
        assert_int_equal(cudaGraphInstantiate(&ret[i], graph, 0), 0);
        assert_int_equal(cudaGraphDestroy(graph), 0);
    }
}

/* The API calls are told of once, as captured; tasks and channels each time they run. */
static void captured_operation_is_told_of_at_each_launch(void **state)
{
    cudaStream_t streams[RANKS];
    cudaGraphExec_t execs[RANKS];
    forget_events();
    capture_allreduce(streams, execs);
    assert_int_equal(event_count(PROFILE_COLL) + event_count(PROFILE_KERNEL_CH), 0);
    assert_int_equal(event_count(PROFILE_COLL_API), version >= 5 ? RANKS : 0);
    for (int launch = 1; launch <= 3; launch++) {
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(cudaGraphLaunch(execs[i], streams[i]), 0);
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(cudaStreamSynchronize(streams[i]), 0);
        assert_int_equal(event_count(PROFILE_COLL), launch * RANKS);
        assert_int_equal(event_count(PROFILE_KERNEL_CH), version >= 3 ? launch * RANKS : 0);
    }
    assert_int_equal(event_count(PROFILE_KERNEL_LAUNCH), version >= 5 ? RANKS : 0);
    for (int i = 0; i < 3 * RANKS; i++) {
        const struct mock_event *coll = nth_event(PROFILE_COLL, i);
        assert_int_equal(coll->count, 50);
        assert_int_equal(coll->stopped, 1);
        if (version >= 5) {
            assert_int_equal(coll->parent->type, PROFILE_COLL_API);
            assert_int_equal(coll->parent->captured, 1);
            assert_int_equal(coll->parent->parent->captured, 1);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(cudaGraphExecDestroy(execs[i]), 0);
        assert_int_equal(cudaStreamDestroy(streams[i]), 0);
    }
    cudaSetDevice(0);
}

/* Asked for executions alone: what they hang on is started too, as NCCL does. */
static void kernel_channel_alone_brings_its_parents(void **state)
{
    ncclComm_t more[RANKS];
    mock->mask = PROFILE_KERNEL_CH;
    assert_int_equal(ncclCommInitAll(more, RANKS, NULL), ncclSuccess);
    forget_events();
    allreduce_all(8);
    assert_int_equal(event_count(PROFILE_COLL), RANKS);
    assert_int_equal(event_count(PROFILE_KERNEL_CH), version >= 3 ? RANKS : 0);
    assert_int_equal(event_count(PROFILE_KERNEL_LAUNCH), 0);
    mock->mask = 0;
    for (int i = 0; i < RANKS; i++)
        ncclCommDestroy(more[i]);
    assert_int_equal(mock->inits[RANKS].finalized, 1);
    assert_int_equal(mock->inits[RANKS + 1].finalized, 1);
    assert_int_equal(mock->inits[0].finalized, 0);
}

/* ---- the program as the plug-in ---- */

static int static_inits;

static int static_init(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                       int ranks, int rank, profiler_log_fn *log)
{
    static_inits++;
    *mask = 0;
    return 0;
}
static int nothing(void *context)
{
    return 0;
}
__attribute__((visibility("default"))) extern struct profiler_table ncclProfiler_v4;
struct profiler_table ncclProfiler_v4 = {"static", (void (*)(void))static_init, NULL, NULL, NULL,
                                         nothing};

static void static_plugin_is_found_in_the_program(void **state)
{
    assert_int_equal(make_comms(NULL), 0);
    assert_int_equal(static_inits, RANKS);
    free_comms(NULL);
}

/* Odd versions are asked for by the short name (found as the library is loaded already: its
 * soname), even ones by path. */
static void set_plugin(const char *folder)
{
    char path[512], name[32];
    snprintf(path, sizeof path, "%s/libnccl-profiler-mock%d.so", folder, version);
    snprintf(name, sizeof name, "mock%d", version);
    void *library = version > 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    mock = library ? dlsym(library, "mock_profiler") : NULL;
    const char *text = version == 0 ? "STATIC_PLUGIN" : version % 2 == 1 ? name : path;
    setenv("NCCL_PROFILER_PLUGIN", text, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_is_told_of_each_rank),
        cmocka_unit_test(collective_is_described),
        cmocka_unit_test(numbers_count_by_function_from_zero),
        cmocka_unit_test(events_hang_on_their_parents_and_all_stop),
        cmocka_unit_test(kernel_channel_spans_the_execution),
        cmocka_unit_test(messages_have_peers),
        cmocka_unit_test(group_runs_in_nccls_order_and_copies_count_bytes),
        cmocka_unit_test(captured_operation_is_told_of_at_each_launch),
        cmocka_unit_test(kernel_channel_alone_brings_its_parents),
    };
    const struct CMUnitTest static_tests[] = {
        cmocka_unit_test(static_plugin_is_found_in_the_program),
    };
    if (argc != 3)
        return 2;
    version = atoi(argv[1]);
    set_plugin(argv[2]);
    if (version == 0)
        return cmocka_run_group_tests(static_tests, NULL, NULL);
    if (!mock) {
        fprintf(stderr, "no plug-in: %s\n", dlerror());
        return 2;
    }
    return cmocka_run_group_tests(tests, make_comms, free_comms);
}
