/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms.c - NCCL's communicators: identities (schemas/capture-format.md), ranks and sizes.
 *
 * A communicator that was made may still be in progress (in a group, or not blocking), and must not
 * be asked then: what is known of it is kept as a promise, by its handle, and rank, size and device
 * are asked for at its first use.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks.h"
#include "library.h"
#include "record.h"

struct promise {
    struct promise *next;
    ncclComm_t comm;
    uint64_t identity, parent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct promise *promises; /* with the lock */
static unsigned made_here;       /* with the lock: communicators without an id or parent */

/* ---- promises ---- */

static struct promise *steal_promise(ncclComm_t comm)
{
    pthread_mutex_lock(&lock);
    struct promise **link = &promises;
    while (*link && (*link)->comm != comm)
        link = &(*link)->next;
    struct promise *p = *link;
    if (p)
        *link = p->next;
    pthread_mutex_unlock(&lock);
    return p;
}

static void promise(ncclComm_t comm, uint64_t identity, uint64_t parent)
{
    struct promise *p = malloc(sizeof *p);
    free(steal_promise(comm));
    if (!p)
        return;
    *p = (struct promise){.comm = comm, .identity = identity, .parent = parent};
    pthread_mutex_lock(&lock);
    p->next = promises;
    promises = p;
    pthread_mutex_unlock(&lock);
}

/* ---- identities ---- */

static uint64_t hash_bytes(uint64_t h, const char *bytes, size_t n)
{
    for (; n > 0; bytes += 8) {
        size_t part = n < 8 ? n : 8;
        uint64_t word = 0;
        memcpy(&word, bytes, part);
        h = rs_hash_mix(h, word);
        n -= part;
    }
    return h;
}

/* Of this process alone. */
static uint64_t hash_here(void)
{
    pthread_mutex_lock(&lock);
    unsigned number = made_here++;
    pthread_mutex_unlock(&lock);
    const char *domain = rs_core->domain();
    uint64_t h = rs_hash_mix(rs_core->run_hash(), RS_COMM_NCCL);
    h = domain ? hash_bytes(h, domain, strlen(domain)) : h;
    return rs_hash_mix(rs_hash_mix(h, (uint64_t)getpid()), number);
}

static uint64_t hash_ids(const ncclUniqueId *ids, int n)
{
    uint64_t h = RS_COMM_NCCL;
    for (int i = 0; i < n; i++)
        h = hash_bytes(h, ids[i].internal, sizeof ids[i].internal);
    return h;
}

/* ---- definition at first use ---- */

static int ask(const char *function, ncclComm_t comm, int otherwise)
{
    ncclResult_t (*get)(ncclComm_t, int *) = rs_nccl_find(function);
    int value = otherwise;
    return get && get(comm, &value) == RS_NCCL_SUCCESS ? value : otherwise;
}

/* NCCL's world is the run's where neither MPI nor a launcher says more. */
static void tell_rank(int rank, int size)
{
    static unsigned done;
    if (!rs_core->rank_told && !__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
        rs_core->set_rank(rank, size);
}

static struct rs_comm *define(ncclComm_t comm)
{
    int size = ask("ncclCommCount", comm, -1), rank = ask("ncclCommUserRank", comm, -1);
    if (size <= 0 || rank < 0)
        return NULL;
    struct promise *p = steal_promise(comm);
    uint64_t identity = p ? p->identity : hash_here(), parent = p ? p->parent : 0;
    struct rs_comm *made =
        rs_core->define_comm(RS_COMM_NCCL, (uintptr_t)comm, identity, parent, rank, size, NULL,
                             ask("ncclCommCuDevice", comm, -1), NULL);
    if (p && !parent && size > 1 && made)
        tell_rank(rank, size);
    free(p);
    return made;
}

struct rs_comm *rs_nccl_known(struct rs_thread *t, ncclComm_t comm)
{
    return comm ? rs_core->find_comm(RS_COMM_NCCL, (uintptr_t)comm) : NULL;
}

struct rs_comm *rs_nccl_comm(struct rs_thread *t, ncclComm_t comm)
{
    uint64_t handle = (uintptr_t)comm;
    struct rs_cached *seen = rs_cached(t->comm_cache, handle);
    if (RS_LIKELY(comm && seen->handle == handle && seen->object))
        return seen->object;
    if (!comm)
        return NULL;
    int saved = errno;
    t->depth++;
    struct rs_comm *known = rs_nccl_known(t, comm);
    known = known ? known : define(comm);
    t->depth--;
    errno = saved;
    *seen = (struct rs_cached){handle, known};
    return known;
}

/* Before the real call: as soon as it returns, another thread may be given the same handle. */
void rs_nccl_comm_freed(ncclComm_t comm)
{
    int saved = errno;
    free(steal_promise(comm));
    if (comm)
        rs_core->forget_comm(RS_COMM_NCCL, (uintptr_t)comm);
    errno = saved;
}

/* ---- hooks ---- */

static void made(struct rs_thread *t, ncclResult_t result, ncclComm_t comm, uint64_t identity,
                 uint64_t parent)
{
    if (!comm)
        return;
    rs_core->forget_comm(RS_COMM_NCCL, (uintptr_t)comm);
    promise(comm, identity, parent);
    if (result == RS_NCCL_SUCCESS && !rs_nccl_in_group())
        rs_nccl_comm(t, comm);
}

static bool was_made(ncclResult_t result, const ncclComm_t *comm)
{
    return (result == RS_NCCL_SUCCESS || result == RS_NCCL_IN_PROGRESS) && comm;
}

void rs_hook_ncclCommInitRank(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                              int nranks, ncclUniqueId id, int rank)
{
    int saved = errno;
    if (was_made(result, comm))
        made(t, result, *comm, hash_ids(&id, 1), 0);
    errno = saved;
}

void rs_hook_ncclCommInitRankConfig(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                                    int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    rs_hook_ncclCommInitRank(t, result, comm, nranks, id, rank);
}

void rs_hook_ncclCommInitRankScalable(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm,
                                      int nranks, int rank, int n_ids, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    int saved = errno;
    if (was_made(result, comm) && ids)
        made(t, result, *comm, hash_ids(ids, n_ids), 0);
    errno = saved;
}

void rs_hook_ncclCommInitAll(struct rs_thread *t, ncclResult_t result, ncclComm_t *comm, int ndev,
                             const int *devlist)
{
    int saved = errno;
    uint64_t identity = was_made(result, comm) ? hash_here() : 0;
    for (int i = 0; identity && i < ndev; i++)
        identity = rs_hash_mix(identity, (uint64_t)(devlist ? devlist[i] : i));
    for (int i = 0; identity && i < ndev; i++)
        made(t, result, comm[i], identity, 0);
    errno = saved;
}

/* The parent's running number counts where this rank gets no communicator, too. */
static uint64_t child(struct rs_comm *parent, uint64_t kind)
{
    return rs_hash_mix(rs_hash_mix(parent->identity, parent->next_child++), kind);
}

void rs_hook_ncclCommSplit(struct rs_thread *t, ncclResult_t result, ncclComm_t parent, int color,
                           int key, ncclComm_t *comm, ncclConfig_t *config)
{
    int saved = errno;
    struct rs_comm *from = was_made(result, comm) ? rs_nccl_comm(t, parent) : NULL;
    if (from) {
        uint64_t identity = child(from, (uint64_t)(int64_t)color);
        if (color != RS_NCCL_NO_COLOR)
            made(t, result, *comm, identity, from->identity);
    }
    errno = saved;
}

void rs_hook_ncclCommShrink(struct rs_thread *t, ncclResult_t result, ncclComm_t parent,
                            int *excluded, int n_excluded, ncclComm_t *comm, ncclConfig_t *config,
                            int flags)
{
    int saved = errno;
    struct rs_comm *from = was_made(result, comm) ? rs_nccl_comm(t, parent) : NULL;
    if (from) {
        uint64_t identity = child(from, UINT64_MAX - 1);
        for (int i = 0; excluded && i < n_excluded; i++)
            identity = rs_hash_mix(identity, (uint64_t)(int64_t)excluded[i]);
        made(t, result, *comm, identity, from->identity);
    }
    errno = saved;
}
