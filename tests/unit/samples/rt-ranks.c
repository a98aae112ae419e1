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
    one_rank_fn *fn;
    void *data;
};

static void *run_rank(void *argument)
{
    struct rank *r = argument;
    r->result = r->fn(r->rank, r->size, r->data);
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

int run_each(int size, bool processes, one_rank_fn *fn, void *data)
{
    struct rank *ranks = calloc((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = (struct rank){i, size, -EAGAIN, fn, data};
    (processes ? run_processes : run_threads)(ranks, size);
    int result = 0;
    for (int i = size - 1; i >= 0; i--)
        result = ranks[i].result ? ranks[i].result : result;
    free(ranks);
    return result;
}

/* ---- over shared memory ---- */

struct shm_job {
    void *region;
    rank_fn *fn;
    void *argument;
};

static int run_shm_rank(int rank, int size, void *data)
{
    const struct shm_job *job = data;
    struct rt_transport_shm t;
    int result = rt_transport_shm_init(&t, job->region, rank, size);
    if (result != 0)
        return result;
    result = job->fn(&t.base, job->argument);
    rt_transport_shm_release(&t);
    return result;
}

int run_ranks(int size, bool processes, rank_fn *fn, void *argument)
{
    size_t bytes = rt_shm_bytes(size);
    void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED)
        return -errno;
    struct shm_job job = {region, fn, argument};
    int result = run_each(size, processes, run_shm_rank, &job);
    munmap(region, bytes);
    return result;
}
