/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handles.h - communicators, windows, files, datatypes, reduction operations: raw handle to what is
 * known of it.
 *
 * Lookups go through the calling thread's small caches (core.h) and never return NULL: what is
 * invalid or can't be known is `rs_mpi_no_comm`, `rs_mpi_no_type`, with id 0. First sights call
 * into MPI and may allocate; errno is kept.
 */
#ifndef RS_TRACER_MPI_HANDLES_H
#define RS_TRACER_MPI_HANDLES_H

#include "flavour.h"

extern struct rs_comm rs_mpi_no_comm RS_HIDDEN;
extern struct rs_type rs_mpi_no_type RS_HIDDEN;

/* Bits beside RS_COMM_MPI in rs_comm.api of an intercommunicator. Its ranks are those of both
 * groups, the group with the lowest world rank first; RS_MPI_LOCAL_FIRST: that is the local one. */
#define RS_MPI_INTER       0x100u
#define RS_MPI_LOCAL_FIRST 0x200u

struct rs_comm *rs_mpi_comm_slow(struct rs_thread *t, MPI_Comm comm) RS_HIDDEN;
struct rs_type *rs_mpi_dtype_slow(struct rs_thread *t, MPI_Datatype type) RS_HIDDEN;
struct rs_type *rs_mpi_redop_slow(struct rs_thread *t, MPI_Op op) RS_HIDDEN;

/* A peer as MPI names it, to one as rs_event does; sets RS_EVENT_NULL_PEER. For what is not simply
 * a rank of an intracommunicator. */
int32_t rs_mpi_peer_slow(const struct rs_comm *c, MPI_Comm comm, int rank,
                         uint16_t *flags) RS_HIDDEN;

/* How `comm` came to be, for its identity (identity.h). */
enum rs_mpi_made {
    RS_MPI_MADE_BY_ALL,   /* every member of the parent called: the parent's next child */
    RS_MPI_MADE_BY_GROUP, /* only the members called: numbered among those of the same members */
    RS_MPI_MADE_BETWEEN,  /* two groups, no common parent */
};
/* Defines a communicator made by this process. `child`: RS_MPI_MADE_BY_ALL. */
void rs_mpi_comm_made(struct rs_thread *t, const struct rs_comm *parent, MPI_Comm comm,
                      enum rs_mpi_made how, uint32_t child, int colour) RS_HIDDEN;
/* The name of `comm` changed. */
void rs_mpi_comm_named(struct rs_thread *t, MPI_Comm comm) RS_HIDDEN;

/* A window or file, made by all members of `parent` as its next child. Handles: rs_mpi_win_handle,
 * rs_mpi_file_handle. What was made unseen is rs_mpi_no_comm. */
void rs_mpi_place_made(struct rs_thread *t, const struct rs_comm *parent, enum rs_comm_api api,
                       uint64_t handle, uint32_t child, const char *name) RS_HIDDEN;
struct rs_comm *rs_mpi_place_slow(struct rs_thread *t, enum rs_comm_api api,
                                  uint64_t handle) RS_HIDDEN;
void rs_mpi_place_freed(enum rs_comm_api api, uint64_t handle) RS_HIDDEN;

/* Ends the meaning of a handle; called before the library frees it. */
void rs_mpi_comm_freed(MPI_Comm comm) RS_HIDDEN;
void rs_mpi_type_freed(uint64_t handle) RS_HIDDEN;

RS_INLINE struct rs_comm *rs_mpi_comm(struct rs_thread *t, MPI_Comm comm)
{
    uint64_t h = rs_mpi_handle(comm);
    const struct rs_cached *seen = rs_cached(t->comm_cache, h);
    if (RS_LIKELY(seen->handle == h))
        return seen->object;
    return rs_mpi_comm_slow(t, comm);
}

RS_INLINE struct rs_comm *rs_mpi_place(struct rs_thread *t, enum rs_comm_api api, uint64_t handle)
{
    const struct rs_cached *seen = rs_cached(t->comm_cache, handle);
    if (RS_LIKELY(seen->handle == handle))
        return seen->object;
    return rs_mpi_place_slow(t, api, handle);
}
RS_INLINE struct rs_comm *rs_mpi_win(struct rs_thread *t, MPI_Win win)
{
    return rs_mpi_place(t, RS_COMM_MPI_WINDOW, rs_mpi_win_handle(win));
}
RS_INLINE struct rs_comm *rs_mpi_file(struct rs_thread *t, MPI_File file)
{
    return rs_mpi_place(t, RS_COMM_MPI_FILE, rs_mpi_file_handle(file));
}

RS_INLINE struct rs_type *rs_mpi_dtype(struct rs_thread *t, MPI_Datatype type)
{
    uint64_t h = rs_mpi_handle(type);
    const struct rs_cached *seen = rs_cached(t->dtype_cache, h);
    if (RS_LIKELY(seen->handle == h))
        return seen->object;
    return rs_mpi_dtype_slow(t, type);
}

RS_INLINE struct rs_type *rs_mpi_redop(struct rs_thread *t, MPI_Op op)
{
    uint64_t h = rs_mpi_handle(op);
    const struct rs_cached *seen = rs_cached(t->redop_cache, h);
    if (RS_LIKELY(seen->handle == h))
        return seen->object;
    return rs_mpi_redop_slow(t, op);
}

RS_INLINE int32_t rs_mpi_peer(const struct rs_comm *c, MPI_Comm comm, int rank, uint16_t *flags)
{
    if (RS_LIKELY(rank >= 0 && !(c->api & RS_MPI_INTER)))
        return rank;
    return rs_mpi_peer_slow(c, comm, rank, flags);
}

/* The target of a one-sided call: windows have no intercommunicators, and no wildcards. */
RS_INLINE int32_t rs_mpi_target(int rank, uint16_t *flags)
{
    if (RS_LIKELY(rank >= 0))
        return rank;
    *flags |= RS_EVENT_NULL_PEER;
    return -1;
}

/* Sums of -v and -w forms: over the ranks that `comm`'s collective addresses, or its neighbours. */
uint64_t rs_mpi_sum_counts(const int *counts, int n) RS_HIDDEN;
#if !RS_MPI_IS_OPENMPI
uint64_t rs_mpi_sum_counts_c(const MPI_Count *counts, int n) RS_HIDDEN;
uint64_t rs_mpi_sum_bytes_c(struct rs_thread *t, const MPI_Count *counts, const MPI_Datatype *types,
                            int n) RS_HIDDEN;
#endif
uint64_t rs_mpi_sum_bytes(struct rs_thread *t, const int *counts, const MPI_Datatype *types,
                          int n) RS_HIDDEN;
int rs_mpi_addressed(struct rs_thread *t, const struct rs_comm *c, MPI_Comm comm) RS_HIDDEN;
int rs_mpi_contributing(struct rs_thread *t, const struct rs_comm *c, MPI_Comm comm) RS_HIDDEN;
int rs_mpi_neighbors(struct rs_thread *t, MPI_Comm comm, bool out) RS_HIDDEN;
/* Whether this rank is the root, or one beside the root's on an intercommunicator. */
RS_INLINE bool rs_mpi_is_root(const struct rs_comm *c, int root)
{
    if (RS_UNLIKELY(c->api & RS_MPI_INTER))
        return root == MPI_ROOT;
    return c->id != 0 && root == c->rank;
}

#endif
