/* SPDX-License-Identifier: Apache-2.0 */
/* Has no MPI, but asks for one, as libraries that support many do. */
#include <dlfcn.h>
#include <stdio.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void)
{
    int flag = 7;
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_DEFAULT, "MPI_Init");
    int (*begun)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, "MPI_Initialized");
    int (*barrier)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "PMPI_Barrier");
    if (!init || !begun || !barrier)
        return failed("the tracer is not preloaded");
    if (begun(&flag) != 0 || flag != 0)
        return failed("MPI_Initialized does not answer no");
    if (init(NULL, NULL) == 0 || barrier(NULL) == 0)
        return failed("a call succeeded without an MPI");
    return 0;
}
