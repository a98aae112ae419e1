/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The id says which descriptor of which process is the region's file; others open it through /proc.
 * Its name can't be guessed and nobody else's file can be taken for it: the token must agree. The
 * permissions are those of /proc/<pid>/fd: the same user.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "rt-process.h"

#define FILE_NAME "hostnccl"
#define ID_MAGIC  0x6c63636e74736f68ull /* "hostnccl" in memory order */
#define PAGE      4096u
#define LOOK_NS   100000000

/* What lies in a ncclUniqueId. */
struct id {
    uint64_t magic;
    uint64_t token[2];
    uint64_t start; /* of the process */
    int32_t pid, fd;
};
_Static_assert(sizeof(struct id) <= NCCL_UNIQUE_ID_BYTES, "fits an id");

struct hostnccl_region_head {
    uint64_t token[2];
    uint32_t ranks;   /* atomic: 0 until the first has come */
    uint32_t arrived; /* atomic, and what waiting ranks sleep on */
};
_Static_assert(sizeof(struct hostnccl_region_head) <= PAGE, "a page");

/* Files that this process keeps open for others. */
struct kept {
    struct kept *next;
    uint64_t token[2];
    int fd;
};
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *kept_files;

static struct id id_of(const ncclUniqueId *id)
{
    struct id inner;
    memcpy(&inner, id->internal, sizeof inner);
    return inner;
}

uint64_t hostnccl_region_hash(const ncclUniqueId *id)
{
    return id_of(id).token[0];
}

static size_t transport_bytes(int ranks)
{
    return (rt_shm_bytes(ranks) + PAGE - 1) & ~(size_t)(PAGE - 1);
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
    while (*at && memcmp((*at)->token, inner.token, sizeof inner.token) != 0)
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
    struct id id = {.magic = ID_MAGIC, .pid = getpid()};
    id.start = rt_process_start(id.pid);
    if (getrandom(id.token, sizeof id.token, 0) != sizeof id.token)
        return hostnccl_fail(ncclSystemError, "no random numbers: %s", strerror(errno));
    id.fd = memfd_create(FILE_NAME, MFD_CLOEXEC);
    if (id.fd < 0)
        return hostnccl_fail(ncclSystemError, "memfd_create: %s", strerror(errno));
    struct hostnccl_region_head head = {.token = {id.token[0], id.token[1]}};
    if (fchmod(id.fd, 0600) != 0 || ftruncate(id.fd, PAGE) != 0 ||
        pwrite(id.fd, &head, sizeof head, 0) != sizeof head || !keep(id.token, id.fd)) {
        int error = errno;
        close(id.fd);
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(error));
    }
    memset(ret_id, 0, sizeof *ret_id);
    memcpy(ret_id->internal, &id, sizeof id);
    return ncclSuccess;
}

/* ---- opening ---- */

/* The link is looked at first: opening whatever has the number now could have effects. */
static int open_file(const struct id *id)
{
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/%d", id->pid, id->fd);
    if (readlink(path, target, sizeof target - 1) < 0)
        return -1;
    if (strncmp(target, "/memfd:" FILE_NAME, sizeof "/memfd:" FILE_NAME - 1) != 0) {
        errno = ENOENT;
        return -1;
    }
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool is_that_file(int fd, const struct id *id)
{
    struct hostnccl_region_head head;
    return pread(fd, &head, sizeof head, 0) == sizeof head &&
           memcmp(head.token, id->token, sizeof head.token) == 0;
}

static ncclResult_t map_file(int fd, int ranks, struct hostnccl_region *region)
{
    size_t each = transport_bytes(ranks);
    region->bytes = PAGE + 2 * each;
    if (ftruncate(fd, (off_t)region->bytes) != 0)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(errno));
    char *base = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return hostnccl_fail(ncclSystemError, "shared memory: %s", strerror(errno));
    region->head = (struct hostnccl_region_head *)base;
    region->data = base + PAGE;
    region->control = base + PAGE + each;
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
    int fd = open_file(&inner);
    if (fd >= 0 && !is_that_file(fd, &inner)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        return hostnccl_fail(ncclSystemError,
                             "the id's process, %d, has ended, or the id was used up", inner.pid);
    struct hostnccl_region region = {.creator_pid = inner.pid, .creator_start = inner.start};
    ncclResult_t result = agree_on_ranks(fd, ranks);
    if (result == ncclSuccess)
        result = map_file(fd, ranks, &region);
    close(fd);
    if (result == ncclSuccess)
        *ret = region;
    return result;
}

void hostnccl_region_close(struct hostnccl_region *region)
{
    if (region->head)
        munmap(region->head, region->bytes);
    *region = (struct hostnccl_region){0};
}

/* ---- meeting ---- */

void hostnccl_region_arrive(struct hostnccl_region *region)
{
    __atomic_fetch_add(&region->head->arrived, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &region->head->arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static ncclResult_t check_others(const struct hostnccl_region *region,
                                 const struct rt_transport_shm *transport)
{
    for (int r = 0; r < transport->base.size; r++)
        if (!rt_shm_peer_alive(transport, r))
            return hostnccl_fail(ncclRemoteError, "rank %d ended before all ranks had come", r);
    if (!rt_process_alive(region->creator_pid, region->creator_start))
        return hostnccl_fail(ncclRemoteError, "the process of the id ended before all had come");
    return ncclSuccess;
}

ncclResult_t hostnccl_region_await(struct hostnccl_region *region,
                                   const struct rt_transport_shm *transport)
{
    const struct timespec limit = {.tv_nsec = LOOK_NS};
    uint32_t *arrived = &region->head->arrived, now;
    while ((now = __atomic_load_n(arrived, __ATOMIC_SEQ_CST)) < (uint32_t)transport->base.size) {
        if (syscall(SYS_futex, arrived, FUTEX_WAIT, now, &limit, NULL, 0) == 0 ||
            errno != ETIMEDOUT)
            continue;
        ncclResult_t result = check_others(region, transport);
        if (result != ncclSuccess &&
            __atomic_load_n(arrived, __ATOMIC_SEQ_CST) < (uint32_t)transport->base.size)
            return result;
    }
    return ncclSuccess;
}
