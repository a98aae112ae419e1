/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the environment of a traced process: one table of RINGSCOPE_*, and what launchers tell.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"
#include "state.h"
#include "window.h"

#define PATH_LONGEST (RS_RING_PATH_MAX / 2 - 1)
#define TEXT_LONGEST 200 /* host and run id are parts of file names */

struct rs_env rs_env;

static const struct {
    const char *name, *words, *fallback;
    enum rs_setting_type type;
} settings[] = {
#define ROW(name, type, words, fallback, help)                                                     \
    {RS_SETTING_PREFIX #name, words, fallback, RS_SETTING_##type},
    RS_SETTINGS(ROW) RS_SETTINGS_OF_TESTS(ROW)
#undef ROW
};

/* ---- settings ---- */

/* What is wrong with a setting, for the capture's META: name, NUL, text, NUL. */
__attribute__((format(printf, 3, 4))) static void note(const char *name, size_t name_bytes,
                                                       const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t bytes = n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1;
    if (n < 0 || rs_env.notes_bytes + name_bytes + bytes + 2 > sizeof(rs_env.notes))
        return;
    char *p = rs_env.notes + rs_env.notes_bytes;
    memcpy(p, name, name_bytes);
    p[name_bytes] = 0;
    memcpy(p + name_bytes + 1, text, bytes + 1);
    rs_env.notes_bytes += name_bytes + bytes + 2;
}

static void note_wrong(enum rs_setting i, const char *value, const char *expected)
{
    const char *name = settings[i].name;
    note(name, strlen(name), "%s=%.60s%s: expected %s; the default holds (%s)", name, value,
         strlen(value) > 60 ? "..." : "", expected, settings[i].fallback);
}

static bool check_list(enum rs_setting i, const char *value)
{
    const char *unknown, *name = settings[i].name;
    size_t n;
    uint32_t found = rs_words_find(settings[i].words, value, &unknown, &n);
    if (unknown)
        note(name, strlen(name), "%s=%.60s%s: unknown '%.*s'; known: %s; %s", name, value,
             strlen(value) > 60 ? "..." : "", n < 30 ? (int)n : 30, unknown, settings[i].words,
             found ? "the rest counts" : "the default holds");
    return found != 0;
}

static int32_t number_in(const char *text)
{
    char *end;
    long v = strtol(text, &end, 10);
    return *end || end == text || v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
}

/* "1500", "64K", "2M", "1G"; 0 where it is none, or less than a capture needs. */
static uint64_t bytes_in(const char *text)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (errno || text[0] < '0' || text[0] > '9' || end[unit ? 1 : 0] || v > UINT64_MAX >> shift)
        return 0;
    return v << shift >= RS_SIZE_LIMIT_LEAST ? v << shift : 0;
}

/* "60", "60-90.5". */
static bool window_in(const char *text, double *ret_start, double *ret_stop)
{
    char *end;
    *ret_stop = 0;
    *ret_start = strtod(text, &end);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
        *ret_stop = strtod(end + 1, &end);
        if (*ret_stop <= *ret_start)
            return false;
    }
    return text[0] >= '0' && text[0] <= '9' && !*end && *ret_start <= 1e9 && *ret_stop <= 1e9;
}

static int signal_in(const char *text)
{
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    if (strcmp(text, "USR1") == 0)
        return SIGUSR1;
    if (strcmp(text, "USR2") == 0)
        return SIGUSR2;
    int32_t n = number_in(text);
    return n >= SIGRTMIN && n <= SIGRTMAX ? n : 0;
}

static bool check(enum rs_setting i, const char *value)
{
    double offset, other;
    switch (settings[i].type) {
    case RS_SETTING_list:
        return check_list(i, value);
    case RS_SETTING_number:
        if (number_in(value) >= 0)
            return true;
        note_wrong(i, value, "a number from 0");
        return false;
    case RS_SETTING_bytes:
        if (bytes_in(value))
            return true;
        note_wrong(i, value, "bytes, from 64K; K, M or G may follow");
        return false;
    case RS_SETTING_window:
        if (window_in(value, &offset, &other))
            return true;
        note_wrong(i, value, "seconds, as 60 or 60-90.5");
        return false;
    case RS_SETTING_steps:
        if (strlen(value) < sizeof(rs_env.steps) && rs_window_steps_are_right(value))
            return true;
        note_wrong(i, value, "numbers of steps, as 10-12,50 or 100-");
        return false;
    case RS_SETTING_signal:
        if (signal_in(value))
            return true;
        note_wrong(i, value, "USR1, USR2, or a number from 34 to 64");
        return false;
    case RS_SETTING_clock:
        if (sscanf(value, "%lf", &offset) == 1)
            return true;
        note_wrong(i, value, "ns[,ppm]");
        return false;
    case RS_SETTING_path:
        if (strlen(value) <= PATH_LONGEST)
            return true;
        note_wrong(i, value, "a shorter path");
        return false;
    case RS_SETTING_text:
        if (strlen(value) <= TEXT_LONGEST)
            return true;
        note_wrong(i, value, "a shorter text");
        return false;
    }
    return false;
}

