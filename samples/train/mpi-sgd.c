/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi-sgd - the same training as mlp, by plain MPI: no runtime, no thread, no marks. Gradients are
 * averaged by one MPI_Allreduce each, after the whole backward pass.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"
#include "options.h"
#include "rt-fault.h"

static void average_gradients(struct net *net, int size)
{
    for (int t = NET_TENSORS - 1; t >= 0; t--) {
        struct train_tensor *tensor = &net->tensor[t];
        MPI_Allreduce(MPI_IN_PLACE, tensor->gradient, (int)tensor->count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        for (uint64_t k = 0; k < tensor->count; k++)
            tensor->gradient[k] /= (float)size;
    }
}

static float mean_over_ranks(float value, int size)
{
    float sum;
    MPI_Allreduce(&value, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return sum / (float)size;
}

static int train(struct net *net, const struct train_options *o, struct rt_faults *faults, int rank,
                 int size)
{
    float first = 0, last = 0;
    for (int s = 0; s < o->steps; s++) {
        rt_faults_step(faults, s);
        net_load(net);
        rt_faults_phase_begin(faults, "forward");
        last = net_forward(net);
        rt_faults_phase_end(faults);
        for (int i = NET_LAYERS - 1; i >= 0; i--)
            net_backward(net, i);
        average_gradients(net, size);
        net_descend(net, o->rate);
        if (s == 0 || s == o->steps - 1 || s % 10 == 9) {
            last = mean_over_ranks(last, size);
            first = s == 0 ? last : first;
            if (rank == 0)
                printf("step %d loss %.4f\n", s, last);
        }
    }
    return o->steps >= 10 && !(last < first);
}

static int differing_ranks(uint64_t checksum)
{
    unsigned long long mine = checksum, first = checksum;
    MPI_Bcast(&first, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    int differs = mine != first, sum;
    MPI_Allreduce(&differs, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static const struct rt_fault_phase phases[] = {{"forward", RT_FAULT_PHASE_COMPUTE}, {NULL, 0}};
static const struct rt_faults_program program = {
    .name = "mpi-sgd",
    .plays = RT_FAULT_BITS_TIME | RT_FAULT_BITS_WORK | RT_FAULT_BITS_SOCKETS,
    .phases = phases,
};

int main(int argc, char **argv)
{
    struct train_options o = train_options_read(argc, argv);
    struct rt_faults faults;
    struct net net;
    char message[RT_FAULT_MESSAGE_BYTES];
    int rank, size;
    if (rt_faults_begin(&faults, &program, message, sizeof message)) {
        fprintf(stderr, "mpi-sgd: %s\n", message);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (net_init(&net, o.size, o.batch, o.seed, rank)) {
        fprintf(stderr, "mpi-sgd: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int t = 0; t < NET_TENSORS; t++)
        MPI_Bcast(net.tensor[t].value, (int)net.tensor[t].count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    int worse = train(&net, &o, &faults, rank, size);
    uint64_t checksum = net_checksum(&net);
    int differing = differing_ranks(checksum);
    if (rank == 0)
        printf("parameters %s on %d ranks, checksum %016llx%s\n",
               differing ? "DIFFER" : "identical", size, (unsigned long long)checksum,
               worse ? "; the loss has NOT fallen" : "");
    net_release(&net);
    MPI_Finalize();
    rt_faults_end(&faults);
    return differing || worse;
}
