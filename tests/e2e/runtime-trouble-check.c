/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-trouble-check RANK SECONDS CASE... - one rank of a job in which rank RANK does something
 * else than the others. What a rank is told goes to standard output, as "rank R: NAME: TEXT". Exit
 * status 3: it was told something, 0: it wasn't, 1: something is wrong.
 *
 * - mismatch: RANK's tensors are others, in one thing each
 * - skip: RANK never hands over a tensor that the others wait for; afterwards all go on
 * - leave: RANK ends, the others have one tensor more
 * - uneven: RANK has fewer data, and joins
 * - late: RANK hands over SECONDS late, and not before rank 0 has said who is missing
 * - start: RANK calls rt_init SECONDS late
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rank-check.h"

static int odd_rank;
static double seconds;
static bool told;

static bool is_odd(void)
{
    return rt_rank() == odd_rank;
}

static int sum(const char *name, float *data, uint64_t count)
{
    return rt_allreduce_async(name, data, data, count, RT_FLOAT32, RT_SUM, 1, 1, NULL);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Waits; where there is an error, it has to be this one. */
static void end(const char *name, int handle, int expected)
{
    const double start_ms = now_ms();
    int result = handle < 0 ? handle : rt_wait(handle);
    if (result < 0) {
        printf("rank %d: %s: %.1f ms: %s\n", rt_rank(), name, now_ms() - start_ms, rt_error());
        fflush(stdout);
        told = true;
    }
    CHECK(result == expected, "%s: %d, expected %d", name, result, expected);
}

/* All have the right result. */
static void all_is_well(const char *name)
{
    float one = 1;
    end(name, sum(name, &one, 1), 0);
    CHECK(one == (float)rt_size(), "%s: %g", name, (double)one);
}

static void mismatch(void)
{
    const bool odd = is_odd();
    const uint64_t shapes[2][2] = {{2, 3}, {3, 2}};
    const struct rt_options shape = {.dimensions = 2, .shape = shapes[odd]};
    const struct rt_options compression = {.compression =
                                               odd ? RT_COMPRESSION_FP16 : RT_COMPRESSION_NONE};
    float data[6] = {0};
    end("operation",
        odd ? rt_broadcast_async("operation", data, 6, RT_FLOAT32, 0, NULL)
            : sum("operation", data, 6),
        -EINVAL);
    end("type",
        rt_allreduce_async("type", data, data, 6, odd ? RT_INT32 : RT_FLOAT32, RT_SUM, 1, 1, NULL),
        -EINVAL);
    end("count", sum("count", data, odd ? 5 : 6), -EINVAL);
    end("shape", rt_allreduce_async("shape", data, data, 6, RT_FLOAT32, RT_SUM, 1, 1, &shape),
        -EINVAL);
    end("root", rt_broadcast_async("root", data, 6, RT_FLOAT32, odd, NULL), -EINVAL);
    end("reduction",
        rt_allreduce_async("reduction", data, data, 6, RT_FLOAT32, odd ? RT_MAX : RT_SUM, 1, 1,
                           NULL),
        -EINVAL);
    end("scale",
        rt_allreduce_async("scale", data, data, 6, RT_FLOAT32, RT_SUM, odd ? 0.5 : 1, 1, NULL),
        -EINVAL);
    end("compression",
        rt_allreduce_async("compression", data, data, 6, RT_FLOAT32, RT_SUM, 1, 1, &compression),
        -EINVAL);
    all_is_well("operation");
}

/* Who left out the one before is early at this, and may be told the same. */
static void go_on(const char *name)
{
    float one;
    int result;
    do {
        one = 1;
        result = rt_wait(sum(name, &one, 1));
    } while (result == -ETIMEDOUT);
    CHECK(result == 0 && one == (float)rt_size(), "%s: %g", name, (double)one);
}

static void skip(void)
{
    float one = 1;
    if (rt_rank() != 0)
        end("skipped-first", sum("skipped-first", &one, 1), -ETIMEDOUT);
    go_on("between");
    if (!is_odd())
        end("skipped", sum("skipped", &one, 1), -ETIMEDOUT);
    go_on("after");
}

static void leave(void)
{
    float one = 1;
    all_is_well("before");
    if (!is_odd())
        end("more", sum("more", &one, 1), -ESHUTDOWN);
}

static void uneven(void)
{
    int last = -1;
    for (int step = 0; step < (is_odd() ? 1 : 3); step++) {
        float one = 1;
        end("uneven", sum("uneven", &one, 1), 0);
        CHECK(one == (float)(rt_size() - (step > 0)), "step %d: %g", step, (double)one);
    }
    end("join", rt_join_async(&last, NULL), 0);
    CHECK(last >= 0 && last != odd_rank, "last %d", last);
    all_is_well("after");
}

static void be_late(void)
{
    const struct timespec duration = {(time_t)seconds, (long)(seconds * 1e9) % 1000000000};
    nanosleep(&duration, NULL);
}

/* Rank 0's standard error is a file, for the late one to see. */
static void await_warning(const char *path)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    char text[4096];
    size_t got = 0;
    while (!(got > 0 && strstr(text, "late: for "))) {
        FILE *file = fopen(path, "r");
        CHECK(file, "%s: %m", path);
        got = fread(text, 1, sizeof text - 1, file);
        text[got] = 0;
        fclose(file);
        nanosleep(&pause, NULL);
    }
}

static void late(void)
{
    const char *path = getenv("TROUBLE_WARNINGS");
    CHECK(path, "TROUBLE_WARNINGS is not set");
    if (rt_rank() == 0)
        CHECK(freopen(path, "a", stderr) && setvbuf(stderr, NULL, _IOLBF, 0) == 0, "%s: %m", path);
    all_is_well("before");
    if (is_odd()) {
        be_late();
        await_warning(path);
    }
    all_is_well("late");
}

static void start(void)
{
    all_is_well("start");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"mismatch", mismatch}, {"skip", skip}, {"leave", leave},
                 {"uneven", uneven},     {"late", late}, {"start", start}};
    if (argc < 4)
        return 9;
    odd_rank = atoi(argv[1]);
    seconds = atof(argv[2]);
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RT_RANK"};
    const char *rank = NULL; /* as the launcher says it: the runtime doesn't run yet */
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks && !rank; i++)
        rank = getenv(ranks[i]);
    if (strcmp(argv[3], "start") == 0 && rank && atoi(rank) == odd_rank)
        be_late();
    CHECK(rt_init() == 0, "rt_init");
    for (int k = 3; k < argc; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            if (strcmp(argv[k], cases[i].name) == 0)
                cases[i].run();
    CHECK(rt_shutdown() == 0, "rt_shutdown");
    return told ? 3 : 0;
}
