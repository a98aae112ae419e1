/* SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

#include <errno.h>

#include "identity.h"
#include "record.h"

struct rs_comm rs_mpi_no_comm = {.rank = -1};
struct rs_type rs_mpi_no_type;

static struct rs_comm *define(MPI_Comm comm, uint64_t identity, uint64_t parent,
                              const struct rs_mpi_members *m)
{
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0;
    if (rs_mpi_real.Comm_get_name(comm, name, &length) != MPI_SUCCESS)
        name[0] = '\0';
    struct rs_comm *c = rs_core->define_comm(RS_COMM_MPI, rs_mpi_handle(comm), identity, parent,
                                             m->own, m->size, m->ranks, -1, name);
    if (c && m->inter)
        c->api |= RS_MPI_INTER | (m->local_first ? RS_MPI_LOCAL_FIRST : 0);
    /* Processes that were spawned or connected to: nobody can tell who the others are, so what is
     * done with them is recorded without a communicator. */
    for (int32_t i = 0; c && i < m->size; i++)
        if (m->ranks[i] < 0)
            c->id = 0;
    return c;
}

/* One that was made unseen: by a library's inside, from another language, before the trace began.
 */
static struct rs_comm *define_seen(MPI_Comm comm)
{
    struct rs_mpi_members m;
    if (rs_mpi_members_of(comm, &m))
        return NULL;
    uint64_t h = rs_mpi_handle(comm), world = rs_mpi_identity_of_world(), identity, parent = world;
    if (h == rs_mpi_handle(rs_mpi_predefined.world)) {
        identity = world;
        parent = 0;
    } else if (h == rs_mpi_handle(rs_mpi_predefined.self)) {
        identity = rs_mpi_identity_of_child(world, UINT32_MAX, 0, &m);
    } else {
        identity = rs_mpi_identity_of_group(world, -1, &m);
    }
    struct rs_comm *c = define(comm, identity, parent, &m);
    rs_mpi_members_clear(&m);
    return c;
}

struct rs_comm *rs_mpi_comm_slow(struct rs_thread *t, MPI_Comm comm)
{
    uint64_t h = rs_mpi_handle(comm);
    if (h == 0 || h == rs_mpi_handle(rs_mpi_predefined.comm_null))
        return &rs_mpi_no_comm;
    int saved = errno;
    struct rs_comm *c = rs_core->find_comm(RS_COMM_MPI, h);
    t->depth++;
    if (!c && rs_mpi_is_live(t))
        c = define_seen(comm);
    t->depth--;
    errno = saved;
    if (!c)
        return &rs_mpi_no_comm;
    *rs_cached(t->comm_cache, h) = (struct rs_cached){h, c};
    return c;
}

static struct rs_type *define_dtype(MPI_Datatype type)
{
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0, size = 0;
    if (rs_mpi_real.Type_size(type, &size) != MPI_SUCCESS)
        return NULL;
    rs_mpi_real.Type_get_name(type, name, &length);
    uint64_t bytes = size < 0 ? 0 : (uint64_t)size;
    return rs_core->define_dtype(RS_COMM_MPI, rs_mpi_handle(type), name[0] ? name : "derived type",
                                 bytes);
}

struct rs_type *rs_mpi_dtype_slow(struct rs_thread *t, MPI_Datatype type)
{
    uint64_t h = rs_mpi_handle(type);
    if (h == 0 || h == rs_mpi_handle(rs_mpi_predefined.dtype_null))
        return &rs_mpi_no_type;
    int saved = errno;
    struct rs_type *x = rs_core->find_dtype(RS_COMM_MPI, h);
    t->depth++;
    if (!x && rs_mpi_is_live(t))
        x = define_dtype(type);
    t->depth--;
    errno = saved;
    if (!x)
        return &rs_mpi_no_type;
    *rs_cached(t->dtype_cache, h) = (struct rs_cached){h, x};
    return x;
}

struct rs_type *rs_mpi_redop_slow(struct rs_thread *t, MPI_Op op)
{
    uint64_t h = rs_mpi_handle(op);
    int saved = errno;
    struct rs_type *x = h ? rs_core->find_redop(RS_COMM_MPI, h) : &rs_mpi_no_type;
    if (!x)
        x = rs_core->define_redop(RS_COMM_MPI, h, rs_mpi_redop_name(op));
    errno = saved;
    if (!x)
        return &rs_mpi_no_type;
    *rs_cached(t->redop_cache, h) = (struct rs_cached){h, x};
    return x;
}

