/* SPDX-License-Identifier: Apache-2.0 */
/* A program with an MPI of its own linked in, as -static or an .a gives it: nothing preloaded sees
 * its calls. "idle": it doesn't use it. */
#include <string.h>

int MPI_Init(int *argc, char ***argv);
int PMPI_Initialized(int *flag);

static int begun;

__attribute__((noinline)) int MPI_Init(int *argc, char ***argv)
{
    begun = *argc > 0 && **argv != NULL;
    return 0;
}

__attribute__((used)) int PMPI_Initialized(int *flag)
{
    *flag = begun;
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "idle") == 0 ? 0 : MPI_Init(&argc, &argv);
}
