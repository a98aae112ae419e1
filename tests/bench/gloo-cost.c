/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo-cost.c - what a recorded call of Gloo costs, beside the least that could record it: as
 * record-cost.c, by a Gloo that does nothing (e2e/gloo/other-gloo.c) and options as Gloo lays them
 * out.
 *
 *   LD_PRELOAD=libringscope.so gloo-cost [ROUNDS]
 *
 * Exit status 1: the call was not recorded. There is no bar: Gloo's own calls take microseconds.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 4096       /* a round; a quarter of the ring at most */
#define SLOTS (1u << 15) /* as tracer/threads.c has */

void _ZN4gloo7ContextC2Eiii(void *self, int rank, int size, int base);
void _ZN4gloo9transport3tcp13UnboundBufferC1ERKSt10shared_ptrINS1_7ContextEEPvm(void *self,
                                                                                const void *context,
                                                                                void *memory,
                                                                                size_t bytes);
void _ZN4gloo9allreduceERKNS_16AllreduceOptionsE(const void *options);
typedef void allreduce_fn(const void *options);

struct slot { /* 48 bytes, as struct rs_event */
    uint32_t op, peer;
    uint64_t start, end, count;
    uint32_t comm, dtype, seq, redop;
};

static allreduce_fn *volatile real;
static struct slot *ring;
static volatile uint64_t head;
static uint64_t options[32], context[8], buffer[4], data[8], buffers[1];

static uint64_t stamp(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
#error "no time stamp counter known"
#endif
}

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
        uint64_t end = stamp(), at = head;
        ring[at & (SLOTS - 1)] = (struct slot){1, 2, start, end, 1, 3, 4, (uint32_t)i, 5};
        head = at + 1;
    }
}

static void bare(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++)
        call(options);
}

static double ns_per_call(void (*loop)(void))
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    loop();
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
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
    double *ns[3];
    void *library = dlopen("libother-gloo.so", RTLD_LAZY | RTLD_NOLOAD);
    real = library ? (allreduce_fn *)dlsym(library, "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE")
                   : NULL;
    ring = aligned_alloc(4096, SLOTS * sizeof *ring);
    if (rounds < 1 || !real || !ring)
        return 2;
    memset(ring, 1, SLOTS * sizeof *ring);
    for (int k = 0; k < 3; k++)
        if (!(ns[k] = malloc((size_t)rounds * sizeof **ns)))
            return 2;
    fill_options();
    for (int i = -3; i < rounds; i++) /* the first three warm up */
        for (int k = 0; k < 3; k++) {
            nanosleep(&(struct timespec){0, 10000000}, NULL); /* the ring drains */
            double v = ns_per_call(loops[k]);
            if (i >= 0)
                ns[k][i] = v;
        }
    for (int k = 0; k < 3; k++)
        qsort(ns[k], (size_t)rounds, sizeof *ns[k], compare);
    double all = ns[0][rounds / 2], least = ns[1][rounds / 2], call = ns[2][rounds / 2];
    if ((all - call) < 0.5 * (least - call)) {
        fprintf(stderr, "gloo-cost: nothing was recorded: is libringscope.so preloaded?\n");
        return 1;
    }
    printf("traced %.1f ns, two stamps and 48 bytes %.1f ns, the call alone %.1f ns\n", all, least,
           call);
    printf("gloo-cost: ratio %.3f with the call taken off both\n", (all - call) / (least - call));
    return 0;
}
