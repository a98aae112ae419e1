/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-limits-check CASE [N] - one rank of a job that goes to limits.
 *   differ SEED     each rank draws what it hands over by the same names: all hear the same
 *   names           names of any bytes, in the timeline of RT_TIMELINE
 *   many N          N tensors of different names, some of them again: memory stays
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rank-check.h"

static uint64_t state;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static int size;
static uint64_t buffer[2][64];

static void all_is_well(void)
{
    float one = 1;
    const int handle = rt_allreduce_async("well", &one, &one, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL);
    CHECK(handle >= 0 && rt_wait(handle) == 0 && one == (float)rt_size(), "all is well");
}

/* Of one name on all ranks, each of some kind. */
static int hand_over_one(const char *name, struct rt_parts *parts)
{
    const uint64_t count = 1 + draw(2);
    const enum rt_type type = draw(2) ? RT_FLOAT32 : RT_FLOAT64;
    const enum rt_op op = draw(4) ? RT_SUM : RT_ADASUM;
    const struct rt_options o = {.priority = (int)draw(3),
                                 .compression = (enum rt_compression)draw(2)};
    switch (draw(8)) {
    case 0:
        return rt_broadcast_async(name, buffer[0], count, type, (int)draw(2) % size, &o);
    case 1:
        return rt_allgather_async(name, buffer[0], draw(3), count, type, parts, &o);
    case 2:
        return rt_reducescatter_async(name, buffer[0], buffer[1], count, 2, type, RT_SUM, 1, 1, &o);
    default:
        return rt_allreduce_async(name, buffer[0], buffer[1], count, type, op, 1, 1, &o);
    }
}

static void differ(uint64_t seed)
{
    enum { NAMES = 4 };
    CHECK(rt_init() == 0, "rt_init");
    size = rt_size();
    for (unsigned round = 0; round < 200; round++) {
        int32_t results[NAMES];
        int handle[NAMES];
        struct rt_parts parts[NAMES] = {{0}}, all = {0};
        char name[NAMES][40];
        state = seed + round;
        /* often all alike */
        state = draw(2) ? state : state * 31 + (uint64_t)rt_rank();
        for (int i = 0; i < NAMES; i++) {
            snprintf(name[i], sizeof name[i], "name.%d", i);
            handle[i] = hand_over_one(name[i], &parts[i]);
            CHECK(handle[i] >= 0, "%s: %d", name[i], handle[i]);
        }
        for (int i = 0; i < NAMES; i++) {
            results[i] = rt_wait(handle[i]);
            CHECK(results[i] == 0 || (results[i] == -EINVAL && strstr(rt_error(), name[i])),
                  "%s: %d, %s", name[i], (int)results[i], rt_error());
            rt_parts_clear(&parts[i]);
        }
        const int h = rt_allgather_async("results", results, NAMES, 1, RT_INT32, &all, NULL);
        CHECK(h >= 0 && rt_wait(h) == 0, "results");
        for (uint64_t i = 0; i < all.total; i++)
            CHECK(((int32_t *)all.data)[i] == results[i % NAMES], "round %u: ranks heard others",
                  round);
        rt_parts_clear(&all);
    }
    all_is_well();
    CHECK(rt_shutdown() == 0, "rt_shutdown");
}

static void names(uint64_t unused)
{
    char all[RT_NAME_MAX + 1];
    CHECK(rt_init() == 0, "rt_init");
    size = rt_size();
    state = 1;
    for (int i = 0; i < 400; i++) {
        unsigned n = i < 255 ? 1 : i < 300 ? RT_NAME_MAX : 1 + draw(8);
        for (unsigned k = 0; k < n; k++)
            all[k] = (char)(1 + (i < 255 ? (unsigned)i : draw(255)));
        all[n] = 0;
        float one = 1;
        const int h = rt_allreduce_async(all, &one, &one, 1, RT_FLOAT32, RT_SUM, 1, 1, NULL);
        CHECK(h >= 0 && rt_wait(h) == 0 && one == (float)size, "name %d", i);
    }
    CHECK(rt_shutdown() == 0, "rt_shutdown");
}

/* ---- many ---- */

static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%ld %ld", &pages, &resident) == 2, "statm");
    fclose(f);
    return resident * 4;
}

/* Of i; every 16th is one that came before, of another length: no longer what the cache has. */
static void many(uint64_t n)
{
    enum { WINDOW = 500 };
    static int32_t data[WINDOW][4];
    int handle[WINDOW];
    char name[64];
    long early = 0;
    CHECK(rt_init() == 0, "rt_init");
    size = rt_size();
    for (uint64_t first = 0; first < n; first += WINDOW) {
        for (uint64_t i = 0; i < WINDOW; i++) {
            const uint64_t number = i % 16 == 0 ? i : first + i,
                           count = i % 16 == 0 ? 1 + first / WINDOW % 4 : 1;
            for (uint64_t k = 0; k < 4; k++)
                data[i][k] = (int32_t)(number + k);
            snprintf(name, sizeof name, "model.layer.%llu.weight", (unsigned long long)number);
            handle[i] =
                rt_allreduce_async(name, data[i], data[i], count, RT_INT32, RT_SUM, 1, 1, NULL);
            CHECK(handle[i] >= 0, "%s", name);
        }
        for (uint64_t i = 0; i < WINDOW; i++) {
            const uint64_t number = i % 16 == 0 ? i : first + i,
                           count = i % 16 == 0 ? 1 + first / WINDOW % 4 : 1;
            CHECK(rt_wait(handle[i]) == 0, "tensor %llu: %s", (unsigned long long)number,
                  rt_error());
            for (uint64_t k = 0; k < 4; k++)
                CHECK(data[i][k] == (int32_t)(number + k) * (k < count ? size : 1), "tensor %llu",
                      (unsigned long long)number);
        }
        if (first <= n / 5)
            early = resident_kib();
    }
    const long late = resident_kib();
    printf("rank %d: %ld KiB after a fifth of %llu tensors, %ld KiB after all\n", rt_rank(), early,
           (unsigned long long)n, late);
    CHECK(late - early < 2048, "memory grows");
    CHECK(rt_shutdown() == 0, "rt_shutdown");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(uint64_t n);
    } cases[] = {{"differ", differ}, {"names", names}, {"many", many}};
    for (size_t i = 0; argc >= 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run(argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
            return 0;
        }
    return 9;
}