/* What is not in the table: a slip of the pen would else look like the default. */
static void note_unknown_names(void)
{
#define NAME(name, type, words, fallback, help) " " #name
    static const char known[] = RS_SETTINGS(NAME) RS_SETTINGS_OF_TESTS(NAME);
#undef NAME
    for (char **e = environ; e && *e; e++) {
        size_t n = strcspn(*e, "=");
        bool found = strncmp(*e, RS_SETTING_PREFIX, strlen(RS_SETTING_PREFIX)) != 0 || n > 100;
        for (int i = 0; i < RS_SETTING_COUNT && !found; i++)
            found = strlen(settings[i].name) == n && memcmp(settings[i].name, *e, n) == 0;
        if (!found)
            note(*e, n, "%.*s: no such setting; after " RS_SETTING_PREFIX " go:%s", (int)n, *e,
                 known);
    }
}

/* Each setting's value, NULL where its default counts. */
static void find_settings(const char *ret[RS_SETTING_COUNT])
{
    for (int i = 0; i < RS_SETTING_COUNT; i++) {
        const char *value = getenv(settings[i].name);
        ret[i] = value && *value && check(i, value) ? value : NULL;
    }
    note_unknown_names();
}

/* ---- launchers ---- */

/* What launchers tell a rank. Where one has started another the rank has the variables of both, and
 * those of the inner are true: the first row that has a rank counts. So first come those that start
 * the training processes themselves (torchrun is a task of srun's or mpirun's on each host), then
 * MPI's, last the batch systems'. Hydra, which tells places on the host, is before PMIx: srun gives
 * PMIx's variables to the shell that mpiexec is called in, too. A row is `mark`'s only where that
 * is set. LOCAL_RANK has been set for a process, RANK alone perhaps for a whole host or container.
 */
