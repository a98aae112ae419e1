/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.c - the capture's facts as keys and values; the keys stand in schemas/capture-format.md.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define META_MAX 65536

static char facts[META_MAX]; /* key NUL value NUL ... */
static size_t used;

static char *find(const char *key)
{
    for (char *p = facts; p < facts + used;) {
        char *value = p + strlen(p) + 1;
        if (strcmp(p, key) == 0)
            return p;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

static void remove_at(char *pair)
{
    char *value = pair + strlen(pair) + 1, *next = value + strlen(value) + 1;
    size_t bytes = (size_t)(next - pair);
    memmove(pair, next, (size_t)(facts + used - next));
    used -= bytes;
}

void rs_meta_set_locked(const char *key, const char *value)
{
    char *old = find(key);
    size_t k = strlen(key) + 1, v = strlen(value) + 1;
    if (old && strcmp(old + k, value) == 0)
        return;
    if (old)
        remove_at(old);
    if (used + k + v > META_MAX)
        return;
    memcpy(facts + used, key, k);
    memcpy(facts + used + k, value, v);
    used += k + v;
    rs_state.meta_dirty = true;
}

void rs_meta_set(const char *key, const char *value)
{
    rs_lock();
    rs_meta_set_locked(key, value);
    rs_unlock();
}

size_t rs_meta_payload(const char **ret)
{
    static char whole[META_MAX]; /* facts may change while a disk takes them */
    memcpy(whole, facts, used);
    *ret = whole;
    return used;
}

static void set_number(const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    rs_meta_set_locked(key, text);
}

static void add_arguments(void)
{
    char text[4096];
    FILE *f = fopen("/proc/self/cmdline", "re");
    if (!f)
        return;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == 0)
            text[i] = ' ';
    text[n] = 0;
    rs_meta_set_locked("argv", text);
}

/* What changes how a run behaves. Not everything: the environment holds people's secrets. */
static void add_environment(void)
{
    static const char *const wanted[] = {"NCCL_",
                                         "OMPI_MCA_",
                                         "HOROVOD_",
                                         "RINGSCOPE_",
                                         "UCX_",
                                         "MPIR_CVAR_",
                                         "OMP_NUM_THREADS=",
                                         "CUDA_VISIBLE_DEVICES=",
                                         "SLURM_JOB_NUM_NODES="};
    for (char **e = environ; e && *e; e++) {
        const char *equals = strchr(*e, '=');
        char key[128];
        if (!equals || equals - *e > 100)
            continue;
        for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
            if (strncmp(*e, wanted[i], strlen(wanted[i])) != 0)
                continue;
            snprintf(key, sizeof(key), "env.%.*s", (int)(equals - *e), *e);
            rs_meta_set_locked(key, equals + 1);
        }
    }
}

static void add_cards(void)
{
    DIR *d = opendir("/sys/class/net");
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        char path[320], key[300], text[32] = "";
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/sys/class/net/%s/speed", entry->d_name);
        FILE *f = fopen(path, "re");
        if (!f)
            continue;
        if (fgets(text, sizeof(text), f) && atol(text) > 0) {
            snprintf(key, sizeof(key), "nic.%s.mbps", entry->d_name);
            text[strcspn(text, "\n")] = 0;
            rs_meta_set_locked(key, text);
        }
        fclose(f);
    }
    if (d)
        closedir(d);
}

static void add_parts(void)
{
    char text[sizeof(RS_TRACE_WORDS) + 1] = "";
    const char *word = RS_TRACE_WORDS;
    for (uint32_t bit = 1; *word; bit <<= 1) {
        size_t n = strcspn(word, ",");
        if (rs_env.parts & bit)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s", text[0] ? "," : "",
                     (int)n, word);
        word += n + (word[n] == ',');
    }
    rs_meta_set_locked("trace.parts", text);
}

static void add_wrong_settings(void)
{
    const char *p = rs_env.notes, *end = p + rs_env.notes_bytes;
    while (p < end) {
        char key[128];
        snprintf(key, sizeof(key), "setting.%.100s", p);
        p += strlen(p) + 1;
        rs_meta_set_locked(key, p);
        p += strlen(p) + 1;
    }
}

void rs_meta_not_kill_safe_locked(int error)
{
    char text[128];
    snprintf(text, sizeof(text), "no: rings on /dev/shm: %s", strerror(error));
    rs_meta_set_locked("kill_safe", text);
}

void rs_meta_collect(void)
{
    char format[48];
    snprintf(format, sizeof(format), "ringscope capture %d.%d", RS_FORMAT_MAJOR, RS_FORMAT_MINOR);
    rs_meta_set_locked("format", format);
    rs_meta_set_locked("version", RS_VERSION);
    rs_meta_set_locked("program", rs_env_program());
    add_arguments();
    rs_meta_set_locked("host", rs_env.host);
    rs_meta_set_locked("machine", rs_env.machine);
    rs_meta_set_locked("domain", rs_env.domain);
    rs_meta_set_locked("run_id", rs_env.run_id);
    set_number("pid", rs_state.pid);
    set_number("pid.start", (int64_t)rs_state.control->pid_start);
    if (!find("rank") && rs_env.rank >= 0)
        set_number("rank", rs_env.rank);
    if (!find("world_size") && rs_env.world_size >= 0)
        set_number("world_size", rs_env.world_size);
    if (rs_env.local_rank >= 0)
        set_number("local_rank", rs_env.local_rank);
    rs_meta_set_locked("ring.prefix", rs_state.control->prefix);
    if (rs_state.kill_safe)
        rs_meta_set_locked("kill_safe", "yes");
    if (rs_env.test_clock[0])
        rs_meta_set_locked("test_clock", rs_env.test_clock);
    add_parts();
    add_wrong_settings();
    add_environment();
    add_cards();
}
