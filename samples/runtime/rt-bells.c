/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-bells.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rt-alloc.h"

#define HUB 0 /* the rank that all messages go from or to */

struct bell {
    uint32_t number;   /* atomic */
    uint32_t sleeps;   /* atomic: the rank waits, or is about to */
    uint32_t ringers;  /* atomic: other ranks that reach it */
    struct bell *next; /* this process's, of those that are free */
};

struct other {
    char *heap; /* NULL: out of reach */
    struct bell *bell;
};

struct rt_bells {
    int rank, size;
    bool whole;
    struct bell *own;
    struct other *others; /* by rank */
};

/* Where a rank's bell is. */
struct place {
    struct rt_memory_name heap; /* 0: in none */
    uint64_t offset;
};

/* ---- this process's ---- */

/* Others may still ring a bell that has been freed: its memory stays one, for the next. What is
 * here in a child is its parent's. */
static struct {
    pthread_mutex_t lock;
    pid_t process;
    struct bell *first;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct bell *take_bell(void)
{
    struct bell *bell = NULL;
    pthread_mutex_lock(&spare.lock);
    if (spare.first && spare.process == getpid()) {
        bell = spare.first;
        spare.first = bell->next;
    }
    pthread_mutex_unlock(&spare.lock);
    if (!bell)
        bell = rt_alloc(sizeof *bell);
    if (bell)
        memset(bell, 0, sizeof *bell);
    return bell;
}

static void keep_bell(struct bell *bell)
{
    if (!bell)
        return;
    pthread_mutex_lock(&spare.lock);
    bell->next = spare.process == getpid() ? spare.first : NULL;
    spare.first = bell;
    spare.process = getpid();
    pthread_mutex_unlock(&spare.lock);
}

/* ---- others' ---- */

static void reach(struct rt_bells *b, int rank, const struct place *place)
{
    static const struct rt_memory_name none;
    struct other *o = &b->others[rank];
    if (memcmp(&place->heap, &none, sizeof none) == 0)
        return;
    o->heap = rt_heap_map(&place->heap);
    if (!o->heap)
        return;
    o->bell = (struct bell *)(o->heap + place->offset);
    __atomic_add_fetch(&o->bell->ringers, 1, __ATOMIC_SEQ_CST);
}

static void reach_all(struct rt_bells *b, const char (*hosts)[RT_HOST_MAX],
                      const struct place *places)
{
    for (int r = 0; r < b->size; r++)
        if (r != b->rank && (r == HUB || b->rank == HUB) && strcmp(hosts[r], hosts[b->rank]) == 0)
            reach(b, r, &places[r]);
}

/* The second time nothing is told but that all have reached what they can. */
static int meet(struct rt_bells *b, struct rt_fabric *f, const char (*hosts)[RT_HOST_MAX])
{
    struct place mine = {0}, *places = calloc((size_t)b->size, sizeof *places);
    if (!places)
        return -ENOMEM;
    rt_heap_find(b->own, sizeof *b->own, &mine.heap, &mine.offset);
    int error = f->ops->allgather(f, &mine, places, sizeof mine);
    if (!error) {
        reach_all(b, hosts, places);
        error = f->ops->allgather(f, &mine, places, 1);
    }
    const uint32_t wanted = b->rank == HUB ? (uint32_t)b->size - 1 : 1;
    b->whole = __atomic_load_n(&b->own->ringers, __ATOMIC_SEQ_CST) == wanted;
    free(places);
    return error;
}

struct rt_bells *rt_bells_new(struct rt_fabric *f, const char (*hosts)[RT_HOST_MAX], int *ret_error)
{
    struct rt_bells *b = calloc(1, sizeof *b);
    *ret_error = -ENOMEM;
    if (!b)
        return NULL;
    b->rank = f->rank;
    b->size = f->size;
    b->whole = true;
    b->own = take_bell();
    b->others = calloc((size_t)b->size, sizeof *b->others);
    if (b->own && b->others) {
        *ret_error = b->size > 1 ? meet(b, f, hosts) : 0;
    }
    if (!*ret_error)
        return b;
    rt_bells_free(b);
    return NULL;
}

void rt_bells_free(struct rt_bells *b)
{
    if (!b)
        return;
    for (int r = 0; r < b->size && b->others; r++)
        rt_heap_unmap(b->others[r].heap);
    free(b->others);
    keep_bell(b->own);
    free(b);
}

bool rt_bells_are_whole(const struct rt_bells *b)
{
    return b->whole;
}

/* The number grows before it is asked whether the rank sleeps, which says so before the system
 * compares the number: one of the two sees the other. */
void rt_bells_ring(struct rt_bells *b, int rank)
{
    struct bell *bell = rank == b->rank ? b->own : b->others[rank].bell;
    if (!bell)
        return;
    __atomic_add_fetch(&bell->number, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bell->sleeps, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &bell->number, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint32_t rt_bells_number(const struct rt_bells *b)
{
    return __atomic_load_n(&b->own->number, __ATOMIC_SEQ_CST);
}

void rt_bells_wait(struct rt_bells *b, uint32_t number, uint64_t at_most_ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(at_most_ns / 1000000000),
                                   .tv_nsec = (long)(at_most_ns % 1000000000)};
    __atomic_store_n(&b->own->sleeps, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &b->own->number, FUTEX_WAIT, number,
            at_most_ns == RT_BELLS_FOREVER ? NULL : &limit, NULL, 0);
    __atomic_store_n(&b->own->sleeps, 0, __ATOMIC_SEQ_CST);
}
