/* SPDX-License-Identifier: Apache-2.0 */
/* back.c - a back end's one exported function. */
#include "back.h"

#include <errno.h>
#include <string.h>

#include "flavour.h"
#include "wrappers.h"

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;

__attribute__((visibility("default"))) rs_mpi_back_init_fn rs_mpi_back_init;

int rs_mpi_back_init(uint32_t abi, unsigned functions, const char *version,
                     const struct rs_core *core, void *library, struct rs_mpi_back *ret)
{
    if (abi != RS_MPI_ABI || functions != rs_mpi_wrapper_count ||
        core->abi != sizeof(struct rs_core) || strcmp(version, RS_VERSION) != 0)
        return -EPROTO;
    int r = rs_mpi_flavour_init(library);
    if (r)
        return r;
    rs_core = core;
    *ret = rs_mpi_wrappers;
    return 0;
}
