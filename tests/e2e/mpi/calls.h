/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - a test program's own count of the calls that it makes, for the comparison with what was
 * recorded. Who includes it has expect(good, what), which ends the program.
 */
#ifndef RS_TEST_CALLS_H
#define RS_TEST_CALLS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *name;
    int times;
} calls[128];

static void count_call(const char *name)
{
    int i = 0;
    while (calls[i].name && strcmp(calls[i].name, name) != 0)
        i++;
    calls[i].name = name;
    calls[i].times++;
}

#define CALL(name, ...)                                                                            \
    (count_call("MPI_" #name), expect(MPI_##name(__VA_ARGS__) == MPI_SUCCESS, "MPI_" #name))

/* FOLDER/WHAT.RANK: a name and how often, a line each. */
static bool write_calls(const char *folder, const char *what, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, what, rank);
    FILE *f = fopen(path, "w");
    for (int i = 0; f && calls[i].name; i++)
        fprintf(f, "%s %d\n", calls[i].name, calls[i].times);
    return f && fclose(f) == 0;
}

#endif
