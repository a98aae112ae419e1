/* SPDX-License-Identifier: Apache-2.0 */
/* by-handle use|map LIBRARY: takes NCCL's functions from the library's handle, where a preloaded
 * library doesn't see them; "use": an allreduce of two ranks. */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

#define TAKE(library, name) ((__typeof__(name) *)dlsym(library, #name))

#define DEVICES 2 /* one alone runs no kernel */

static int use(void *nccl)
{
    __typeof__(ncclCommInitAll) *init = TAKE(nccl, ncclCommInitAll);
    __typeof__(ncclGroupStart) *group_start = TAKE(nccl, ncclGroupStart);
    __typeof__(ncclGroupEnd) *group_end = TAKE(nccl, ncclGroupEnd);
    __typeof__(ncclAllReduce) *reduce = TAKE(nccl, ncclAllReduce);
    __typeof__(ncclCommDestroy) *destroy = TAKE(nccl, ncclCommDestroy);
    static float data[DEVICES][100];
    ncclComm_t comms[DEVICES];
    cudaStream_t streams[DEVICES];
    int faults = init(comms, DEVICES, NULL);
    for (int i = 0; i < DEVICES; i++)
        faults += cudaSetDevice(i) || cudaStreamCreate(&streams[i]);
    if (faults)
        return 1;
    group_start();
    for (int i = 0; i < DEVICES; i++)
        faults += reduce(data[i], data[i], 100, ncclFloat32, ncclSum, comms[i], streams[i]);
    faults += group_end();
    for (int i = 0; i < DEVICES; i++)
        faults += (int)cudaStreamSynchronize(streams[i]) + destroy(comms[i]);
    return faults != 0;
}

int main(int argc, char **argv)
{
    void *nccl = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!nccl) {
        fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "by-handle use|map LIBRARY");
        return 2;
    }
    return strcmp(argv[1], "use") == 0 ? use(nccl) : 0;
}
