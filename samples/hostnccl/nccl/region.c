/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region is a file without a path (rt-memory-file.h), whose name is in the id.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "rt-clock.h"
#include "rt-memory-file.h"
#include "rt-process.h"

#define ID_MAGIC 0x6c63636e74736f68ull /* "hostnccl" in memory order */
#define PAGE     4096u
#define LOOK_NS  100000000

#define TIMEOUT_MS_DEFAULT 600000u

/* What lies in a ncclUniqueId. */
struct id {
    uint64_t magic;
    struct rt_memory_name file;
    uint64_t start; /* of the process */
};
_Static_assert(sizeof(struct id) <= NCCL_UNIQUE_ID_BYTES, "fits an id");

struct hostnccl_region_head {
    uint64_t token[2]; /* rt-memory-file.h has it there */
    uint32_t ranks;    /* atomic: 0 until the first has come */
    uint32_t arrived;  /* atomic, and what waiting ranks sleep on */
};
_Static_assert(sizeof(struct hostnccl_region_head) <= PAGE && PAGE == RT_MEMORY_FILE_HEAD,
               "a page");

enum member_state { MEMBER_AWAITED, MEMBER_HERE, MEMBER_LEFT };

struct hostnccl_member {
    uint32_t state; /* atomic; what follows is set before it */
    int32_t pid;
    uint64_t start;
};

/* Files that this process keeps open for others. */
struct kept {
    struct kept *next;
    uint64_t token[2];
    int fd;
};
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *kept_files;

/* The ranks of one process share one mapping. */
struct mapping {
    struct mapping *next;
    uint64_t token[2];
    void *base;
    unsigned users;
};
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

static struct id id_of(const ncclUniqueId *id)
{
    struct id inner;
    memcpy(&inner, id->internal, sizeof inner);
    return inner;
}

uint64_t hostnccl_region_hash(const ncclUniqueId *id)
{
    return id_of(id).file.token[0];
}

static size_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* ---- making ---- */

static bool keep(const uint64_t token[2], int fd)
{
    struct kept *k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = (struct kept){.token = {token[0], token[1]}, .fd = fd};
    pthread_mutex_lock(&kept_lock);
    k->next = kept_files;
    kept_files = k;
    pthread_mutex_unlock(&kept_lock);
    return true;
}

void hostnccl_region_forget(const ncclUniqueId *id)
{
    struct id inner = id_of(id);
    pthread_mutex_lock(&kept_lock);
    struct kept **at = &kept_files;
    while (*at && memcmp((*at)->token, inner.file.token, sizeof inner.file.token) != 0)
        at = &(*at)->next;
    struct kept *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&kept_lock);
    if (found)
        close(found->fd);
    free(found);
}

ncclResult_t hostnccl_region_make(ncclUniqueId *ret_id)
{
    struct id id = {.magic = ID_MAGIC};
    const int fd = rt_memory_file_new(&id.file);
    if (fd < 0)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(-fd));
    id.start = rt_process_start(id.file.pid);
    if (!keep(id.file.token, fd)) {
        close(fd);
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(ENOMEM));
    }
    memset(ret_id, 0, sizeof *ret_id);
    memcpy(ret_id->internal, &id, sizeof id);
    return ncclSuccess;
}

/* ---- opening ---- */

/* NULL with errno. */
static void *map_shared(int fd, const struct id *id, size_t bytes)
{
    pthread_mutex_lock(&mappings_lock);
    struct mapping *m = mappings;
    while (m && memcmp(m->token, id->file.token, sizeof m->token) != 0)
        m = m->next;
    if (!m && (m = malloc(sizeof *m))) {
        *m = (struct mapping){mappings, {id->file.token[0], id->file.token[1]}, NULL, 0};
        m->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (m->base == MAP_FAILED) {
            free(m);
            m = NULL;
        } else {
            mappings = m;
        }
    }
    if (m)
        m->users++;
    pthread_mutex_unlock(&mappings_lock);
    return m ? m->base : NULL;
}

