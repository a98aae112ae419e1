/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in NCCL: every case in threads of this process and in processes of their own. A process
 * is this program again, as "test-hostnccl CASE RANK SIZE ID": the runtime doesn't survive a fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "covering.h"
#include "nccl-cases.h"
#include "nccl-id.h"
#include "rt-reference.h"

#define RANKS_MAX 8

extern char **environ;

/* ---- one rank ---- */

static int run_rank(const struct nccl_case *c, int rank, int size, ncclUniqueId id)
{
    ncclComm_t comm;
    if (cudaSetDevice(rank) != cudaSuccess ||
        ncclCommInitRank(&comm, size, id, rank) != ncclSuccess)
        return -1;
    int line = c->run(comm, rank, size);
    if (!c->ends_comm && ncclCommDestroy(comm) != ncclSuccess && line == 0)
        line = -2;
    return line;
}

/* ---- in threads ---- */

struct thread_rank {
    const struct nccl_case *c;
    int rank, size, line;
    ncclUniqueId id;
    pthread_t thread;
};

static void *thread_main(void *argument)
{
    struct thread_rank *r = argument;
    r->line = run_rank(r->c, r->rank, r->size, r->id);
    return NULL;
}

static void run_in_threads(const struct nccl_case *c, int size)
{
    struct thread_rank ranks[RANKS_MAX];
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct thread_rank){c, i, size, 0, id, 0};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, thread_main, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (ranks[i].line != 0)
            fail_msg("%s, thread %d of %d: line %d", c->name, i, size, ranks[i].line);
}

/* ---- in processes ---- */

static pid_t start_process(const char *name, int rank, int size, const ncclUniqueId *id)
{
    char rank_text[16], size_text[16], id_text[NCCL_ID_TEXT_BYTES], name_text[64];
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(size_text, sizeof size_text, "%d", size);
    snprintf(name_text, sizeof name_text, "%s", name);
    id_to_text(id, id_text);
    char self[] = "/proc/self/exe";
    char *arguments[] = {self, name_text, rank_text, size_text, id_text, NULL};
    pid_t pid = -1;
    return posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0 ? pid : -1;
}

/* The exit status of a process is whether it failed; the line stands on its standard error. */
static int process_main(char **arguments)
{
    const struct nccl_case *c = nccl_case_find(arguments[1]);
    int rank = atoi(arguments[2]), size = atoi(arguments[3]);
    int line = c ? run_rank(c, rank, size, id_of_text(arguments[4])) : -3;
    if (line != 0)
        fprintf(stderr, "%s, process %d of %d: line %d: %s\n", arguments[1], rank, size, line,
                ncclGetLastError(NULL));
    return line != 0;
}

static void run_in_processes(const struct nccl_case *c, int size)
{
    pid_t pids[RANKS_MAX];
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int i = 0; i < size; i++) {
        pids[i] = start_process(c->name, i, size, &id);
        assert_true(pids[i] > 0);
    }
    int failed = 0;
    for (int i = 0; i < size; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        bool dies = strncmp(c->name, "die-", 4) == 0 && i == size / 2;
        failed += dies ? !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) : status != 0;
    }
    assert_int_equal(failed, 0);
}

/* ---- the cases ---- */

static void run_both(const char *name, int from, int to)
{
    const struct nccl_case *c = nccl_case_find(name);
    for (int size = from; size <= to; size++) {
        run_in_threads(c, size);
        if (size == from || size == to || size == 4)
            run_in_processes(c, size);
    }
}