static int32_t remote_place(const struct rs_comm *c, MPI_Comm comm, int rank)
{
    int local = 0;
    if (c->api & RS_MPI_LOCAL_FIRST)
        rs_mpi_real.Comm_size(comm, &local);
    return local + rank;
}

int32_t rs_mpi_peer_slow(const struct rs_comm *c, MPI_Comm comm, int rank, uint16_t *flags)
{
    if (rank == MPI_PROC_NULL) {
        *flags |= RS_EVENT_NULL_PEER;
        return -1;
    }
    if (rank == MPI_ANY_SOURCE)
        return -2;
    return rank >= 0 && (c->api & RS_MPI_INTER) ? remote_place(c, comm, rank) : rank;
}

static uint64_t identity_of_made(const struct rs_comm *parent, enum rs_mpi_made how, uint32_t child,
                                 int colour, const struct rs_mpi_members *m)
{
    switch (how) {
    case RS_MPI_MADE_BY_ALL:
        return rs_mpi_identity_of_child(parent->identity, child, colour, m);
    case RS_MPI_MADE_BY_GROUP:
        return rs_mpi_identity_of_group(parent->identity, colour, m);
    case RS_MPI_MADE_BETWEEN:
        break;
    }
    return rs_mpi_identity_of_group(rs_core->run_hash(), colour, m);
}

void rs_mpi_comm_made(struct rs_thread *t, const struct rs_comm *parent, MPI_Comm comm,
                      enum rs_mpi_made how, uint32_t child, int colour)
{
    struct rs_mpi_members m;
    if (rs_mpi_handle(comm) == rs_mpi_handle(rs_mpi_predefined.comm_null))
        return;
    int saved = errno;
    t->depth++;
    if (rs_mpi_is_live(t) && rs_mpi_members_of(comm, &m) == 0) {
        uint64_t identity = identity_of_made(parent, how, child, colour, &m);
        define(comm, identity, how == RS_MPI_MADE_BETWEEN ? 0 : parent->identity, &m);
        rs_mpi_members_clear(&m);
    }
    t->depth--;
    errno = saved;
}

/* A new definition of the same identity: counters go on. */
void rs_mpi_comm_named(struct rs_thread *t, MPI_Comm comm)
{
    struct rs_mpi_members m;
    struct rs_comm *old = rs_mpi_comm(t, comm);
    int saved = errno;
    t->depth++;
    if (old->id != 0 && rs_mpi_members_of(comm, &m) == 0) {
        struct rs_comm *c = define(comm, old->identity, 0, &m);
        if (c && c != old) {
            c->next_seq = old->next_seq;
            c->next_child = old->next_child;
        }
        rs_mpi_members_clear(&m);
    }
    t->depth--;
    errno = saved;
}

void rs_mpi_place_made(struct rs_thread *t, const struct rs_comm *parent, enum rs_comm_api api,
                       uint64_t handle, uint32_t child, const char *name)
{
    if (parent->id == 0 || !parent->members)
        return;
    int saved = errno;
    t->depth++;
    struct rs_mpi_members m = {parent->members, parent->size, parent->rank, false, false};
    rs_core->define_comm(api, handle, rs_mpi_identity_of_child(parent->identity, child, 0, &m),
                         parent->identity, m.own, m.size, m.ranks, -1, name);
    t->depth--;
    errno = saved;
}

struct rs_comm *rs_mpi_place_slow(struct rs_thread *t, enum rs_comm_api api, uint64_t handle)
{
    struct rs_comm *c = rs_core->find_comm(api, handle);
    if (!c)
        return &rs_mpi_no_comm;
    *rs_cached(t->comm_cache, handle) = (struct rs_cached){handle, c};
    return c;
}

void rs_mpi_place_freed(enum rs_comm_api api, uint64_t handle)
{
    int saved = errno;
    rs_core->forget_comm(api, handle);
    errno = saved;
}

void rs_mpi_comm_freed(MPI_Comm comm)
{
    int saved = errno;
    rs_core->forget_comm(RS_COMM_MPI, rs_mpi_handle(comm));
    errno = saved;
}

void rs_mpi_type_freed(uint64_t handle)
{
    int saved = errno;
    rs_core->forget_type(RS_COMM_MPI, handle);
    errno = saved;
}
