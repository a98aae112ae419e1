/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-phases-check CASE [PATH] - one rank of a test of the runtime's phases and timeline file.
 *
 * all: of tensor late.R rank R is the last to be ready; then one operation of every kind.
 *
 * files: PATH.1 and PATH.2 by rt_timeline_start and rt_timeline_stop; then PATH.full, while no file
 * of rank 0 may grow further: what is written of it so far stays.
 *
 * killed: rank 0 kills itself when its timeline PATH holds something.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank-check.h"
#include "rt.h"

enum { LENGTH = 24 };
static float data[LENGTH], out[LENGTH];

static void done(int handle)
{
    CHECK(handle >= 0 && rt_wait(handle) == 0, "%d", handle);
}

static void reduce(const char *name, enum rt_op op, const struct rt_options *options)
{
    done(rt_allreduce_async(name, data, out, LENGTH, RT_FLOAT32, op, 1, 1, options));
}

/* All others have said "late" before they say "gate", which rank R waits for. */
static void late(void)
{
    for (int r = 0; r < rt_size(); r++) {
        char name[32];
        int handle = -1;
        snprintf(name, sizeof name, "late.%d", r);
        if (rt_rank() != r)
            handle = rt_allreduce_async(name, data, out, LENGTH, RT_FLOAT32, RT_SUM, 1, 1, NULL);
        int gate = rt_allreduce_async("gate", data, data, 1, RT_FLOAT32, RT_MAX, 1, 1, NULL);
        done(gate);
        if (rt_rank() == r)
            handle = rt_allreduce_async(name, data, out, LENGTH, RT_FLOAT32, RT_SUM, 1, 1, NULL);
        done(handle);
    }
}

static void all_kinds(const char *path)
{
    static const uint64_t shape[] = {2, 3, 4};
    const struct rt_options shaped = {.dimensions = 3, .shape = shape};
    const struct rt_options compressed = {.compression = RT_COMPRESSION_FP16};
    const struct rt_group_member members[] = {{data, out, 8}, {data, out + 8, 4}};
    uint64_t splits[64];
    struct rt_parts parts = {0};
    int last = -1;
    (void)path;
    for (int r = 0; r < rt_size(); r++)
        splits[r] = 1;
    late();
    reduce("one", RT_SUM, &shaped);
    reduce("compressed", RT_SUM, &compressed);
    reduce("adaptive", RT_ADASUM, NULL);
    done(rt_grouped_allreduce_async("group", members, 2, RT_FLOAT32, RT_SUM, 1, 1, NULL));
    done(rt_allgather_async("gather", data, 2, 3, RT_FLOAT32, &parts, NULL));
    rt_parts_clear(&parts);
    done(rt_alltoall_async("exchange", data, splits, 2, RT_FLOAT32, &parts, NULL));
    rt_parts_clear(&parts);
    done(rt_reducescatter_async("scatter", data, out, 8, 3, RT_FLOAT32, RT_SUM, 1, 1, NULL));
    done(rt_broadcast_async("root", data, LENGTH, RT_FLOAT32, 0, NULL));
    done(rt_barrier_async(NULL));
    reduce("one", RT_SUM, &shaped); /* the same process again */
    done(rt_join_async(&last, NULL));
}

static void calls(const char *path)
{
    char first[4096], second[4096];
    snprintf(first, sizeof first, "%s.1", path);
    snprintf(second, sizeof second, "%s.2", path);
    CHECK(rt_timeline_stop() == 0, "none");
    reduce("before", RT_SUM, NULL);
    CHECK(rt_timeline_start(first, 1) == 0, "%s", first);
    if (rt_rank() == 0)
        CHECK(rt_timeline_start(second, 0) == -EBUSY && strstr(rt_error(), "being written"), "two");
    done(rt_barrier_async(NULL)); /* all have begun */
    reduce("first", RT_SUM, NULL);
    done(rt_barrier_async(NULL));
    CHECK(rt_timeline_stop() == 0, "%s", first);
    reduce("between", RT_SUM, NULL);
    CHECK(rt_timeline_start(second, 0) == 0, "%s", second);
    done(rt_barrier_async(NULL));
    reduce("second", RT_SUM, NULL);
    reduce("first", RT_SUM, NULL);
    CHECK(rt_timeline_stop() == 0, "%s", second);
    done(rt_barrier_async(NULL)); /* what comes next on another rank isn't in it */
    if (rt_rank() == 0)
        CHECK(rt_timeline_start("/nonexistent/timeline", 0) == -ENOENT &&
                  strstr(rt_error(), "timeline /nonexistent/timeline: No such file"),
              "path");
}

static uint64_t length_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static void killed(const char *path)
{
    for (;;) {
        reduce("again", RT_SUM, NULL);
        if (rt_rank() == 0 && length_of(path) > 3000)
            kill(getpid(), SIGKILL);
    }
}

static void full(const char *prefix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.full", prefix);
    CHECK(rt_timeline_start(path, 0) == 0, "%s", path);
    done(rt_barrier_async(NULL)); /* all have begun */
    float begun = 0;
    while (begun == 0) { /* until all know that something stands there */
        begun = rt_rank() == 0 && length_of(path) > 1000;
        done(rt_allreduce_async("begun", &begun, &begun, 1, RT_FLOAT32, RT_MAX, 1, 1, NULL));
    }
    const struct rlimit limit = {length_of(path) + 2000, RLIM_INFINITY};
    CHECK(rt_rank() > 0 || setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    for (int i = 0; i < 100; i++)
        reduce("again", RT_SUM, NULL);
    for (int i = 0; i < LENGTH; i++)
        CHECK(out[i] == data[i] * (float)rt_size(), "[%d] is %g", i, (double)out[i]);
    CHECK(rt_timeline_stop() == (rt_rank() == 0 ? -EFBIG : 0), "stop");
    CHECK(rt_rank() > 0 || length_of(path) > 1000, "%llu bytes",
          (unsigned long long)length_of(path));
}

static void files(const char *path)
{
    calls(path);
    full(path);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *path);
    } cases[] = {{"all", all_kinds}, {"files", files}, {"killed", killed}};
    if (rt_init() < 0) {
        fprintf(stderr, "rt_init: %s\n", rt_error());
        return 2;
    }
    for (int i = 0; i < LENGTH; i++)
        data[i] = (float)i;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].run(argc > 2 ? argv[2] : NULL);
    if (rt_shutdown() < 0) {
        fprintf(stderr, "rt_shutdown: %s\n", rt_error());
        return 1;
    }
    return 0;
}