static void allreduce_equals_serial_sum(void **state)
{
    run_both("allreduce", 1, 8);
}
/* HOSTNCCL_SEED=... tries the same combinations again; processes inherit it. */
static void choose_seed(void)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)covering_seed("HOSTNCCL_SEED"));
    setenv("HOSTNCCL_SEED", seed, 1);
}
static void all_types_by_pairs_equal_serial_reference(void **state)
{
    choose_seed();
    run_both("types", 1, 8);
}
static void made_operations_multiply_then_sum(void **state)
{
    run_both("premultiplied", 1, 5);
}
static void reduce_scatter_then_allgather_equals_serial_sum(void **state)
{
    run_both("reduce-scatter-allgather", 1, 8);
}
static void broadcast_and_reduce_reach_their_ends(void **state)
{
    run_both("broadcast-reduce", 1, 8);
}
static void all_to_all_in_one_group_delivers(void **state)
{
    run_both("all-to-all", 1, 6);
}
static void scatter_and_gather_place_every_ranks_part(void **state)
{
    run_both("scatter-gather", 1, 5);
}
static void messages_keep_their_order(void **state)
{
    run_both("messages", 1, 5);
}
static void group_of_collectives_and_messages_on_two_streams_works(void **state)
{
    run_both("mixed-group", 1, 5);
}
static void operations_on_three_streams_keep_the_communicators_order(void **state)
{
    run_both("streams", 1, 5);
}
static void captured_operations_run_at_each_launch_of_the_graph(void **state)
{
    choose_seed();
    run_both("graph-replay", 1, 5);
    run_both("graph-mixed", 1, 3);
}
static void communicator_ends_after_its_graphs_or_is_aborted_before(void **state)
{
    run_both("graph-destroy", 1, 4);
    run_both("graph-abort", 1, 4);
}
static void message_of_two_sizes_is_told_to_both_ends(void **state)
{
    run_both("message-sizes", 2, 4);
}
static void split_makes_ordered_halves_and_none(void **state)
{
    run_both("split", 1, 7);
}
static void misuse_is_refused_and_harmless(void **state)
{
    run_both("misuse", 1, 3);
}
static void abort_ends_what_can_never_end(void **state)
{
    run_both("abort", 2, 5);
}
static void death_of_a_rank_in_any_call_ends_the_others_and_is_named(void **state)
{
    for (int i = 0; i < nccl_death_case_count; i++)
        run_in_processes(&nccl_death_cases[i], 4);
    run_in_processes(nccl_case_find("die-allreduce"), 2);
}

/* ---- what one process does alone ---- */

static void init_all_and_one_thread_drives_four_ranks(void **state)
{
    enum { N = 4, COUNT = 10007 };
    ncclComm_t comms[N], halves[N];
    float *data[N];
    const int devices[N] = {3, 1, 0, 2};
    assert_int_equal(ncclCommInitAll(comms, N, devices), ncclSuccess);
    for (int i = 0; i < N; i++) {
        int device = -1;
        assert_int_equal(ncclCommCuDevice(comms[i], &device), ncclSuccess);
        assert_int_equal(device, devices[i]);
        assert_int_equal(cudaMalloc((void **)&data[i], COUNT * sizeof **data), cudaSuccess);
        fill(data[i], COUNT, RT_FLOAT32, i, 0, RT_SUM);
    }
    /* stream 0 is that of each communicator's device */
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < N; i++)
        assert_int_equal(
            ncclAllReduce(data[i], data[i], COUNT, ncclFloat32, ncclSum, comms[i], NULL), 0);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < N; i++) {
        cudaSetDevice(devices[i]);
        assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < COUNT; k++)
            assert_true((double)data[i][k] == reduced_value(N, 0, (uint64_t)k, RT_FLOAT32, RT_SUM));
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < N; i++)
        assert_int_equal(ncclCommSplit(comms[i], i / 2, i, &halves[i], NULL), ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < N; i++) {
        int count = 0, rank = -1;
        assert_int_equal(ncclCommCount(halves[i], &count), ncclSuccess);
        assert_int_equal(ncclCommUserRank(halves[i], &rank), ncclSuccess);
        assert_int_equal(count, 2);
        assert_int_equal(rank, i % 2);
        ncclCommDestroy(halves[i]);
        ncclCommDestroy(comms[i]);
        cudaFree(data[i]);
    }
    cudaSetDevice(0);
}

static void init_in_a_group_of_one_thread_works(void **state)
{
    enum { N = 3 };
    ncclComm_t comms[N];
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int i = 0; i < N; i++)
        assert_int_equal(ncclCommInitRank(&comms[i], N, id, i), ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int i = 0; i < N; i++)
        assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
}

