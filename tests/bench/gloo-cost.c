/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo-cost.c - what a recorded call of Gloo costs (cost.h), by a Gloo that does nothing
 * (e2e/gloo/other-gloo.c) and options as Gloo lays them out.
 *
 *   LD_PRELOAD=libringscope.so gloo-cost [ROUNDS]
 *
 * Exit status 1: the call was not recorded. There is no bar: Gloo's own calls take microseconds.
 */
#include <dlfcn.h>

#include "cost.h"

void _ZN4gloo7ContextC2Eiii(void *self, int rank, int size, int base);
void _ZN4gloo9transport3tcp13UnboundBufferC1ERKSt10shared_ptrINS1_7ContextEEPvm(void *self,
                                                                                const void *context,
                                                                                void *memory,
                                                                                size_t bytes);
void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const void *options);
typedef void allreduce_fn(const void *options);

static allreduce_fn *volatile real;
static uint64_t options[32], context[8], buffer[4], data[8], buffers[1];

static void traced(void)
{
    for (int i = 0; i < CALLS; i++)
        _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(options);
}

static void stamped(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++) {
        uint64_t start = stamp();
        call(options);
        store(start, stamp(), (uint32_t)i);
    }
}

static void bare(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++)
        call(options);
}

/* One list of one buffer of 8 elements of 8 bytes, as class AllreduceOptions has them. */
static void fill_options(void)
{
    _ZN4gloo7ContextC2Eiii(context, 0, 2, 2);
    _ZN4gloo9transport3tcp13UnboundBufferC1ERKSt10shared_ptrINS1_7ContextEEPvm(buffer, NULL, data,
                                                                               sizeof data);
    buffers[0] = (uintptr_t)buffer;
    options[0] = (uintptr_t)context;
    options[7] = (uintptr_t)buffers;
    options[8] = options[9] = (uintptr_t)(buffers + 1);
    options[10] = options[11] = 8;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 101;
    void (*const loops[3])(void) = {traced, stamped, bare};
    struct cost cost;
    void *library = dlopen("libother-gloo.so", RTLD_LAZY | RTLD_NOLOAD);
    real = library ? (allreduce_fn *)dlsym(library, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE")
                   : NULL;
    if (rounds < 1 || !real)
        return 2;
    fill_options();
    if (!measure_cost(loops, rounds, &cost))
        return 2;
    if (cost.ratio < 0.5) {
        fprintf(stderr, "gloo-cost: nothing was recorded: is libringscope.so preloaded?\n");
        return 1;
    }
    printf("gloo-cost: ratio %.3f with the call taken off both\n", cost.ratio);
    return 0;
}
