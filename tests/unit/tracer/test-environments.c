/* SPDX-License-Identifier: Apache-2.0 */
/* Rank, size, place on the host and run id, from the environments that launchers make, and those
 * that one makes in another's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* As a task of srun's on the second of 2 hosts, and in an MPI of PMIx there. */
#define SRUN                                                                                       \
    "SLURM_JOB_ID=77 SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 "        \
    "SLURM_LOCALID=0 "
#define SRUN_PMIX SRUN "PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.77.3 "
/* The script of a batch job of 8 tasks. */
#define BATCH "SLURM_JOB_ID=77 SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0 "
#define TORCHRUN                                                                                   \
    "RANK=13 WORLD_SIZE=16 LOCAL_RANK=5 MASTER_ADDR=a MASTER_PORT=9 TORCHELASTIC_RUN_ID=none "
#define OPEN_MPI                                                                                   \
    "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=5 "      \
    "PMIX_NAMESPACE=314 "
#define HYDRA "PMI_RANK=5 PMI_SIZE=8 PMI_FD=6 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4 "
#define HOROVOD                                                                                    \
    "HOROVOD_RANK=5 HOROVOD_SIZE=8 HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=4 "                     \
    "HOROVOD_CROSS_RANK=1 "                                                                        \
    "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1 HOROVOD_GLOO_RENDEZVOUS_PORT=4567 "
#define FLUX "FLUX_JOB_ID=f3x FLUX_JOB_SIZE=8 FLUX_TASK_RANK=5 FLUX_TASK_LOCAL_ID=1 "

