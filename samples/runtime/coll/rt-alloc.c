/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is as long as what was ever allocated; the mapping is longer, so that neither this
 * process nor another need ever map again. What is allocated stands in a list by offset; the first
 * gap that is long enough is taken.
 */
#include "rt-alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW_BYTES ((uint64_t)64 << 30)
#define PAGE         ((uint64_t)4096)
#define HUGE_PAGE    ((uint64_t)2 << 20)

struct extent {
    struct extent *next;
    uint64_t first, end;
};

/* Of a process that forked this one. */
struct inherited {
    struct inherited *next;
    const char *base;
};

static struct {
    pthread_mutex_t lock;
    char *base; /* atomic: NULL until there is a heap */
    struct rt_memory_name name;
    struct extent *extents;
    uint64_t file_bytes;
    struct inherited *inherited, *for_child; /* made beforehand: a child may not allocate */
    bool failed, watches_fork;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

/* ---- making ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&heap.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&heap.lock);
}

/* Two processes that allocate from one file would give out the same bytes twice. */
static void in_child(void)
{
    if (heap.base) {
        *heap.for_child = (struct inherited){heap.inherited, heap.base};
        heap.inherited = heap.for_child;
        heap.for_child = NULL;
    }
    __atomic_store_n(&heap.base, NULL, __ATOMIC_RELEASE);
    heap.extents = NULL;
    heap.file_bytes = 0;
    heap.failed = false;
    pthread_mutex_unlock(&heap.lock);
}

/* An address that a huge page may begin at: two mappings of a file share one only if both do. */
static char *map_window(int fd)
{
    const uint64_t room = WINDOW_BYTES + HUGE_PAGE;
    char *area = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return NULL;
    char *base = area + (round_up((uintptr_t)area, HUGE_PAGE) - (uintptr_t)area);
    if (mmap(base, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
             0) == MAP_FAILED) {
        munmap(area, room);
        return NULL;
    }
    if (base > area)
        munmap(area, (size_t)(base - area));
    munmap(base + WINDOW_BYTES, (size_t)(area + room - base) - WINDOW_BYTES);
    madvise(base, WINDOW_BYTES, MADV_HUGEPAGE);
    madvise(base, WINDOW_BYTES, MADV_DONTDUMP);
    return base;
}

/* The lock is held. */
static bool begin_heap(void)
{
    if (heap.base || heap.failed)
        return heap.base != NULL;
    heap.failed = true;
    if (!heap.watches_fork && pthread_atfork(before_fork, in_parent, in_child) != 0)
        return false;
    heap.watches_fork = true;
    if (!heap.for_child && !(heap.for_child = malloc(sizeof *heap.for_child)))
        return false;
    const int fd = rt_memory_file_new(&heap.name);
    if (fd < 0)
        return false;
    char *base = map_window(fd);
    if (!base) {
        close(fd);
        return false;
    }
    heap.file_bytes = RT_MEMORY_FILE_HEAD;
    heap.failed = false;
    __atomic_store_n(&heap.base, base, __ATOMIC_RELEASE);
    return true;
}

/* ---- allocating ---- */

/* The lock is held. */
static char *take(uint64_t bytes)
{
    const uint64_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    struct extent **at = &heap.extents, *e = malloc(sizeof *e);
    uint64_t first = round_up(RT_MEMORY_FILE_HEAD, unit);
    while (*at && (*at)->first < first + bytes) {
        first = round_up((*at)->end, unit);
        at = &(*at)->next;
    }
    const uint64_t end = first + bytes;
    if (!e || end > WINDOW_BYTES ||
        (end > heap.file_bytes && rt_memory_file_grow(heap.name.fd, end))) {
        free(e);
        return NULL;
    }
    if (end > heap.file_bytes)
        heap.file_bytes = end;
    *e = (struct extent){*at, first, end};
    *at = e;
    madvise(heap.base + first, bytes, MADV_DODUMP);
    return heap.base + first;
}

void *rt_alloc(uint64_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    const uint64_t rounded = round_up(bytes ? bytes : 1, PAGE);
    pthread_mutex_lock(&heap.lock);
    char *p = rounded <= WINDOW_BYTES && begin_heap() ? take(rounded) : NULL;
    pthread_mutex_unlock(&heap.lock);
    return p ? p : aligned_alloc(PAGE, rounded);
}

/* The lock is held. */
static void give_back(uint64_t offset)
{
    struct extent **at = &heap.extents;
    while (*at && (*at)->first != offset)
        at = &(*at)->next;
    struct extent *e = *at;
    if (!e)
        return;
    *at = e->next;
    madvise(heap.base + e->first, e->end - e->first, MADV_REMOVE);
    madvise(heap.base + e->first, e->end - e->first, MADV_DONTDUMP);
    free(e);
}

static bool is_within(const void *p, const char *base)
{
    return base && (uintptr_t)p - (uintptr_t)base < WINDOW_BYTES;
}

void rt_free(void *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&heap.lock);
    bool in_heap = is_within(p, heap.base);
    if (in_heap)
        give_back((uint64_t)((char *)p - heap.base));
    for (struct inherited *i = heap.inherited; i && !in_heap; i = i->next)
        in_heap = is_within(p, i->base);
    pthread_mutex_unlock(&heap.lock);
    if (!in_heap)
        free(p);
}

/* ---- finding ---- */

bool rt_heap_find(const void *p, uint64_t bytes, struct rt_memory_name *ret_name,
                  uint64_t *ret_offset)
{
    const char *base = __atomic_load_n(&heap.base, __ATOMIC_ACQUIRE);
    const uint64_t offset = (uint64_t)((uintptr_t)p - (uintptr_t)base);
    if (!base || offset >= WINDOW_BYTES || bytes > WINDOW_BYTES - offset)
        return false;
    *ret_name = heap.name;
    *ret_offset = offset;
    return true;
}

static bool is_own(const struct rt_memory_name *name, const char *base)
{
    return base && memcmp(name->token, heap.name.token, sizeof name->token) == 0;
}

char *rt_heap_map(const struct rt_memory_name *name)
{
    char *own = __atomic_load_n(&heap.base, __ATOMIC_ACQUIRE);
    if (is_own(name, own))
        return own;
    const int fd = rt_memory_file_open(name);
    if (fd < 0)
        return NULL;
    char *base = map_window(fd);
    close(fd);
    return base;
}

void rt_heap_unmap(char *base)
{
    if (base && base != __atomic_load_n(&heap.base, __ATOMIC_ACQUIRE))
        munmap(base, WINDOW_BYTES);
}