static void init_with_bad_arguments_is_refused(void **state)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id, nonsense;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const int twice[] = {1, 1};
    memset(&nonsense, 7, sizeof nonsense);
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&comm, 1, nonsense, 0), ncclInvalidArgument);
    assert_null(comm);
    assert_int_equal(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
    assert_int_equal(ncclCommInitRank(NULL, 2, id, 0), ncclInvalidArgument);
    assert_int_equal(ncclCommInitAll(&comm, 2, twice), ncclInvalidUsage);
    config.magic = 1;
    assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInvalidArgument);
    config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    config.commName = "alone";
    assert_int_equal(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess);
    assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
    /* an id serves one communicator */
    assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSystemError);
    assert_non_null(strstr(ncclGetLastError(NULL), "used up"));
}

/* A process that makes an id, gives it to us and stays. Forked: it uses no stream. */
static pid_t start_creator(ncclUniqueId *ret_id)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        ncclUniqueId id;
        if (ncclGetUniqueId(&id) == ncclSuccess && write(ends[1], &id, sizeof id) == sizeof id)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], ret_id, sizeof *ret_id), sizeof *ret_id);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

struct init_thread {
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t result;
};

static void *init_first_of_two(void *argument)
{
    struct init_thread *t = argument;
    t->result = ncclCommInitRank(&t->comm, 2, t->id, 0);
    return NULL;
}

/* Whether the rank waits already or comes too late: it is told, and doesn't wait for ever. */
static void init_when_the_ids_process_died_is_an_error(void **state)
{
    struct init_thread t = {.result = ncclSuccess};
    pthread_t thread;
    pid_t creator = start_creator(&t.id);
    assert_int_equal(pthread_create(&thread, NULL, init_first_of_two, &t), 0);
    assert_int_equal(kill(creator, SIGKILL), 0);
    pthread_join(thread, NULL);
    assert_true(t.result == ncclRemoteError || t.result == ncclSystemError);
    assert_null(t.comm);
    int status;
    waitpid(creator, &status, 0);
    assert_int_equal(ncclCommInitRank(&t.comm, 2, t.id, 0), ncclSystemError);
}

static void standin_announces_itself_and_its_version(void **state)
{
    extern int hostnccl_standin;
    int version = 0;
    assert_int_equal(hostnccl_standin, 1);
    assert_int_equal(ncclGetVersion(&version), ncclSuccess);
    assert_int_equal(version, NCCL_VERSION_CODE);
    assert_string_equal(ncclGetErrorString(ncclRemoteError),
                        "a remote process has exited or failed");
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return process_main(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standin_announces_itself_and_its_version),
        cmocka_unit_test(init_with_bad_arguments_is_refused),
        cmocka_unit_test(init_in_a_group_of_one_thread_works),
        cmocka_unit_test(init_all_and_one_thread_drives_four_ranks),
        cmocka_unit_test(init_when_the_ids_process_died_is_an_error),
        cmocka_unit_test(allreduce_equals_serial_sum),
        cmocka_unit_test(all_types_by_pairs_equal_serial_reference),
        cmocka_unit_test(made_operations_multiply_then_sum),
        cmocka_unit_test(reduce_scatter_then_allgather_equals_serial_sum),
        cmocka_unit_test(broadcast_and_reduce_reach_their_ends),
        cmocka_unit_test(all_to_all_in_one_group_delivers),
        cmocka_unit_test(scatter_and_gather_place_every_ranks_part),
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(group_of_collectives_and_messages_on_two_streams_works),
        cmocka_unit_test(operations_on_three_streams_keep_the_communicators_order),
        cmocka_unit_test(captured_operations_run_at_each_launch_of_the_graph),
        cmocka_unit_test(communicator_ends_after_its_graphs_or_is_aborted_before),
        cmocka_unit_test(message_of_two_sizes_is_told_to_both_ends),
        cmocka_unit_test(split_makes_ordered_halves_and_none),
        cmocka_unit_test(misuse_is_refused_and_harmless),
        cmocka_unit_test(abort_ends_what_can_never_end),
        cmocka_unit_test(death_of_a_rank_in_any_call_ends_the_others_and_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
