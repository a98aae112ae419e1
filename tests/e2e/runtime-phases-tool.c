/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler for a test of the runtime's phases, loaded through NVTX_INJECTION64_PATH: writes
 * ranges as they start and end, and a program's own that it pushes and pops, to
 * RUNTIME_PHASES_LOG, with the process's number behind it.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static uint64_t ranges;

static void *domain_create(const char *name)
{
    return strdup(name);
}

static void name_category(void *domain, uint32_t number, const char *name)
{
    (void)domain;
    pthread_mutex_lock(&lock);
    fprintf(file, "category %u %s\n", number, name);
    pthread_mutex_unlock(&lock);
}

static uint64_t start(void *domain, const void *attributes)
{
    const uint32_t *words = attributes;
    const char *message;
    memcpy(&message, (const char *)attributes + 40, sizeof message);
    pthread_mutex_lock(&lock);
    const uint64_t id = ++ranges;
    fprintf(file, "start %llu %u %s %s\n", (unsigned long long)id, words[1], (const char *)domain,
            message);
    pthread_mutex_unlock(&lock);
    return id;
}

static void end(void *domain, uint64_t id)
{
    (void)domain;
    pthread_mutex_lock(&lock);
    fprintf(file, "end %llu\n", (unsigned long long)id);
    fflush(file);
    pthread_mutex_unlock(&lock);
}

static int push(const char *name)
{
    pthread_mutex_lock(&lock);
    fprintf(file, "push %s\n", name);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int pop(void)
{
    pthread_mutex_lock(&lock);
    fputs("pop\n", file);
    pthread_mutex_unlock(&lock);
    return 0;
}

typedef void (*function)(void);

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    const struct {
        size_t size;
        int (*functions)(int module, function ***table, unsigned *count);
    } *callbacks = export_table(1);
    const char *prefix = getenv("RUNTIME_PHASES_LOG");
    function **core, **core2;
    unsigned count, core_count;
    char path[4096];
    if (!prefix || !callbacks->functions(5, &core2, &count) || count < 15 ||
        !callbacks->functions(1, &core, &core_count) || core_count < 12)
        return 0;
    snprintf(path, sizeof path, "%s-%d", prefix, (int)getpid());
    file = fopen(path, "w");
    if (!file)
        return 0;
    *core[9] = (function)push;
    *core[11] = (function)pop;
    *core2[2] = (function)start;
    *core2[3] = (function)end;
    *core2[8] = (function)name_category;
    *core2[12] = (function)domain_create;
    return 1;
}