static void unmap_shared(void *base, size_t bytes)
{
    pthread_mutex_lock(&mappings_lock);
    struct mapping **at = &mappings;
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    struct mapping *m = *at;
    if (m && --m->users == 0) {
        *at = m->next;
        munmap(base, bytes);
        free(m);
    }
    pthread_mutex_unlock(&mappings_lock);
}

/* The head, the members, their notes, the transports. */
static ncclResult_t map_file(int fd, const struct id *id, int ranks, struct hostnccl_region *region)
{
    size_t members = whole_pages((uint64_t)ranks * sizeof(struct hostnccl_member));
    size_t notes = whole_pages(hostnccl_notes_bytes(ranks));
    size_t each = whole_pages(rt_shm_bytes(ranks));
    region->bytes = PAGE + members + notes + 3 * each;
    region->ranks = ranks;
    const int error = rt_memory_file_grow(fd, region->bytes);
    if (error)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(-error));
    char *base = map_shared(fd, id, region->bytes);
    if (!base)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(errno));
    region->head = (struct hostnccl_region_head *)base;
    region->members = (struct hostnccl_member *)(base + PAGE);
    region->notes = base + PAGE + members;
    region->data = base + PAGE + members + notes;
    region->control = (char *)region->data + each;
    region->rescue = (char *)region->control + each;
    return ncclSuccess;
}

/* All ranks must give the same number, before any of them sizes the file by it. */
static ncclResult_t agree_on_ranks(int fd, int ranks)
{
    struct hostnccl_region_head *head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(errno));
    uint32_t before = 0;
    __atomic_compare_exchange_n(&head->ranks, &before, (uint32_t)ranks, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    munmap(head, PAGE);
    if (before != 0 && before != (uint32_t)ranks)
        return hostnccl_fail(ncclInvalidArgument, "%d ranks here, %u elsewhere with the same id",
                             ranks, before);
    return ncclSuccess;
}

ncclResult_t hostnccl_region_open(const ncclUniqueId *id, int ranks, struct hostnccl_region *ret)
{
    struct id inner = id_of(id);
    if (inner.magic != ID_MAGIC)
        return hostnccl_fail(ncclInvalidArgument, "this id was not made by ncclGetUniqueId here");
    const int fd = rt_memory_file_open(&inner.file);
    if (fd < 0)
        return hostnccl_fail(ncclSystemError,
                             "the id's process, %d, has ended, or the id was used up",
                             inner.file.pid);
    struct hostnccl_region region = {.creator_pid = inner.file.pid, .creator_start = inner.start};
    ncclResult_t result = agree_on_ranks(fd, ranks);
    if (result == ncclSuccess)
        result = map_file(fd, &inner, ranks, &region);
    close(fd);
    if (result == ncclSuccess)
        *ret = region;
    return result;
}

void hostnccl_region_close(struct hostnccl_region *region)
{
    if (region->head)
        unmap_shared(region->head, region->bytes);
    *region = (struct hostnccl_region){0};
}

/* ---- meeting ---- */

