/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "handles.h"

/* ---- around a completion call ---- */

struct scratch { /* rs_thread.scratch: one block, which the core frees as the thread ends */
    int capacity;
    uint64_t *requests;
    MPI_Status *statuses;
};

static struct scratch *grow(struct rs_thread *t, int n)
{
    int saved = errno;
    size_t capacity = n < 64 ? 64 : (size_t)n + (size_t)n / 2;
    if (capacity > INT32_MAX)
        capacity = INT32_MAX;
    struct scratch *s = malloc(sizeof *s + capacity * (sizeof(uint64_t) + sizeof(MPI_Status)));
    if (s) {
        s->capacity = (int)capacity;
        s->requests = (uint64_t *)(s + 1);
        s->statuses = (MPI_Status *)(s->requests + capacity);
        free(t->scratch);
        t->scratch = s;
    }
    errno = saved;
    return s;
}

static struct scratch *scratch_for(struct rs_thread *t, int n)
{
    struct scratch *s = t->scratch;
    return RS_LIKELY(s && n <= s->capacity) ? s : grow(t, n);
}

const uint64_t *rs_mpi_save_requests(struct rs_thread *t, int n, const MPI_Request *requests)
{
    struct scratch *s = scratch_for(t, n);
    if (!s)
        return NULL;
    for (int i = 0; requests && i < n; i++)
        s->requests[i] = rs_mpi_handle(requests[i]);
    return s->requests;
}

MPI_Status *rs_mpi_some_statuses(struct rs_thread *t, int n, MPI_Status *statuses)
{
    if (statuses != MPI_STATUSES_IGNORE || n <= 0)
        return statuses;
    struct scratch *s = scratch_for(t, n);
    return s ? s->statuses : statuses;
}

/* ---- small tables: few entries at a time, all under one lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct message {
    struct message *next;
    uint64_t handle;
    struct rs_comm *comm;
};
static struct message *messages;

void rs_mpi_message_found(MPI_Message message, struct rs_comm *comm)
{
    int saved = errno;
    struct message *m = malloc(sizeof *m);
    pthread_mutex_lock(&lock);
    if (m) {
        *m = (struct message){messages, rs_mpi_handle(message), comm};
        messages = m;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

struct rs_comm *rs_mpi_message_taken(MPI_Message message)
{
    int saved = errno;
    struct rs_comm *comm = &rs_mpi_no_comm;
    pthread_mutex_lock(&lock);
    for (struct message **at = &messages; *at; at = &(*at)->next)
        if ((*at)->handle == rs_mpi_handle(message)) {
            struct message *m = *at;
            *at = m->next;
            comm = m->comm;
            free(m);
            break;
        }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return comm;
}

struct promise {
    struct promise *next;
    const struct rs_comm *parent;
    MPI_Comm *newcomm;
    uint64_t request;
    uint32_t child;
};
static struct promise *promises;
unsigned rs_mpi_promises;

void rs_mpi_comm_promised(const struct rs_comm *parent, MPI_Comm *newcomm, uint32_t child,
                          uint64_t request)
{
    int saved = errno;
    struct promise *p = malloc(sizeof *p);
    pthread_mutex_lock(&lock);
    if (p) {
        *p = (struct promise){promises, parent, newcomm, request, child};
        promises = p;
        rs_mpi_promises++;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

static struct promise *take_promise(uint64_t request)
{
    struct promise *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct promise **at = &promises; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->request == request) {
            found = *at;
            *at = found->next;
            rs_mpi_promises--;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

void rs_mpi_promise_kept(struct rs_thread *t, uint64_t request)
{
    struct promise *p = take_promise(request);
    if (!p)
        return;
    rs_mpi_comm_made(t, p->parent, *p->newcomm, RS_MPI_MADE_BY_ALL, p->child, 0);
    int saved = errno;
    free(p);
    errno = saved;
}

/* ---- persistent requests: a table of open addresses ---- */

static struct {
    struct rs_mpi_persistent *entries; /* request 0: free */
    size_t capacity, used;             /* capacity: 0 or a power of two */
} persistent;

static size_t place_of(uint64_t request)
{
    size_t i = (size_t)rs_hash_mix(1, request) & (persistent.capacity - 1);
    while (persistent.entries[i].request != 0 && persistent.entries[i].request != request)
        i = (i + 1) & (persistent.capacity - 1);
    return i;
}

static bool make_place(void)
{
    if (persistent.used * 2 < persistent.capacity)
        return true;
    size_t old_capacity = persistent.capacity;
    struct rs_mpi_persistent *old = persistent.entries;
    size_t capacity = old_capacity ? old_capacity * 2 : 64;
    struct rs_mpi_persistent *entries = calloc(capacity, sizeof *entries);
    if (!entries)
        return false;
    persistent.entries = entries;
    persistent.capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].request != 0)
            entries[place_of(old[i].request)] = old[i];
    free(old);
    return true;
}

void rs_mpi_persistent_made(const struct rs_mpi_persistent *p)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    rs_core->define_op(p->op);
    if (make_place()) {
        size_t i = place_of(p->request);
        persistent.used += persistent.entries[i].request == 0;
        persistent.entries[i] = *p;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

bool rs_mpi_persistent_find(uint64_t request, struct rs_mpi_persistent *ret)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    if (persistent.capacity) {
        const struct rs_mpi_persistent *p = &persistent.entries[place_of(request)];
        found = p->request != 0;
        if (found)
            *ret = *p;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
