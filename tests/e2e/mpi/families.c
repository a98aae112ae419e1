/* SPDX-License-Identifier: Apache-2.0 */
/* usage: families FOLDER: writes FOLDER/out.RANK and FOLDER/calls.RANK */
#include "families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int rank, size;
const char *folder;

static FILE *out;
static struct {
    const char *name;
    int times;
} calls[512];
static int faults;

void count_call(const char *name)
{
    int i = 0;
    while (calls[i].name && strcmp(calls[i].name, name) != 0)
        i++;
    calls[i].name = name;
    calls[i].times++;
}

void expect_success(const char *name, int result)
{
    if (result == MPI_SUCCESS)
        return;
    fprintf(stderr, "%s returned %d\n", name, result);
    exit(1);
}

void check(const char *what, long long got, long long expected)
{
    fprintf(out, "%s %lld\n", what, got);
    if (got == expected)
        return;
    fprintf(stderr, "rank %d: %s is %lld, not %lld\n", rank, what, got, expected);
    faults++;
}

bool poll_again(bool done)
{
    if (!done)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return !done;
}

int element(int r, int i)
{
    return (r + 1) * 1000 + (i + 1) * 7;
}

static FILE *open_file(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

static void write_calls(void)
{
    FILE *f = open_file("calls");
    for (int i = 0; calls[i].name; i++)
        fprintf(f, "%s %d\n", calls[i].name, calls[i].times);
    fclose(f);
}

int main(int argc, char **argv)
{
    int provided, flag;
    if (argc != 2)
        return 2;
    folder = argv[1];
    MPI_Initialized(&flag);
    CALL(Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = open_file("out");
    CHECK("initialized before", flag, 0);
    collectives_blocking(MPI_COMM_WORLD);
    collectives_started(MPI_COMM_WORLD);
#if FAMILIES_PERSISTENT
    collectives_persistent(MPI_COMM_WORLD);
#endif
    neighbors(MPI_COMM_WORLD);
    messages(MPI_COMM_WORLD);
    completions(MPI_COMM_WORLD);
    windows(MPI_COMM_WORLD);
    files(MPI_COMM_WORLD);
#if MPI_LARGE_COUNTS
    collectives_blocking_large(MPI_COMM_WORLD);
    collectives_started_large(MPI_COMM_WORLD);
    collectives_persistent_large(MPI_COMM_WORLD);
    neighbors_large(MPI_COMM_WORLD);
    messages_large(MPI_COMM_WORLD);
    completions_large(MPI_COMM_WORLD);
    windows_large(MPI_COMM_WORLD);
    files_large(MPI_COMM_WORLD);
#endif
    communicators();
    CALL(Finalize);
    MPI_Finalized(&flag);
    CHECK("finalized after", flag, 1);
    fclose(out);
    write_calls();
    return faults ? 1 : 0;
}