static const struct launcher {
    const char *mark, *rank, *size, *local;
} launchers[] = {
    {NULL, "RT_RANK", "RT_SIZE", "RT_LOCAL_RANK"},
    {"HOROVOD_SIZE", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK"},
    {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {NULL, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"MPI_LOCALRANKID", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {NULL, "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"},
    {NULL, "PMIX_RANK", NULL, NULL},
    {NULL, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {NULL, "PALS_RANKID", NULL, "PALS_LOCAL_RANKID"},
    {NULL, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"},
    {"LOCAL_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {NULL, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {NULL, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {NULL, "RANK", "WORLD_SIZE", "LOCAL_RANK"},
};
enum { LAUNCHERS = sizeof(launchers) / sizeof(*launchers) };

static int32_t number_of(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    return text ? number_in(text) : -1;
}

static int32_t rank_by(const struct launcher *l)
{
    return !l->mark || getenv(l->mark) ? number_of(l->rank) : -1;
}

/* What the first launcher doesn't tell comes from another that knows the rank by the same number:
 * of another number it is another process, of another job. */
static void find_place(void)
{
    rs_env.rank = rs_env.world_size = rs_env.local_rank = -1;
    for (int i = 0; i < LAUNCHERS && rs_env.rank < 0; i++)
        rs_env.rank = rank_by(&launchers[i]);
    for (int i = 0; i < LAUNCHERS; i++) {
        const struct launcher *l = &launchers[i];
        if (rank_by(l) != rs_env.rank)
            continue;
        if (rs_env.world_size < 0)
            rs_env.world_size = number_of(l->size);
        if (rs_env.local_rank < 0)
            rs_env.local_rank = number_of(l->local);
    }
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
static void find_run_id(const char *given)
{
    char text[240];
    const char *a, *b;
    if (given)
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), given);
    else if ((a = getenv("RT_JOB")) && *a) {
        snprintf(text, sizeof(text), "rt-%s", a);
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("HOROVOD_GLOO_RENDEZVOUS_ADDR")) && *a &&
               (b = getenv("HOROVOD_GLOO_RENDEZVOUS_PORT"))) {
        snprintf(text, sizeof(text), "horovod-%s-%s", a, b);
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("PMIX_NAMESPACE")) && *a) {
        /* A job number that comes again, and a key that is drawn for each job. */
        b = getenv("OMPI_MCA_orte_precondition_transports");
        snprintf(text, sizeof(text), "%s%s%.8s", a, b ? "-" : "", b ? b : "");
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("OMPI_MCA_ess_base_jobid")) && *a)
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), a);
    else if ((a = getenv("FLUX_JOB_ID")) && *a) {
        snprintf(text, sizeof(text), "flux-%s", a);
        copy_id(rs_env.run_id, sizeof(rs_env.run_id), text);
    } else if ((a = getenv("SLURM_JOB_ID")) && *a) {
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

static void find_host(const char *given)
{
    if (gethostname(rs_env.machine, sizeof(rs_env.machine) - 1) != 0)
        snprintf(rs_env.machine, sizeof(rs_env.machine), "localhost");
    copy_id(rs_env.host, sizeof(rs_env.host), given ? given : rs_env.machine);
    struct stat st;
    unsigned long inode = stat("/proc/self/ns/time", &st) == 0 ? (unsigned long)st.st_ino : 0;
    snprintf(rs_env.domain, sizeof(rs_env.domain), "%s/%lu%s%s", rs_env.machine, inode,
             rs_env.test_clock[0] ? "/" : "", rs_env.test_clock);
}

static void find_dir(const char *dir)
{
    char cwd[RS_RING_PATH_MAX / 2] = "/tmp", name[RS_RING_PATH_MAX / 2];
    if (!dir) {
        snprintf(name, sizeof(name), "ringscope-%.120s-%.200s", rs_env_program(), rs_env.run_id);
        dir = name;
    }
    if (dir[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        snprintf(rs_env.dir, sizeof(rs_env.dir), "%s", dir);
    else
        snprintf(rs_env.dir, sizeof(rs_env.dir), "%s/%.500s", cwd, dir);
}

static uint32_t words_of(enum rs_setting i, const char *value)
{
    const char *unknown;
    size_t n;
    return rs_words_find(settings[i].words, value ? value : settings[i].fallback, &unknown, &n);
}

void rs_env_read(void)
{
    const char *given[RS_SETTING_COUNT];
    find_settings(given);
    rs_env.verbose = given[RS_SETTING_VERBOSE] ? number_in(given[RS_SETTING_VERBOSE]) : 0;
#ifdef RS_TEST_CLOCK
    const char *shift = given[RS_SETTING_TEST_CLOCK];
    snprintf(rs_env.test_clock, sizeof(rs_env.test_clock), "%s", shift ? shift : "");
#endif
    find_place();
    if (given[RS_SETTING_RANK])
        rs_env.rank = number_in(given[RS_SETTING_RANK]);
    rs_env.parts = words_of(RS_SETTING_TRACE, given[RS_SETTING_TRACE]);
    uint32_t kinds = words_of(RS_SETTING_EXPORT, given[RS_SETTING_EXPORT]);
    rs_env.export_chrome = kinds & RS_EXPORT_CHROME;
    rs_env.export_sqlite = kinds & RS_EXPORT_SQLITE;
    const char *limit = given[RS_SETTING_SIZE_LIMIT];
    rs_env.size_limit = limit ? bytes_in(limit) : 0;
    rs_env.keep_last = words_of(RS_SETTING_KEEP, given[RS_SETTING_KEEP]) == RS_KEEP_LAST;
    if (given[RS_SETTING_START])
        window_in(given[RS_SETTING_START], &rs_env.start_s, &rs_env.stop_s);
    const char *steps = given[RS_SETTING_STEPS];
    snprintf(rs_env.steps, sizeof(rs_env.steps), "%s", steps ? steps : "");
    rs_env.signal = given[RS_SETTING_SIGNAL] ? signal_in(given[RS_SETTING_SIGNAL]) : 0;
    find_run_id(given[RS_SETTING_RUN_ID]);
    find_host(given[RS_SETTING_HOST]);
    find_dir(given[RS_SETTING_DIR]);
}

void rs_env_say_notes(void)
{
    static bool said;
    const char *p = rs_env.notes, *end = p + rs_env.notes_bytes;
    for (; !said && p < end; p += strlen(p) + 1) {
        p += strlen(p) + 1;
        rs_say("%s", p);
    }
    said = true;
}