static const struct {
    const char *name, *variables;
    int rank, size, local;
    const char *run_id; /* NULL: whatever it is */
} cases[] = {
    {"nothing", "", -1, -1, -1, NULL},
    {"rt-run", "RT_RANK=5 RT_SIZE=8 RT_LOCAL_RANK=1 RT_JOB=ab", 5, 8, 1, "rt-ab"},
    {"rt-run in srun", SRUN_PMIX "RT_RANK=5 RT_SIZE=8 RT_LOCAL_RANK=1 RT_JOB=ab", 5, 8, 1, "rt-ab"},
    {"Open MPI", OPEN_MPI, 5, 8, 1, "314"},
    {"Open MPI's daemons are srun's", SRUN_PMIX OPEN_MPI, 5, 8, 1, "314"},
    {"Open MPI in a batch script", BATCH OPEN_MPI, 5, 8, 1, "314"},
    {"Hydra", HYDRA, 5, 8, 1, NULL},
    {"Hydra's proxies are srun's", SRUN HYDRA, 5, 8, 1, "slurm-77.3"},
    {"Hydra in srun's PMIx", SRUN_PMIX HYDRA, 5, 8, 1, NULL},
    {"MVAPICH", "MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=8 MV2_COMM_WORLD_LOCAL_RANK=1", 5, 8, 1,
     NULL},
    {"srun", SRUN, 1, 2, 0, "slurm-77.3"},
    {"srun of a part of the job",
     "SLURM_JOB_ID=77 SLURM_STEP_ID=4 SLURM_PROCID=1 SLURM_NTASKS=8 "
     "SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1",
     1, 2, 1, "slurm-77.4"},
    {"srun of old", "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0", 1, 2, 0, NULL},
    {"srun by PMIx", SRUN_PMIX, 1, 2, 0, "slurm.pmix.77.3"},
    {"srun by PMI-2", SRUN "PMI_RANK=1 PMI_SIZE=2 PMI_FD=6", 1, 2, 0, "slurm-77.3"},
    {"PMIx of another job than srun's", SRUN "PMIX_RANK=5 PMIX_NAMESPACE=x", 5, -1, -1, "x"},
    {"torchrun", TORCHRUN, 13, 16, 5, "a-9"},
    {"torchrun in srun", SRUN TORCHRUN, 13, 16, 5, "slurm-77.3"},
    {"torchrun in srun's PMIx", SRUN_PMIX TORCHRUN, 13, 16, 5, NULL},
    {"torchrun in mpirun", OPEN_MPI TORCHRUN, 13, 16, 5, NULL},
    {"torchrun in Hydra", HYDRA TORCHRUN, 13, 16, 5, NULL},
    {"torchrun in jsrun",
     "JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=2 JSM_NAMESPACE_LOCAL_RANK=0 " TORCHRUN, 13, 16, 5,
     NULL},
    {"torchrun in Flux", FLUX TORCHRUN, 13, 16, 5, "flux-f3x"},
    {"workers without torchrun in srun", SRUN "RANK=13 WORLD_SIZE=16 LOCAL_RANK=5", 13, 16, 5,
     NULL},
    {"a script's own RANK, for all tasks", SRUN "RANK=0 WORLD_SIZE=2", 1, 2, 0, NULL},
    {"a container's RANK", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=9", 1, 2, -1, "a-9"},
    {"mpirun in a container with a RANK", "RANK=1 WORLD_SIZE=2 " OPEN_MPI, 5, 8, 1, "314"},
    {"horovodrun", HOROVOD, 5, 8, 1, "horovod-10.0.0.1-4567"},
    {"horovodrun in srun", SRUN_PMIX HOROVOD, 5, 8, 1, "horovod-10.0.0.1-4567"},
    {"jsrun",
     "JSM_NAMESPACE_RANK=5 JSM_NAMESPACE_SIZE=8 JSM_NAMESPACE_LOCAL_RANK=1 PMIX_RANK=5 "
     "PMIX_NAMESPACE=3 LSB_JOBID=9",
     5, 8, 1, "3"},
    {"Flux", FLUX "PMI_RANK=5 PMI_SIZE=8 PMI_FD=6", 5, 8, 1, "flux-f3x"},
    {"Flux without PMI", FLUX, 5, 8, 1, "flux-f3x"},
    {"PALS", "PALS_RANKID=5 PALS_LOCAL_RANKID=1 PMI_RANK=5 PMI_SIZE=8", 5, 8, 1, NULL},
    {"no number", "RT_RANK=x OMPI_COMM_WORLD_RANK= PMI_RANK=5 PMI_SIZE=8", 5, 8, -1, NULL},
    {"a place alone", "LOCAL_RANK=1", -1, -1, 1, NULL},
    {"a rank that is told", "RINGSCOPE_RANK=3 RINGSCOPE_RUN_ID=id " OPEN_MPI, 3, 8, 1, "id"},
};

static void set_all(const char *variables)
{
    char text[1000], *at = NULL;
    assert_true(strlen(variables) < sizeof(text));
    strcpy(text, variables);
    clearenv();
    for (char *pair = strtok_r(text, " ", &at); pair; pair = strtok_r(NULL, " ", &at)) {
        char *value = strchr(pair, '=');
        assert_non_null(value);
        *value++ = 0;
        setenv(pair, value, 1);
    }
}

static void read_environmentOfEachLauncher_isTheInnermosts(void **state)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        memset(&rs_env, 0, sizeof(rs_env));
        set_all(cases[i].variables);
        rs_env_read();
        if (rs_env.rank == cases[i].rank && rs_env.world_size == cases[i].size &&
            rs_env.local_rank == cases[i].local &&
            (!cases[i].run_id || strcmp(rs_env.run_id, cases[i].run_id) == 0))
            continue;
        wrong++;
        print_error("%s: rank %d of %d, %d on its host, run %s; expected %d of %d, %d, %s\n",
                    cases[i].name, rs_env.rank, rs_env.world_size, rs_env.local_rank, rs_env.run_id,
                    cases[i].rank, cases[i].size, cases[i].local,
                    cases[i].run_id ? cases[i].run_id : "any");
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_environmentOfEachLauncher_isTheInnermosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
