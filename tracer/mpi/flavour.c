/* SPDX-License-Identifier: Apache-2.0 */
#include "flavour.h"

#include <dlfcn.h>
#include <errno.h>

struct rs_mpi_real rs_mpi_real;
struct rs_mpi_predefined rs_mpi_predefined;
#if RS_MPI_HAS_SESSIONS
struct rs_mpi_real_sessions rs_mpi_real_sessions;
#endif

static const char *const redop_names[] = {
    "MPI_MAX", "MPI_MIN",  "MPI_SUM",  "MPI_PROD",   "MPI_LAND",   "MPI_BAND",    "MPI_LOR",
    "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP",
};
#define REDOPS (sizeof redop_names / sizeof *redop_names)
static uint64_t redop_handles[REDOPS];

static int find_functions(void *library)
{
#define RS_MPI_FIND(name)                                                                          \
    rs_mpi_real.name = (__typeof__(rs_mpi_real.name))dlsym(library, "PMPI_" #name);                \
    if (!rs_mpi_real.name)                                                                         \
        return -ENOENT;
    RS_MPI_REAL(RS_MPI_FIND)
#undef RS_MPI_FIND
#if RS_MPI_HAS_SESSIONS
    rs_mpi_real_sessions.Group_from_session_pset =
        (__typeof__(rs_mpi_real_sessions.Group_from_session_pset))dlsym(
            library, "PMPI_Group_from_session_pset");
#endif
    return 0;
}

#if RS_MPI_IS_OPENMPI

/* A program may hold the library's data objects itself (copy relocations): the global scope
 * decides, as it does for the library. One that was loaded locally is in no global scope. */
static void *find_object(void *library, const char *symbol)
{
    void *object = dlsym(RTLD_DEFAULT, symbol);
    return object ? object : dlsym(library, symbol);
}

static int find_predefined(void *library)
{
    struct {
        void *to;
        const char *symbol;
    } const wanted[] = {
        {&rs_mpi_predefined.world, "ompi_mpi_comm_world"},
        {&rs_mpi_predefined.self, "ompi_mpi_comm_self"},
        {&rs_mpi_predefined.comm_null, "ompi_mpi_comm_null"},
        {&rs_mpi_predefined.dtype_null, "ompi_mpi_datatype_null"},
        {&rs_mpi_predefined.byte, "ompi_mpi_byte"},
        {&rs_mpi_predefined.request_null, "ompi_request_null"},
        {&rs_mpi_predefined.message_null, "ompi_message_null"},
        {&rs_mpi_predefined.message_no_proc, "ompi_message_no_proc"},
        {&rs_mpi_predefined.errors_return, "ompi_mpi_errors_return"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = find_object(library, wanted[i].symbol);
        if (!symbol)
            return -ENOENT;
        *(void **)wanted[i].to = symbol;
    }
    return 0;
}

static void find_redops(void *library)
{
    static const char *const symbols[REDOPS] = {
        "ompi_mpi_op_max",     "ompi_mpi_op_min",   "ompi_mpi_op_sum",    "ompi_mpi_op_prod",
        "ompi_mpi_op_land",    "ompi_mpi_op_band",  "ompi_mpi_op_lor",    "ompi_mpi_op_bor",
        "ompi_mpi_op_lxor",    "ompi_mpi_op_bxor",  "ompi_mpi_op_minloc", "ompi_mpi_op_maxloc",
        "ompi_mpi_op_replace", "ompi_mpi_op_no_op",
    };
    for (size_t i = 0; i < REDOPS; i++)
        redop_handles[i] = (uint64_t)(uintptr_t)find_object(library, symbols[i]);
}

#else

static int find_predefined(void *library)
{
    (void)library;
    rs_mpi_predefined = (struct rs_mpi_predefined){
        .world = MPI_COMM_WORLD,
        .self = MPI_COMM_SELF,
        .comm_null = MPI_COMM_NULL,
        .dtype_null = MPI_DATATYPE_NULL,
        .byte = MPI_BYTE,
        .request_null = MPI_REQUEST_NULL,
        .message_null = MPI_MESSAGE_NULL,
        .message_no_proc = MPI_MESSAGE_NO_PROC,
        .errors_return = MPI_ERRORS_RETURN,
    };
    return 0;
}

static void find_redops(void *library)
{
    static const MPI_Op ops[REDOPS] = {
        MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD,   MPI_LAND,   MPI_BAND,    MPI_LOR,
        MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP,
    };
    (void)library;
    for (size_t i = 0; i < REDOPS; i++)
        redop_handles[i] = rs_mpi_handle(ops[i]);
}

#endif

const char *rs_mpi_redop_name(MPI_Op op)
{
    for (size_t i = 0; i < REDOPS; i++)
        if (redop_handles[i] == rs_mpi_handle(op))
            return redop_names[i];
    return "user function";
}

int rs_mpi_flavour_init(void *library)
{
    int r = find_functions(library);
    if (!r)
        r = find_predefined(library);
    if (!r)
        find_redops(library);
    return r;
}
