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
    if (!wanted || !*wanted)
        wanted = rt_fabric_mpi_open && !getenv("RT_RANK") ? "mpi" : "tcp";
    if (strcmp(wanted, "tcp") == 0)
        return rt_fabric_tcp_open(ret_error, message, message_bytes);
    *ret_error = -EINVAL;
    if (strcmp(wanted, "mpi") != 0)
        snprintf(message, message_bytes, "RT_FABRIC is '%s', expected mpi or tcp", wanted);
    else if (!rt_fabric_mpi_open)
        snprintf(message, message_bytes,
                 "RT_FABRIC is mpi, but the program is linked without MPI: expected tcp");
    else
        return rt_fabric_mpi_open(ret_error, message, message_bytes);
    return NULL;
}
