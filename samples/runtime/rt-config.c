/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt-cache.h"
#include "rt-lifeline.h"

struct setting {
    const char *name;
    const char *expected;
    int (*read)(const char *text, struct rt_config *config);
};

static int read_threshold(const char *text, struct rt_config *config)
{
    char *end;
    errno = 0;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return -EINVAL;
    config->fusion_threshold = bytes;
    return 0;
}

static int read_capacity(const char *text, struct rt_config *config)
{
    char *end;
    unsigned long long slots = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || slots > RT_CACHE_CAPACITY_MAX)
        return -EINVAL;
    config->cache_capacity = (uint32_t)slots;
    return 0;
}

static int read_cycle(const char *text, struct rt_config *config)
{
    char *end;
    double ms = strtod(text, &end);
    if (end == text || *end || !(ms >= 0 && ms <= 1e6))
        return -EINVAL;
    config->cycle_ns = (uint64_t)(ms * 1e6);
    return 0;
}

static int read_seconds(const char *text, uint64_t *ret_ns)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s >= 0 && s <= 1e6))
        return -EINVAL;
    *ret_ns = (uint64_t)(s * 1e9);
    return 0;
}

static int read_stall_warning(const char *text, struct rt_config *config)
{
    return read_seconds(text, &config->stall_warning_ns);
}

static int read_stall_shutdown(const char *text, struct rt_config *config)
{
    return read_seconds(text, &config->stall_shutdown_ns);
}

static int read_flag(const char *text, bool *ret)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return -EINVAL;
    *ret = *text == '1';
    return 0;
}

static int read_deterministic(const char *text, struct rt_config *config)
{
    return read_flag(text, &config->deterministic);
}

/* "auto" leaves it to the table. */
static int read_allreduce(const char *text, struct rt_config *config)
{
    if (strcmp(text, "auto") == 0)
        return 0;
    int error = rt_plan_parse(text, &config->plan);
    config->is_planned = !error;
    config->hierarchical = config->plan.kind == RT_PLAN_HIERARCHICAL;
    return error;
}

static int refuse(const char *text, struct rt_config *config)
{
    (void)text;
    (void)config;
    return -EINVAL;
}

static int read_on_death(const char *text, struct rt_config *config)
{
    if (strcmp(text, "exit") != 0 && strcmp(text, "error") != 0)
        return -EINVAL;
    config->exits_on_death = strcmp(text, "exit") == 0;
    return 0;
}

static int read_host_timeout(const char *text, struct rt_config *config)
{
    char *end;
    unsigned long s = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || s > RT_HOST_TIMEOUT_MAX_S)
        return -EINVAL;
    config->host_timeout_s = (unsigned)s;
    return 0;
}

static int read_compression(const char *text, struct rt_config *config)
{
    static const char *const names[] = {"none", "fp16", "bf16"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            config->compression = (enum rt_compression)(RT_COMPRESSION_NONE + i);
            return 0;
        }
    return -EINVAL;
}

static int read_timeline(const char *text, struct rt_config *config)
{
    config->timeline = *text ? text : NULL;
    return 0;
}

static int read_mark_cycles(const char *text, struct rt_config *config)
{
    return read_flag(text, &config->mark_cycles);
}

static const struct setting settings[] = {
    {"RT_FUSION_THRESHOLD", "a number of bytes", read_threshold},
    {"RT_CACHE_CAPACITY", "a number of tensors, at most 1000000", read_capacity},
    {"RT_CYCLE_TIME", "a number of milliseconds", read_cycle},
    {"RT_HIERARCHICAL_ALLREDUCE", "nothing: use RT_ALLREDUCE=ring or hierarchical", refuse},
    {"RT_ALLREDUCE", RT_PLAN_NAMES, read_allreduce},
    {"RT_DETERMINISTIC", "0 or 1", read_deterministic},
    {"RT_TIMELINE", "a path", read_timeline},
    {"RT_TIMELINE_MARK_CYCLES", "0 or 1", read_mark_cycles},
    {"RT_COMPRESSION", "none, fp16 or bf16", read_compression},
    {"RT_STALL_WARNING_TIME", "a number of seconds", read_stall_warning},
    {"RT_STALL_SHUTDOWN_TIME", "a number of seconds", read_stall_shutdown},
    {"RT_ON_DEATH", "exit or error", read_on_death},
    {"RT_HOST_TIMEOUT", "a number of seconds, at most 32767, or 0", read_host_timeout},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* What others read; tests/checks/settings.py compares. */
static const char *const names_elsewhere[] = {
    "RT_ADDR", "RT_FABRIC",    "RT_FAULT",         "RT_HOST",       "RT_HOST_RANKS", "RT_INTERFACE",
    "RT_JOB",  "RT_LISTEN_FD", "RT_LOCAL_RANK",    "RT_LOCAL_SIZE", "RT_PORT",       "RT_RANK",
    "RT_SIZE", "RT_SSH",       "RT_START_TIMEOUT", "RT_TABLE",
};

static bool is_name(const char *text, size_t n, const char *name)
{
    return strncmp(text, name, n) == 0 && name[n] == 0;
}

static bool is_known(const char *text, size_t n)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (is_name(text, n, settings[i].name))
            return true;
    for (size_t i = 0; i < sizeof names_elsewhere / sizeof *names_elsewhere; i++)
        if (is_name(text, n, names_elsewhere[i]))
            return true;
    return false;
}

const char *rt_config_unknown(size_t *at)
{
    while (environ && environ[*at]) {
        const char *text = environ[(*at)++];
        if (strncmp(text, "RT_", 3) == 0 && !is_known(text, strcspn(text, "=")))
            return text;
    }
    return NULL;
}

int rt_config_read(struct rt_config *ret, char *message, size_t message_bytes)
{
    struct rt_config config = {
        .fusion_threshold = 128u << 20,
        .cache_capacity = 1024,
        .cycle_ns = 1000000,
        .hierarchical = true,
        .stall_warning_ns = 60000000000u,
        .exits_on_death = true,
        .host_timeout_s = 30,
        .compression = RT_COMPRESSION_NONE,
    };
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *text = getenv(settings[i].name);
        if (text && settings[i].read(text, &config)) {
            snprintf(message, message_bytes, "%s is '%s', expected %s", settings[i].name, text,
                     settings[i].expected);
            return -EINVAL;
        }
    }
    if (config.deterministic && config.is_planned &&
        (config.plan.kind != RT_PLAN_FLAT || !rt_algorithm_at(config.plan.algorithm)->same_bits)) {
        snprintf(message, message_bytes,
                 "RT_DETERMINISTIC=1 goes with RT_ALLREDUCE=recursive-doubling, halving-doubling, "
                 "tree or flat, not '%s': its bits depend on what is fused",
                 getenv("RT_ALLREDUCE"));
        return -EINVAL;
    }
    *ret = config;
    return 0;
}
