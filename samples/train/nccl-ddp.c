/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-ddp - the same training as mlp on NCCL alone: no MPI, no runtime, no marks. Ranks are
 * processes of one host; rank and number of ranks come from RANK and WORLD_SIZE, as torchrun sets
 * them, or from Open MPI's launcher. Rank 0 writes NCCL's unique id to the file NCCL_DDP_ID, the
 * others wait for it: give each run a new path.
 */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "net.h"
#include "options.h"
#include "rt-fault.h"

static int rank, size;
static ncclComm_t comm;
static cudaStream_t stream;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nccl-ddp: rank %d: %s: %s\n", rank, what, why);
    exit(1);
}

static void nccl(const char *call, ncclResult_t result)
{
    if (result != ncclSuccess)
        die(call, ncclGetErrorString(result));
}

static void cuda(const char *call, cudaError_t result)
{
    if (result != cudaSuccess)
        die(call, cudaGetErrorString(result));
}

static int from_launcher(const char *rt_name, const char *openmpi_name, const char *name)
{
    const char *const names[] = {rt_name, openmpi_name, name};
    for (int i = 0; i < 3; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    fprintf(stderr, "nccl-ddp: %s, %s or %s must be set\n", rt_name, openmpi_name, name);
    exit(2);
}

/* Written beside and renamed: who sees the file sees all of it. */
static void give_id(const char *path, const ncclUniqueId *id)
{
    char draft[4096];
    snprintf(draft, sizeof draft, "%s.new", path);
    FILE *f = fopen(draft, "w");
    if (!f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) != 0 || rename(draft, path) != 0)
        die(path, "can't write");
}

static void get_id(const char *path, ncclUniqueId *id)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    FILE *f = NULL;
    for (int i = 0; i < 3000 && !(f = fopen(path, "r")); i++)
        nanosleep(&pause, NULL);
    if (!f || fread(id, sizeof *id, 1, f) != 1)
        die(path, "no id came from rank 0");
    fclose(f);
}

static void connect_ranks(void)
{
    const char *path = getenv("NCCL_DDP_ID");
    ncclUniqueId id;
    int devices = 0;
    if (!path)
        die("NCCL_DDP_ID",
            "not set: a path for rank 0's id, new for each run, as NCCL_DDP_ID=$(mktemp -u)");
    if (rank == 0) {
        nccl("ncclGetUniqueId", ncclGetUniqueId(&id));
        give_id(path, &id);
    } else {
        get_id(path, &id);
    }
    cuda("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
    cuda("cudaSetDevice", cudaSetDevice(rank % devices));
    cuda("cudaStreamCreate", cudaStreamCreate(&stream));
    nccl("ncclCommInitRank", ncclCommInitRank(&comm, size, id, rank));
}

/* All gradients in one group. The stand-in's device memory is host memory. */
static void average_gradients(struct net *net)
{
    nccl("ncclGroupStart", ncclGroupStart());
    for (int t = NET_TENSORS - 1; t >= 0; t--) {
        struct train_tensor *tensor = &net->tensor[t];
        nccl("ncclAllReduce", ncclAllReduce(tensor->gradient, tensor->gradient, tensor->count,
                                            ncclFloat32, ncclAvg, comm, stream));
    }
    nccl("ncclGroupEnd", ncclGroupEnd());
    cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

static void share_parameters(struct net *net)
{
    for (int t = 0; t < NET_TENSORS; t++)
        nccl("ncclBroadcast", ncclBroadcast(net->tensor[t].value, net->tensor[t].value,
                                            net->tensor[t].count, ncclFloat32, 0, comm, stream));
    cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

static int differing_ranks(uint64_t checksum)
{
    int words[2] = {(int)(checksum & 0x7fffffff), (int)(checksum >> 33)}, low[2], high[2];
    nccl("ncclAllReduce", ncclAllReduce(words, low, 2, ncclInt32, ncclMin, comm, stream));
    nccl("ncclAllReduce", ncclAllReduce(words, high, 2, ncclInt32, ncclMax, comm, stream));
    cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
    return low[0] != high[0] || low[1] != high[1];
}

static const struct rt_fault_phase phases[] = {{"forward", RT_FAULT_PHASE_COMPUTE}, {NULL, 0}};
static const struct rt_faults_program program = {
    .name = "nccl-ddp",
    .plays = RT_FAULT_BITS_TIME | RT_FAULT_BITS_WORK | RT_FAULT_BITS_NCCL,
    .phases = phases,
};

int main(int argc, char **argv)
{
    struct train_options o = train_options_read(argc, argv);
    struct rt_faults faults;
    struct net net;
    char message[RT_FAULT_MESSAGE_BYTES];
    float first = 0, loss = 0;
    if (rt_faults_begin(&faults, &program, message, sizeof message)) {
        fprintf(stderr, "nccl-ddp: %s\n", message);
        return 2;
    }
    rank = from_launcher("RT_RANK", "OMPI_COMM_WORLD_RANK", "RANK");
    size = from_launcher("RT_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE");
    if (net_init(&net, o.size, o.batch, o.seed, rank))
        die("network", "no memory");
    connect_ranks();
    share_parameters(&net);
    for (int s = 0; s < o.steps; s++) {
        rt_faults_step(&faults, s);
        net_load(&net);
        rt_faults_phase_begin(&faults, "forward");
        loss = net_forward(&net);
        rt_faults_phase_end(&faults);
        for (int i = NET_LAYERS - 1; i >= 0; i--)
            net_backward(&net, i);
        average_gradients(&net);
        net_descend(&net, o.rate);
        first = s == 0 ? loss : first;
        if (rank == 0 && (s == 0 || s == o.steps - 1 || s % 10 == 9))
            printf("step %d loss %.4f\n", s, loss);
    }
    uint64_t checksum = net_checksum(&net);
    int differing = differing_ranks(checksum), worse = o.steps >= 10 && !(loss < first);
    if (rank == 0)
        printf("parameters %s on %d ranks, checksum %016llx%s\n",
               differing ? "DIFFER" : "identical", size, (unsigned long long)checksum,
               worse ? "; the loss has NOT fallen" : "");
    net_release(&net);
    nccl("ncclCommDestroy", ncclCommDestroy(comm));
    cuda("cudaStreamDestroy", cudaStreamDestroy(stream));
    rt_faults_end(&faults);
    return differing || worse;
}
