/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-threads-check SEED - one rank: 4 threads hand tensors over at the same time. The names
 * are the same on all ranks; which thread has which, and in what order, is drawn on each. Each
 * thread waits for what another one handed over. Exit 1 and a line where a result is wrong.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rank-check.h"

enum { THREADS = 4, EACH = 24, NAMES = THREADS * EACH, ROUNDS = 6, LENGTH = 37 };
enum kind { SUM, MAX, BROADCAST, GATHER, KINDS };

struct job {
    int name, handle;
    int32_t data[LENGTH];
    struct rt_parts parts;
};

static struct job jobs[NAMES]; /* those of thread t from t * EACH on */
static pthread_barrier_t all_there, all_given;

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void shuffle(uint64_t *state)
{
    for (int i = 0; i < NAMES; i++)
        jobs[i].name = i;
    for (int i = NAMES - 1; i > 0; i--) {
        int k = (int)(draw(state) % (uint64_t)(i + 1)), name = jobs[i].name;
        jobs[i].name = jobs[k].name;
        jobs[k].name = name;
    }
}

static uint64_t count_of(int name)
{
    return (uint64_t)(name % LENGTH) + 1;
}

static int32_t value(int rank, int name, uint64_t i)
{
    return (rank + 1) * 1000 + name * 7 + (int32_t)i;
}

static int hand_over(struct job *j)
{
    const int root = j->name % rt_size();
    const uint64_t count = count_of(j->name);
    char name[32];
    snprintf(name, sizeof name, "tensor.%d", j->name);
    for (uint64_t i = 0; i < count; i++)
        j->data[i] = value(rt_rank(), j->name, i);
    switch ((enum kind)(j->name / 2 % KINDS)) {
    case SUM:
        return rt_allreduce_async(name, j->data, j->data, count, RT_INT32, RT_SUM, 1, 1, NULL);
    case MAX:
        return rt_allreduce_async(name, j->data, j->data, count, RT_INT32, RT_MAX, 1, 1, NULL);
    case BROADCAST:
        return rt_broadcast_async(name, j->data, count, RT_INT32, root, NULL);
    default:
        return rt_allgather_async(name, j->data, 1, count, RT_INT32, &j->parts, NULL);
    }
}

static int32_t expected(const struct job *j, uint64_t i)
{
    const int n = rt_size(), kind = j->name / 2 % KINDS;
    const int32_t base = value(0, j->name, i);
    return kind == SUM         ? n * base + 1000 * n * (n - 1) / 2
           : kind == MAX       ? base + 1000 * (n - 1)
           : kind == BROADCAST ? base + 1000 * (j->name % n)
                               : base;
}

static void check(struct job *j)
{
    const int32_t *got = j->data;
    CHECK(rt_wait(j->handle) == 0, "tensor %d", j->name);
    if (j->name / 2 % KINDS == GATHER) {
        got = j->parts.data;
        CHECK(j->parts.total == (uint64_t)rt_size(), "tensor %d", j->name);
    }
    for (uint64_t i = 0; i < count_of(j->name); i++)
        CHECK(got[i] == expected(j, i), "tensor %d: [%d] is %d, expected %d", j->name, (int)i,
              got[i], expected(j, i));
    if (got != j->data)
        rt_parts_clear(&j->parts);
}

static void *work(void *data)
{
    const int thread = (int)(intptr_t)data, other = (thread + 1) % THREADS;
    pthread_barrier_wait(&all_there);
    for (int i = thread * EACH; i < (thread + 1) * EACH; i++) {
        jobs[i].handle = hand_over(&jobs[i]);
        CHECK(jobs[i].handle >= 0, "tensor %d", jobs[i].name);
    }
    pthread_barrier_wait(&all_given);
    for (int i = other * EACH; i < (other + 1) * EACH; i++)
        check(&jobs[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && rt_init() == 0, "start");
    uint64_t state = strtoull(argv[1], NULL, 10) * 31 + (uint64_t)rt_rank();
    pthread_barrier_init(&all_there, NULL, THREADS);
    pthread_barrier_init(&all_given, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        shuffle(&state);
        for (intptr_t t = 0; t < THREADS; t++)
            CHECK(pthread_create(&threads[t], NULL, work, (void *)t) == 0, "thread");
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    }
    CHECK(rt_shutdown() == 0, "shutdown");
    return 0;
}
