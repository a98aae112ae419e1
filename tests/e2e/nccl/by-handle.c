/* SPDX-License-Identifier: Apache-2.0 */
/* by-handle use|map|again LIBRARY: takes NCCL's functions from the library's handle, where a
 * preloaded library doesn't see them; "use": an allreduce of two ranks. "again": by name, where it
 * does, of a library that is loaded, used and unloaded ROUNDS times. */
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

#define ROUNDS 3

static int use_by_name(void)
{
    __typeof__(ncclGetUniqueId) *get_id = TAKE(RTLD_DEFAULT, ncclGetUniqueId);
    __typeof__(ncclCommInitRankScalable) *init = TAKE(RTLD_DEFAULT, ncclCommInitRankScalable);
    __typeof__(ncclRedOpCreatePreMulSum) *make = TAKE(RTLD_DEFAULT, ncclRedOpCreatePreMulSum);
    __typeof__(ncclAllReduce) *reduce = TAKE(RTLD_DEFAULT, ncclAllReduce);
    __typeof__(ncclBcast) *bcast = TAKE(RTLD_DEFAULT, ncclBcast);
    __typeof__(ncclRedOpDestroy) *unmake = TAKE(RTLD_DEFAULT, ncclRedOpDestroy);
    __typeof__(ncclCommDestroy) *destroy = TAKE(RTLD_DEFAULT, ncclCommDestroy);
    static float data[100];
    float half = 0.5F;
    ncclUniqueId id;
    ncclComm_t comm;
    ncclRedOp_t op;
    cudaStream_t stream;
    data[99] = 8;
    if (!get_id || get_id(&id) || cudaStreamCreate(&stream) || init(&comm, 1, 0, 1, &id, NULL) ||
        make(&op, &half, ncclFloat32, ncclScalarHostImmediate, comm))
        return 1;
    int faults = reduce(data, data, 100, ncclFloat32, op, comm, stream) ||
                 bcast(data, 100, ncclFloat32, 0, comm, stream) || cudaStreamSynchronize(stream) ||
                 unmake(op, comm) || destroy(comm) || cudaStreamDestroy(stream);
    return faults || data[99] < 4 || data[99] > 4;
}

static int use_again(const char *path)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *nccl = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!nccl || use_by_name() || dlclose(nccl))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "again") == 0)
        return use_again(argv[2]);
    void *nccl = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!nccl) {
        fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "by-handle use|map|again LIBRARY");
        return 2;
    }
    return strcmp(argv[1], "use") == 0 ? use(nccl) : 0;
}
