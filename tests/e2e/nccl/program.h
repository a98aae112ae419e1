/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - what the programs that call NCCL share. */
#ifndef NCCL_TESTS_PROGRAM_H
#define NCCL_TESTS_PROGRAM_H

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ID_LOOKS 20000 /* 2 ms apart */

/* A call of NCCL's or CUDA's that doesn't succeed ends the program. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        const int must_status = (int)(call);                                                       \
        if (must_status != 0) {                                                                    \
            fprintf(stderr, "%s:%d: %s: status %d\n", __FILE__, __LINE__, #call, must_status);     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Rank 0 makes one, the others find it in the file. */
static inline ncclUniqueId exchange_id(int rank, const char *path)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    char draft[4096];
    ncclUniqueId id;
    FILE *f = NULL;
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
        snprintf(draft, sizeof draft, "%s.new", path);
        f = fopen(draft, "w");
        if (!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f) != 0 || rename(draft, path) != 0)
            exit(1);
        return id;
    }
    for (int i = 0; i < ID_LOOKS && !(f = fopen(path, "r")); i++)
        nanosleep(&pause, NULL);
    if (!f || fread(&id, sizeof id, 1, f) != 1)
        exit(1);
    fclose(f);
    return id;
}

#endif
