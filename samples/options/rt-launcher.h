/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-launcher.h - how the examples in the programs' --help start them: by what their names end in.
 */
#ifndef RT_LAUNCHER_H
#define RT_LAUNCHER_H

#include <string.h>

static inline const char *rt_launcher(const char *program)
{
    static const char *const of_ending[][2] = {
        {"-tcp", "rt-run -n 4"},
        {"-mpich", "mpiexec.mpich -n 4"},
        {"nccl-ddp", "NCCL_DDP_ID=$(mktemp -u) mpirun -np 4"},
    };
    const size_t n = strlen(program);
    for (int i = 0; i < 3; i++) {
        const size_t ending = strlen(of_ending[i][0]);
        if (n >= ending && strcmp(program + n - ending, of_ending[i][0]) == 0)
            return of_ending[i][1];
    }
    return "mpirun -np 4";
}

#endif
