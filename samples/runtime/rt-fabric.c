/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL in a program that isn't linked with it. */
extern rt_fabric_open_fn rt_fabric_mpi_open __attribute__((weak));

struct rt_fabric *rt_fabric_new(int *ret_error, char *message, size_t message_bytes)
{
    const char *wanted = getenv("RT_FABRIC");
    *ret_error = -EINVAL;
    if (wanted && strcmp(wanted, "mpi") != 0) {
        snprintf(message, message_bytes, "RT_FABRIC is '%s', expected mpi", wanted);
        return NULL;
    }
    if (!rt_fabric_mpi_open) {
        snprintf(message, message_bytes, "the program is linked without MPI");
        return NULL;
    }
    return rt_fabric_mpi_open(ret_error, message, message_bytes);
}