void hostnccl_region_arrive(struct hostnccl_region *region, int rank)
{
    struct hostnccl_member *me = &region->members[rank];
    me->pid = getpid();
    me->start = rt_process_start(me->pid);
    __atomic_store_n(&me->state, MEMBER_HERE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&region->head->arrived, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &region->head->arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void hostnccl_region_leave(struct hostnccl_region *region, int rank)
{
    __atomic_store_n(&region->members[rank].state, MEMBER_LEFT, __ATOMIC_RELEASE);
}

/* ---- who is there ---- */

static enum member_state state_of(const struct hostnccl_region *region, int rank)
{
    return (enum member_state)__atomic_load_n(&region->members[rank].state, __ATOMIC_ACQUIRE);
}

static bool is_dead(const struct hostnccl_region *region, int rank)
{
    const struct hostnccl_member *m = &region->members[rank];
    return state_of(region, rank) == MEMBER_HERE && m->pid != getpid() &&
           !rt_process_alive(m->pid, m->start);
}

/* Appends what fits. */
static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* Who died is the reason why others left. */
void hostnccl_region_name_gone(const struct hostnccl_region *region, int rank, char *ret,
                               size_t size)
{
    ret[0] = 0;
    for (int r = 0; r < region->ranks; r++)
        if (is_dead(region, r))
            append(ret, size, "%srank %d (process %d)", ret[0] ? ", " : "", r,
                   region->members[r].pid);
    if (ret[0]) {
        append(ret, size, " died");
        return;
    }
    for (int r = 0; r < region->ranks; r++)
        if (r != rank && state_of(region, r) == MEMBER_LEFT)
            append(ret, size, "%srank %d", ret[0] ? ", " : "", r);
    if (ret[0])
        append(ret, size, " aborted, failed or left");
}

static void name_missing(const struct hostnccl_region *region, char *ret, size_t size)
{
    ret[0] = 0;
    for (int r = 0; r < region->ranks; r++)
        if (state_of(region, r) == MEMBER_AWAITED)
            append(ret, size, "%s%d", ret[0] ? ", " : "", r);
}

/* ---- waiting for all ---- */

static ncclResult_t read_timeout(uint64_t *ret_ms)
{
    const char *text = secure_getenv("HOSTNCCL_INIT_TIMEOUT_MS");
    char *end;
    *ret_ms = TIMEOUT_MS_DEFAULT;
    if (!text)
        return ncclSuccess;
    errno = 0;
    *ret_ms = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || *ret_ms == 0)
        return hostnccl_fail(ncclInvalidArgument,
                             "HOSTNCCL_INIT_TIMEOUT_MS is '%s', expected a number of ms, 1 or more",
                             text);
    return ncclSuccess;
}

/* Why it is no use to wait on. */
static ncclResult_t check_hope(const struct hostnccl_region *region, const bool *aborted,
                               uint64_t waited_ms, uint64_t timeout_ms)
{
    char missing[128], gone[128];
    if (__atomic_load_n(aborted, __ATOMIC_ACQUIRE))
        return hostnccl_fail(ncclInternalError, "aborted before all ranks had come");
    name_missing(region, missing, sizeof missing);
    hostnccl_region_name_gone(region, -1, gone, sizeof gone);
    if (gone[0])
        return hostnccl_fail(ncclRemoteError, "%s before all %d ranks had come; missing: %s", gone,
                             region->ranks, missing);
    if (!rt_process_alive(region->creator_pid, region->creator_start))
        return hostnccl_fail(ncclRemoteError,
                             "the process of the id, %d, ended before all %d ranks had come; "
                             "missing: %s",
                             region->creator_pid, region->ranks, missing);
    if (waited_ms >= timeout_ms)
        return hostnccl_fail(ncclRemoteError,
                             "after %llu ms (HOSTNCCL_INIT_TIMEOUT_MS) not all %d ranks have come; "
                             "missing: %s",
                             (unsigned long long)timeout_ms, region->ranks, missing);
    return ncclSuccess;
}

ncclResult_t hostnccl_region_await(const struct hostnccl_region *region, const bool *aborted)
{
    const struct timespec limit = {.tv_nsec = LOOK_NS};
    uint32_t *arrived = &region->head->arrived, now;
    const uint64_t begin_ns = rt_now_ns();
    uint64_t timeout_ms;
    ncclResult_t result = read_timeout(&timeout_ms);
    if (result != ncclSuccess)
        return result;
    while ((now = __atomic_load_n(arrived, __ATOMIC_SEQ_CST)) < (uint32_t)region->ranks) {
        if (syscall(SYS_futex, arrived, FUTEX_WAIT, now, &limit, NULL, 0) == 0 ||
            errno != ETIMEDOUT)
            continue;
        result = check_hope(region, aborted, (rt_now_ns() - begin_ns) / 1000000, timeout_ms);
        if (result != ncclSuccess &&
            __atomic_load_n(arrived, __ATOMIC_SEQ_CST) < (uint32_t)region->ranks)
            return result;
    }
    return ncclSuccess;
}
