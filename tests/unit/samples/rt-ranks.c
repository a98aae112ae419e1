/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-ranks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-transport-shm.h"

struct rank {
    int rank, size, result;
    void *region;
    rank_fn *fn;
    void *argument;
};

static void *run_rank(void *argument)
{
    struct rank *r = argument;
    struct rt_transport_shm t;
    r->result = rt_transport_shm_init(&t, r->region, r->rank, r->size);
    if (r->result == 0) {
        r->result = r->fn(&t.base, r->argument);
        rt_transport_shm_release(&t);
    }
    return NULL;
}

static void run_threads(struct rank *ranks, int size)
{
    pthread_t *threads = calloc((size_t)size, sizeof *threads);
    for (int i = 0; i < size; i++)
        pthread_create(&threads[i], NULL, run_rank, &ranks[i]);
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

static void run_processes(struct rank *ranks, int size)
{
    pid_t *pids = calloc((size_t)size, sizeof *pids);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            run_rank(&ranks[i]);
            _exit(ranks[i].result == 0 ? 0 : ranks[i].result & 127 ? ranks[i].result & 127 : 127);
        }
    }
    for (int i = 0; i < size; i++) {
        int status = -1;
        ranks[i].result = -ECHILD;
        if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i])
            ranks[i].result = WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
    }
    free(pids);
}

int run_ranks(int size, bool processes, rank_fn *fn, void *argument)
{
    size_t bytes = rt_shm_bytes(size);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED)
        return -errno;
    struct rank *ranks = calloc((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = (struct rank){i, size, -EAGAIN, region, fn, argument};
    (processes ? run_processes : run_threads)(ranks, size);
    int result = 0;
    for (int i = size - 1; i >= 0; i--)
        result = ranks[i].result ? ranks[i].result : result;
    free(ranks);
    munmap(region, bytes);
    return result;
}

double rank_value(int rank, int tensor, uint64_t index, enum rt_op op)
{
    uint64_t mixed = index * 31 + (uint64_t)tensor * 17 + (uint64_t)rank * 7;
    if (op == RT_PROD)
        return (double)(mixed % 5) - 2.5 < 0 ? -1 : (double)(mixed % 3 + 1);
    return (double)(rank * 4096) + (double)(mixed % 4093) - 2000;
}

double reduced_value(int size, int tensor, uint64_t index, enum rt_type type, enum rt_op op)
{
    double sum = rank_value(0, tensor, index, op);
    for (int r = 1; r < size; r++) {
        double v = rank_value(r, tensor, index, op);
        if (op == RT_PROD)
            sum *= v;
        else if (op == RT_MAX)
            sum = v > sum ? v : sum;
        else if (op == RT_MIN)
            sum = v < sum ? v : sum;
        else
            sum += v;
    }
    if (op == RT_AVG)
        sum = type == RT_INT32 ? (double)((int64_t)sum / size) : (double)((float)sum / (float)size);
    return sum;
}

void fill(void *data, uint64_t count, enum rt_type type, int rank, int tensor, enum rt_op op)
{
    for (uint64_t i = 0; i < count; i++) {
        double v = rank_value(rank, tensor, i, op);
        if (type == RT_FLOAT32)
            ((float *)data)[i] = (float)v;
        else
            ((int32_t *)data)[i] = (int32_t)v;
    }
}

double element(const void *data, uint64_t index, enum rt_type type)
{
    return type == RT_FLOAT32 ? (double)((const float *)data)[index]
                              : (double)((const int32_t *)data)[index];
}
