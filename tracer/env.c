/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the environment of a traced process: one table of RINGSCOPE_*, and what launchers tell.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env-table.h"
#include "state.h"

struct rs_env rs_env;

const struct rs_env_row rs_env_table[] = {
    {"RINGSCOPE_DIR", "path", "ringscope-<program>-<run id>",
     "the run folder; need not be shared between hosts"},
    {"RINGSCOPE_TRACE", "list", "nccl,mpi,nvtx", "what to record"},
    {"RINGSCOPE_EXPORT", "list", "chrome,sqlite",
     "what each process makes of its capture at a clean end, or none"},
    {"RINGSCOPE_RUN_ID", "text", "from the launcher",
     "equal on all ranks of a run, different between runs"},
    {"RINGSCOPE_RANK", "number", "from the launcher, MPI or NCCL", "this process's rank"},
    {"RINGSCOPE_HOST", "text", "the host's name", "the host this rank counts as being on"},
    {"RINGSCOPE_VERBOSE", "number", "0", "1: one line on stderr where the capture is made"},
#ifdef RS_TEST_CLOCK
    {"RINGSCOPE_TEST_CLOCK", "ns[,ppm]", "none", "test builds: this clock's offset and drift"},
#endif
    {NULL, NULL, NULL, NULL},
};

/* Launchers' variables, the first that is set counts. */
static const char *const rank_names[] = {"RINGSCOPE_RANK",
                                         "OMPI_COMM_WORLD_RANK",
                                         "PMIX_RANK",
                                         "PMI_RANK",
                                         "SLURM_PROCID",
                                         "RANK",
                                         NULL};
static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
                                         "WORLD_SIZE", NULL};
static const char *const local_names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                          "SLURM_LOCALID", "LOCAL_RANK", NULL};

static const char *first_set(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return value;
    }
    return NULL;
}

static int32_t number_of(const char *const *names)
{
    const char *text = first_set(names);
    char *end;
    if (!text)
        return -1;
    long v = strtol(text, &end, 10);
    return *end || end == text || v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
}

const char *rs_env_program(void)
{
    static char path[RS_RING_PATH_MAX];
    ssize_t n = path[0] ? 0 : readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0)
        return program_invocation_short_name;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Letters, digits, dot, dash and underscore; the rest becomes a dash: ids stand in file names. */
static void copy_id(char *ret, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++) {
        char c = text[n];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '_' || c == '-';
        ret[n] = plain ? c : '-';
    }
    ret[n] = 0;
}

/* Hydra gives every run of one mpiexec an own PMI port or key-value space; its proxies' parent is
 * not shared between hosts, so it only serves where nothing better is there. */
static void find_run_id(void)
{
    char text[240];
    const char *a, *b;
    if ((a = getenv("RINGSCOPE_RUN_ID")) && *a)
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), a);
    else if ((a = getenv("PMIX_NAMESPACE")) && *a) {
        /* A job number that comes again, and a key that is drawn for each job. */
        b = getenv("OMPI_MCA_orte_precondition_transports");
        snprintf(text, sizeof(text), "%s%s%.8s", a, b ? "-" : "", b ? b : "");
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("OMPI_MCA_ess_base_jobid")) && *a)
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), a);
    else if ((a = getenv("SLURM_JOB_ID")) && *a) {
        b = getenv("SLURM_STEP_ID");
        snprintf(text, sizeof(text), "slurm-%s.%s", a, b ? b : "0");
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("TORCHELASTIC_RUN_ID")) && *a && strcmp(a, "none") != 0) {
        b = getenv("TORCHELASTIC_RESTART_COUNT");
        snprintf(text, sizeof(text), "torch-%s.%s", a, b ? b : "0");
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("MASTER_ADDR")) && (b = getenv("MASTER_PORT"))) {
        snprintf(text, sizeof(text), "%s-%s", a, b);
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if (getenv("PMI_RANK") || getenv("PMI_FD")) {
        a = getenv("HYDI_CONTROL_FD");
        snprintf(text, sizeof(text), "hydra-%d%s%s", (int)getppid(), a ? "-" : "", a ? a : "");
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else {
        snprintf(rs_env.run_id, sizeof(rs_env.run_id), "pid%d", (int)getpid());
    }
}

static void find_host(void)
{
    if (gethostname(rs_env.machine, sizeof(rs_env.machine) - 1) != 0)
        snprintf(rs_env.machine, sizeof(rs_env.machine), "localhost");
    const char *host = getenv("RINGSCOPE_HOST");
    copy_id(rs_env.host, sizeof(rs_env.host), host && *host ? host : rs_env.machine);
    struct stat st;
    unsigned long inode = stat("/proc/self/ns/time", &st) == 0 ? (unsigned long)st.st_ino : 0;
    snprintf(rs_env.domain, sizeof(rs_env.domain), "%s/%lu%s%s", rs_env.machine, inode,
             rs_env.test_clock[0] ? "/" : "", rs_env.test_clock);
}

static void find_dir(void)
{
    char cwd[RS_RING_PATH_MAX / 2] = "/tmp", name[RS_RING_PATH_MAX / 2];
    const char *dir = getenv("RINGSCOPE_DIR");
    if (!dir || !*dir) {
        snprintf(name, sizeof(name), "ringscope-%.120s-%.200s", rs_env_program(), rs_env.run_id);
        dir = name;
    }
    if (dir[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        snprintf(rs_env.dir, sizeof(rs_env.dir), "%s", dir);
    else
        snprintf(rs_env.dir, sizeof(rs_env.dir), "%s/%.500s", cwd, dir);
}

static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0))
            return true;
    return false;
}

static void find_parts(void)
{
    static const struct {
        const char *name;
        uint32_t part;
    } parts[] = {{"nccl", RS_PART_NCCL}, {"mpi", RS_PART_MPI}, {"nvtx", RS_PART_NVTX}};
    const char *list = getenv("RINGSCOPE_TRACE");
    rs_env.parts = 0;
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!list || !*list || lists(list, parts[i].name))
            rs_env.parts |= parts[i].part;
    const char *export = getenv("RINGSCOPE_EXPORT");
    rs_env.export_chrome = !export || lists(export, "chrome");
    rs_env.export_sqlite = !export || lists(export, "sqlite");
}

void rs_env_read(void)
{
    const char *verbose = getenv("RINGSCOPE_VERBOSE");
    rs_env.verbose = verbose ? atoi(verbose) : 0;
#ifdef RS_TEST_CLOCK
    const char *shift = getenv("RINGSCOPE_TEST_CLOCK");
    snprintf(rs_env.test_clock, sizeof(rs_env.test_clock), "%s", shift ? shift : "");
#endif
    rs_env.rank = number_of(rank_names);
    rs_env.world_size = number_of(size_names);
    rs_env.local_rank = number_of(local_names);
    find_run_id();
    find_host();
    find_parts();
    find_dir();
}
