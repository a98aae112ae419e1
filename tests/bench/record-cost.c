/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-cost.c - what a recorded blocking call of MPI costs (cost.h).
 *
 *   LD_PRELOAD=libringscope.so record-cost [ROUNDS]
 *   LD_PRELOAD=libringscope.so RINGSCOPE_START=1000000 record-cost ROUNDS off
 *
 * The bar (1.25) holds for the traced call over the least, with the call itself taken off both: the
 * stricter way to put it. Exit status 1: the call was not recorded; with "off", where capture is
 * switched off: it was.
 */
#include <dlfcn.h>
#include <mpi.h>

#include "cost.h"

#define BAR 1.25

typedef int allreduce_fn(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static allreduce_fn *volatile real;
static int in, out;

static void traced(void)
{
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void stamped(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++) {
        uint64_t start = stamp();
        call(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        store(start, stamp(), (uint32_t)i);
    }
}

static void bare(void)
{
    allreduce_fn *call = real;
    for (int i = 0; i < CALLS; i++)
        call(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 101;
    void (*const loops[3])(void) = {traced, stamped, bare};
    struct cost cost;
    void *library = dlopen("libfake-mpi.so", RTLD_LAZY | RTLD_NOLOAD);
    real = library ? (allreduce_fn *)dlsym(library, "PMPI_Allreduce") : NULL;
    if (rounds < 1 || !real)
        return 2;
    MPI_Init(&argc, &argv);
    if (!measure_cost(loops, rounds, &cost))
        return 2;
    MPI_Finalize();
    if (argc > 2 && strcmp(argv[2], "off") == 0) {
        printf("record-cost: %.1f ns a call while capture is off\n", cost.traced - cost.bare);
        return cost.ratio >= 0.5;
    }
    if (cost.ratio < 0.5) {
        fprintf(stderr, "record-cost: nothing was recorded: is libringscope.so preloaded, and does "
                        "fake-mpi.c have what tracer/mpi/flavour.h asks for?\n");
        return 1;
    }
    printf("record-cost: ratio %.3f with the call taken off both, %.3f with it; bar %.2f: %s\n",
           cost.ratio, cost.traced / cost.stamped, BAR, cost.ratio <= BAR ? "met" : "missed");
    return 0;
}
