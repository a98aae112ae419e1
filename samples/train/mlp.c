/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlp - trains a small network data-parallel on the runtime: every rank has the whole network and
 * its own data; gradients are averaged over all ranks, each as soon as its layer has it.
 * Prints the loss and, at the end, whether all ranks have the same parameters; exit 1 if not, or if
 * the loss hasn't fallen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "options.h"
#include "rt-fault.h"
#include "rt-nvtx.h"
#include "rt.h"

static void die(const char *what, const char *why)
{
    fprintf(stderr, "mlp: rank %d: %s: %s\n", rt_rank(), what, why);
    exit(1);
}

static void wait_for(int handle)
{
    if (handle < 0 || rt_wait(handle) < 0)
        die("allreduce", rt_error());
}

static void share_parameters(struct net *net)
{
    struct rt_parameter parameters[NET_TENSORS];
    for (int t = 0; t < NET_TENSORS; t++)
        parameters[t] = (struct rt_parameter){net->tensor[t].name, net->tensor[t].value,
                                              net->tensor[t].count, RT_FLOAT32};
    if (rt_broadcast_parameters(parameters, NET_TENSORS, 0, NULL) < 0)
        die("broadcast of the parameters", rt_error());
}

static int average_gradient(struct net_tensor *t)
{
    char name[64];
    snprintf(name, sizeof name, "gradient.%s", t->name);
    return rt_allreduce_async(name, t->gradient, t->gradient, t->count, RT_FLOAT32, RT_AVG, 1, 1,
                              NULL);
}

static void begin(struct rt_faults *faults, const char *phase)
{
    rt_nvtx_push(phase);
    rt_faults_phase_begin(faults, phase);
}

static void end(struct rt_faults *faults)
{
    rt_faults_phase_end(faults);
    rt_nvtx_pop();
}

/* One step; returns the loss of this rank's batch. */
static float step(struct net *net, struct rt_faults *faults, float rate)
{
    int handles[NET_TENSORS];
    begin(faults, "load");
    net_load(net);
    end(faults);

    begin(faults, "forward");
    float loss = net_forward(net);
    end(faults);

    begin(faults, "backward");
    for (int i = NET_LAYERS - 1; i >= 0; i--) {
        net_backward(net, i);
        rt_faults_part(faults);
        handles[2 * i] = average_gradient(&net->tensor[2 * i]);
        handles[2 * i + 1] = average_gradient(&net->tensor[2 * i + 1]);
    }
    end(faults);

    begin(faults, "synchronize");
    for (int t = NET_TENSORS - 1; t >= 0; t--)
        wait_for(handles[t]);
    end(faults);

    begin(faults, "optimizer");
    net_descend(net, rate);
    end(faults);
    return loss;
}

static float mean_over_ranks(float value)
{
    wait_for(rt_allreduce_async("loss", &value, &value, 1, RT_FLOAT32, RT_AVG, 1, 1, NULL));
    return value;
}

/* Every rank's words against those of rank 0: what differs, summed. */
static int differing_ranks(uint64_t checksum)
{
    int32_t words[2], differs;
    memcpy(words, &checksum, sizeof words);
    int handle = rt_broadcast_async("checksum", words, 2, RT_INT32, 0, NULL);
    wait_for(handle);
    differs = memcmp(words, &checksum, sizeof words) != 0;
    wait_for(rt_allreduce_async("differs", &differs, &differs, 1, RT_INT32, RT_SUM, 1, 1, NULL));
    return differs;
}

static int train(struct net *net, const struct train_options *o, struct rt_faults *faults)
{
    float first = 0, last = 0;
    for (int s = 0; s < o->steps; s++) {
        rt_faults_step(faults, s);
        rt_nvtx_push("step");
        last = step(net, faults, o->rate);
        rt_nvtx_pop();
        if (s == 0 || s == o->steps - 1 || s % 10 == 9) {
            last = mean_over_ranks(last);
            first = s == 0 ? last : first;
            if (rt_rank() == 0)
                printf("step %d loss %.4f\n", s, last);
        }
    }
    return o->steps >= 10 && !(last < first);
}

static const struct rt_fault_phase phases[] = {
    {"load", RT_FAULT_PHASE_LOAD},         {"forward", RT_FAULT_PHASE_COMPUTE},
    {"backward", RT_FAULT_PHASE_COMPUTE},  {"synchronize", RT_FAULT_PHASE_OTHER},
    {"optimizer", RT_FAULT_PHASE_COMPUTE}, {NULL, RT_FAULT_PHASE_OTHER},
};

int main(int argc, char **argv)
{
    static const struct rt_faults_program program = {
        .name = "mlp",
        .plays = RT_FAULT_BITS_TIME | RT_FAULT_BITS_WORK | RT_FAULT_BITS_SOCKETS |
                 RT_FAULT_BITS_RUNTIME | RT_FAULT_BIT(SLOW_LOADER) | RT_FAULT_BIT(COMM_STEALS_CPU),
        .phases = phases,
    };
    struct train_options o = train_options_read(argc, argv);
    struct rt_faults faults;
    struct net net;
    char message[RT_FAULT_MESSAGE_BYTES];
    if (rt_faults_begin(&faults, &program, message, sizeof message)) {
        fprintf(stderr, "mlp: %s\n", message);
        return 2;
    }
    if (rt_init() < 0)
        die("start", rt_error());
    if (net_init(&net, o.size, o.batch, o.seed, rt_rank()))
        die("network", "no memory");
    share_parameters(&net);
    int worse = train(&net, &o, &faults);
    uint64_t checksum = net_checksum(&net);
    int differing = differing_ranks(checksum);
    if (rt_rank() == 0)
        printf("parameters %s on %d ranks, checksum %016llx%s\n",
               differing ? "DIFFER" : "identical", rt_size(), (unsigned long long)checksum,
               worse ? "; the loss has NOT fallen" : "");
    net_release(&net);
    if (rt_shutdown() < 0)
        die("shutdown", rt_error());
    rt_faults_end(&faults);
    return differing || worse;
}
