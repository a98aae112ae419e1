/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flavour.h - the one place where a back end's mpi.h matters: handles, predefined objects,
 * statuses, and the library's functions.
 *
 * A back end links to no MPI. In Open MPI a predefined handle is the address of a data symbol, so
 * MPI_COMM_WORLD and its like must not be written in this folder: use rs_mpi_predefined.
 */
#ifndef RS_TRACER_MPI_FLAVOUR_H
#define RS_TRACER_MPI_FLAVOUR_H

#include <mpi.h>
#include <stddef.h>

#include "core.h"

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h> /* persistent collectives, before they were MPI's */
#endif
#if defined(OPEN_MPI)
#define RS_MPI_IS_OPENMPI 1
#define rs_mpi_handle(h)  ((uint64_t)(uintptr_t)(h))
#else
#define RS_MPI_IS_OPENMPI 0
#define rs_mpi_handle(h)  ((uint64_t)(uint32_t)(h))
#endif

#if !RS_MPI_IS_OPENMPI && MPI_VERSION >= 4
#define RS_MPI_HAS_SESSIONS 1
#else
#define RS_MPI_HAS_SESSIONS 0
#endif

/* Windows and files share the table of communicators: bits that no handle of those has. */
#define rs_mpi_win_handle(h)  (rs_mpi_handle(h) | 1ull << 62)
#define rs_mpi_file_handle(h) ((uint64_t)(uintptr_t)(h) | 1ull << 63)

/* The functions that the back end calls itself, as PMPI_X of the library found. */
#define RS_MPI_REAL(X)                                                                             \
    X(Cancel)                                                                                      \
    X(Cart_get)                                                                                    \
    X(Cartdim_get)                                                                                 \
    X(Comm_create_keyval)                                                                          \
    X(Comm_get_name)                                                                               \
    X(Comm_get_parent)                                                                             \
    X(Comm_group)                                                                                  \
    X(Comm_idup)                                                                                   \
    X(Comm_rank)                                                                                   \
    X(Comm_remote_group)                                                                           \
    X(Comm_remote_size)                                                                            \
    X(Comm_set_attr)                                                                               \
    X(Comm_set_errhandler)                                                                         \
    X(Comm_size)                                                                                   \
    X(Comm_test_inter)                                                                             \
    X(Dist_graph_neighbors_count)                                                                  \
    X(Finalized)                                                                                   \
    X(Graph_neighbors_count)                                                                       \
    X(Group_free)                                                                                  \
    X(Group_rank)                                                                                  \
    X(Group_size)                                                                                  \
    X(Group_translate_ranks)                                                                       \
    X(Initialized)                                                                                 \
    X(Iallgather)                                                                                  \
    X(Ibcast)                                                                                      \
    X(Irecv)                                                                                       \
    X(Isend)                                                                                       \
    X(Request_free)                                                                                \
    X(Test)                                                                                        \
    X(Topo_test)                                                                                   \
    X(Type_get_name)                                                                               \
    X(Type_size)

struct rs_mpi_real {
#define RS_MPI_MEMBER(name) __typeof__(&MPI_##name) name;
    RS_MPI_REAL(RS_MPI_MEMBER)
#undef RS_MPI_MEMBER
};
extern struct rs_mpi_real rs_mpi_real RS_HIDDEN;

#if RS_MPI_HAS_SESSIONS
/* NULL in a library older than the header. */
struct rs_mpi_real_sessions {
    __typeof__(&MPI_Group_from_session_pset) Group_from_session_pset;
};
extern struct rs_mpi_real_sessions rs_mpi_real_sessions RS_HIDDEN;
#endif

struct rs_mpi_predefined {
    MPI_Comm world, self, comm_null;
    MPI_Datatype dtype_null, byte;
    MPI_Request request_null;
    MPI_Message message_null, message_no_proc;
    MPI_Errhandler errors_return;
};
extern struct rs_mpi_predefined rs_mpi_predefined RS_HIDDEN;

/* Fills both from `library`. -ENOENT: something every MPI has is not there. */
int rs_mpi_flavour_init(void *library) RS_HIDDEN;
/* The name of a predefined reduction operation; "user function" for another. */
const char *rs_mpi_redop_name(MPI_Op op) RS_HIDDEN;

/* What a status says of the message's length, whatever its type: no call needed. */
static inline uint64_t rs_mpi_status_bytes(const MPI_Status *s)
{
#if RS_MPI_IS_OPENMPI
    return s->_ucount;
#else
    return (uint64_t)(uint32_t)s->count_lo | (uint64_t)((uint32_t)s->count_hi_and_cancelled >> 1)
                                                 << 32;
#endif
}

#endif
