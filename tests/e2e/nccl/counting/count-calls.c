/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the calls of the stand-in CUDA runtime's functions: linked into a copy of it that is
 * compiled with -finstrument-functions. When the process ends, "FUNCTION COUNT" lines go into the
 * file named by CUDA_COUNTS.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNCOUNTED     __attribute__((no_instrument_function))
#define FUNCTIONS_MAX 512

void __cyg_profile_func_enter(void *function, void *site) UNCOUNTED;
void __cyg_profile_func_exit(void *function, void *site) UNCOUNTED;
static struct counter *find(const void *function) UNCOUNTED;
static void write_counts(void) UNCOUNTED __attribute__((destructor));

static struct counter {
    const void *function;
    char name[64]; /* "": no function of CUDA's */
    unsigned long count;
} counters[FUNCTIONS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct counter *find(const void *function)
{
    Dl_info info;
    struct counter *c = counters;
    while (c < counters + FUNCTIONS_MAX - 1 && c->function && c->function != function)
        c++;
    if (!c->function) {
        c->function = function;
        if (dladdr(function, &info) && info.dli_sname && info.dli_saddr == function &&
            strncmp(info.dli_sname, "cuda", 4) == 0)
            snprintf(c->name, sizeof c->name, "%s", info.dli_sname);
    }
    return c;
}

void __cyg_profile_func_enter(void *function, void *site)
{
    pthread_mutex_lock(&lock);
    find(function)->count++;
    pthread_mutex_unlock(&lock);
}

void __cyg_profile_func_exit(void *function, void *site)
{
}

static void write_counts(void)
{
    const char *path = getenv("CUDA_COUNTS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f)
        return;
    for (const struct counter *c = counters; c->function; c++)
        if (c->name[0])
            fprintf(f, "%s %lu\n", c->name, c->count);
    fclose(f);
}
