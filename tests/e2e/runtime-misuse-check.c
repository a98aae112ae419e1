/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-misuse-check CASE - one rank that uses the runtime as its header says it mustn't, or as
 * nobody would; exit 1 and a line where the answer is wrong. Where nothing went wrong the run goes
 * on: each case of "calls" ends with an allreduce that has the right result.
 *   calls   all that one run can have
 *   again   rt_init after rt_shutdown
 *   refused rt_init fails, on every rank, by a setting; the ranks end one after the other
 *   few     rank 0 has no descriptors left for the other ranks: they hear of it, too
 *   ranks   prints how many ranks there are
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#ifndef WITHOUT_MPI
#include <mpi.h>
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d, line %d: %s (%s)\n", rt_rank(), __LINE__, #condition,        \
                    rt_error());                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static bool says(const char *text)
{
    return strstr(rt_error(), text) != NULL;
}

static int sum(const char *name, float *data, uint64_t count)
{
    return rt_allreduce_async(name, data, data, count, RT_FLOAT32, RT_SUM, 1, 1, NULL);
}

static void all_is_well(void)
{
    float one = 1;
    int handle = sum("well", &one, 1);
    CHECK(handle >= 0 && rt_wait(handle) == 0 && one == (float)rt_size());
}

static void nothing_where_something_must_be(void)
{
    float one = 1;
    struct rt_parts parts;
    uint64_t splits[64] = {0};
    const struct rt_group_member member = {NULL, &one, 1};
    const struct rt_options shapeless = {.dimensions = 1};
    CHECK(sum(NULL, &one, 1) == -EINVAL && says("name"));
    CHECK(sum("no-data", NULL, 1) == -EINVAL && says("no-data") && says("buffer"));
    CHECK(rt_allreduce_async("no-out", &one, NULL, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL);
    CHECK(rt_grouped_allreduce_async("g", NULL, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL);
    CHECK(rt_grouped_allreduce_async("g", &member, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL);
    CHECK(rt_reducescatter_async("r", NULL, &one, 2, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL) == -EINVAL);
    CHECK(rt_reducescatter_async("r", &one, NULL, 64, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL) ==
          -EINVAL);
    CHECK(rt_allgather_async("a", NULL, 1, 1, RT_FLOAT32, &parts, NULL) == -EINVAL);
    CHECK(rt_allgather_async("a", &one, 1, 1, RT_FLOAT32, NULL, NULL) == -EINVAL);
    CHECK(rt_alltoall_async("a", NULL, NULL, 1, RT_FLOAT32, &parts, NULL) == -EINVAL);
    CHECK(rt_alltoall_async("a", NULL, splits, 1, RT_FLOAT32, NULL, NULL) == -EINVAL);
    CHECK(rt_broadcast_async("b", NULL, 1, RT_FLOAT32, 0, NULL) == -EINVAL);
    CHECK(rt_allreduce_async("s", &one, &one, 1, RT_FLOAT32, RT_SUM, 1, 1, &shapeless) == -EINVAL);
    CHECK(rt_join_async(NULL, NULL) == -EINVAL);
    CHECK(rt_timeline_start(NULL, 0) == -EINVAL);
    int handle = sum("empty", NULL, 0);
    CHECK(handle >= 0 && rt_wait(handle) == 0);
}

/* Ranks disagree about the one, too, which is heard of later. */
static void first_parameter_that_fails_is_told(void)
{
    float data[2] = {0};
    const struct rt_parameter list[] = {
        {"differs", data, rt_rank() == 0 ? 1 : 2, RT_FLOAT32},
        {"no-data", NULL, 1, RT_FLOAT32},
    };
    CHECK(rt_broadcast_parameters(list, 2, 0, NULL) == -EINVAL && says("no-data"));
    if (rt_size() > 1)
        CHECK(rt_broadcast_parameters(list, 1, 0, NULL) == -EINVAL && says("disagree"));
}

static void counts_whose_sum_is_too_large(void)
{
    static float one;
    enum { MANY = 128 };
    struct rt_group_member members[MANY];
    uint64_t splits[MANY];
    struct rt_parts parts;
    for (int i = 0; i < MANY; i++) {
        members[i] = (struct rt_group_member){&one, &one, (uint64_t)1 << 57};
        splits[i] = UINT64_MAX / 64;
    }
    CHECK(rt_grouped_allreduce_async("large", members, MANY, RT_FLOAT32, RT_SUM, 1, 1, NULL) ==
          -EINVAL);
    CHECK(rt_size() == 1 ||
          rt_alltoall_async("large", &one, splits, 1, RT_FLOAT32, &parts, NULL) == -EINVAL);
}

/* A handle isn't another operation's soon after it was waited for. */
static void handles_that_are_gone(void)
{
    float a = 1, b = 1;
    int first = sum("first", &a, 1);
    CHECK(first >= 0 && rt_wait(first) == 0);
    CHECK(rt_wait(first) == -EINVAL && says("handle"));
    for (int i = 0; i < 100; i++) {
        int second = sum("second", &b, 1);
        CHECK(second >= 0 && second != first);
        CHECK(rt_poll(first) == -EINVAL && rt_wait(first) == -EINVAL);
        CHECK(rt_wait(second) == 0);
    }
    CHECK(rt_wait(-1) == -EINVAL && rt_wait(INT32_MAX) == -EINVAL && rt_poll(-7) == -EINVAL);
}

static int shared_handle;

static void *wait_for_shared(void *ret)
{
    *(int *)ret = rt_wait(shared_handle);
    return NULL;
}

/* One gets the result, the others hear that there is no such handle. */
static void threads_that_wait_for_one_handle(void)
{
    enum { THREADS = 4, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        int result[THREADS], got = 0;
        float data[7] = {0};
        /* ranks disagree: the result is an error that none may take for a success */
        shared_handle = sum("shared", data, rt_size() > 1 ? (uint64_t)rt_rank() + 1 : 1);
        CHECK(shared_handle >= 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&thread[i], NULL, wait_for_shared, &result[i]) == 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < THREADS; i++)
            got += result[i] == 0;
        CHECK(got == (rt_size() == 1));
    }
}

/* Not a number is like itself: ranks that all say it don't disagree. */
static void scale_that_is_no_number(void)
{
    float one = 1;
    int handle = rt_allreduce_async("nan", &one, &one, 1, RT_FLOAT32, RT_SUM, NAN, 1, NULL);
    CHECK(handle >= 0 && rt_wait(handle) == 0 && isnan(one));
}

/* Of every type and alignment; in place and not. */
static void buffers_at_odd_addresses(void)
{
    enum { COUNT = 1003 };
    static unsigned char in[COUNT * 8 + 8], out[COUNT * 8 + 8];
    for (int shift = 1; shift < 8; shift += 2) {
        double two = 2;
        float three = 3;
        for (int i = 0; i < COUNT; i++) {
            memcpy(in + shift + i * 8, &two, 8);
            memcpy(out + shift + i * 4, &three, 4);
        }
        int h = rt_allreduce_async("odd.4", out + shift, out + shift, COUNT, RT_FLOAT32, RT_SUM, 1,
                                   1, NULL);
        CHECK(h >= 0 && rt_wait(h) == 0);
        for (int i = 0; i < COUNT; i++) {
            memcpy(&three, out + shift + i * 4, 4);
            CHECK(three == 3 * (float)rt_size());
        }
        h = rt_allreduce_async("odd.8", in + shift, out + shift, COUNT, RT_FLOAT64, RT_AVG, 1, 0.5,
                               NULL);
        CHECK(h >= 0 && rt_wait(h) == 0);
        for (int i = 0; i < COUNT; i++) {
            memcpy(&two, out + shift + i * 8, 8);
            CHECK(two == 1);
        }
    }
}

/* A data loader: it has no background thread, and says so instead of waiting for ever; its end is
 * not the rank's. */
static void children(void)
{
    float one = 1;
    int before = sum("before", &one, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool told = rt_wait(before) == -ESHUTDOWN && says("not running") &&
                    sum("child", &one, 1) == -ESHUTDOWN && rt_shutdown() == -ESHUTDOWN &&
                    rt_rank() == -ESHUTDOWN;
        _exit(told ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(rt_wait(before) == 0);
    CHECK(system("true") == 0);
}

static void calls(void)
{
    static void (*const cases[])(void) = {
        nothing_where_something_must_be,  first_parameter_that_fails_is_told,
        counts_whose_sum_is_too_large,    handles_that_are_gone,
        threads_that_wait_for_one_handle, scale_that_is_no_number,
        buffers_at_odd_addresses,         children,
    };
    CHECK(rt_wait(0) == -ESHUTDOWN && rt_poll(0) == -ESHUTDOWN && rt_rank() == -ESHUTDOWN);
    CHECK(rt_shutdown() == -ESHUTDOWN);
    CHECK(rt_init() == 0);
    CHECK(rt_init() == -EALREADY && says("already running"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cases[i]();
        all_is_well();
    }
    CHECK(rt_shutdown() == 0);
    CHECK(rt_shutdown() == -ESHUTDOWN);
}

#ifdef WITHOUT_MPI
/* At the rendezvous; who comes when rank 0 has given up is turned away, or hears nothing. */
/* Who comes when rank 0 has ended finds nobody. */
#define IS_FEW(error)                                                                              \
    ((error) == -ETIMEDOUT || (error) == -ECONNRESET || (error) == -EPROTO ||                      \
     (error) == -ECONNREFUSED)
/* rt-run keeps the port at which rank 0 waits. */
static void again(void)
{
    for (int i = 0; i < 3; i++) {
        CHECK(rt_init() == 0);
        all_is_well();
        CHECK(rt_shutdown() == 0);
    }
}

static int meet_others(void)
{
    return atoi(getenv("RT_RANK"));
}

static void part(void)
{
}
#else
#define IS_FEW(error) ((error) == -EMFILE)
/* MPI can't begin again in a process; where the program began it the runtime can. */
static void again(void)
{
    int provided;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK(rt_init() == 0);
        all_is_well();
        CHECK(rt_shutdown() == 0);
    }
    MPI_Finalize();
    CHECK(rt_init() == -ENOTSUP && says("MPI_Finalize"));
}

/* MPI's own connections are there, then. */
static int meet_others(void)
{
    int provided, rank, all[64];
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return rank;
}

static void part(void)
{
    MPI_Finalize();
}
#endif

static void refused(void)
{
    const char *rank = getenv("RT_RANK")                ? getenv("RT_RANK")
                       : getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK")
                                                        : getenv("PMI_RANK");
    const struct timespec a_while = {.tv_nsec = 200000000};
    CHECK(rt_init() < 0);
    puts(rt_error());
    fflush(stdout);
    if (rank &&
        strcmp(rank, "0") == 0) /* should it hear of the others' end, it looks at what is gone */
        nanosleep(&a_while, NULL);
    _exit(0);
}

static void few(void)
{
    if (meet_others() == 0) {
        int next = open("/dev/null", O_RDONLY | O_CLOEXEC); /* all below are taken */
        const struct rlimit limit = {(rlim_t)next + 3, (rlim_t)next + 3};
        close(next);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    const int error = rt_init();
    CHECK(IS_FEW(error) && says("rank 0"));
    part();
}

static void ranks(void)
{
    CHECK(rt_init() == 0);
    printf("%d ranks\n", rt_size());
    CHECK(rt_shutdown() == 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"calls", calls}, {"again", again}, {"refused", refused}, {"few", few}, {"ranks", ranks}};
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    return 9;
}
