/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SITES_MAX 512
#define NAMES_MAX 4

/* ---- the function ---- */

/* Pins the library: the address outlives a dlclose. */
static void *look_in(const char *path, const struct rs_gloo_function *f)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle ? dlsym(handle, f->symbol) : NULL;
    if (function && function != f->own)
        return function;
    if (handle)
        dlclose(handle);
    return NULL;
}

struct names {
    unsigned n;
    char path[NAMES_MAX][1024];
};

/* Names only: dlopen inside the iteration could wait for its lock. */
static int note_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct names *names = data;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (base && strncmp(base, "/libgloo", 8) == 0 &&
        strlen(info->dlpi_name) < sizeof(names->path[0]))
        strcpy(names->path[names->n++], info->dlpi_name);
    return names->n == NAMES_MAX;
}

static void *look_by_name(const struct rs_gloo_function *f)
{
    struct names names = {.n = 0};
    void *function = NULL;
    dl_iterate_phdr(note_name, &names);
    for (unsigned i = 0; i < names.n && !function; i++)
        function = look_in(names.path[i], f);
    return function;
}

static void *find(const struct rs_gloo_function *f, const void *caller)
{
    Dl_info info;
    void *function = dlsym(RTLD_NEXT, f->symbol);
    if (!function && dladdr(caller, &info) && info.dli_fname)
        function = look_in(info.dli_fname, f);
    return function ? function : look_by_name(f);
}

__attribute__((noreturn)) static void end_unresolved(const struct rs_gloo_function *f)
{
    dprintf(2, "ringscope: symbol lookup error: undefined symbol: %s\n", f->symbol);
    _exit(127);
}

/* ---- places ---- */

static struct rs_gloo_site sites[SITES_MAX];
static unsigned site_count; /* atomic */

static struct rs_gloo_site *known_site(struct rs_gloo_function *f, const void *caller)
{
    struct rs_gloo_site *s = __atomic_load_n(&f->sites, __ATOMIC_ACQUIRE);
    while (s && s->caller != caller)
        s = s->next;
    return s;
}

static void describe(const void *function)
{
    static unsigned done;
    Dl_info info;
    if (rs_gloo_is_on() && *rs_core->on && !__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED) &&
        dladdr(function, &info) && info.dli_fname)
        rs_core->meta("gloo.library", info.dli_fname);
}

struct rs_gloo_site *rs_gloo_site(struct rs_gloo_function *f, const void *caller,
                                  struct rs_gloo_site *spare)
{
    struct rs_gloo_site *s = known_site(f, caller);
    if (RS_LIKELY(s != NULL))
        return s;
    int saved = errno;
    void *real = find(f, caller);
    if (!real)
        end_unresolved(f);
    describe(real);
    unsigned i = __atomic_fetch_add(&site_count, 1, __ATOMIC_RELAXED);
    s = i < SITES_MAX ? &sites[i] : spare;
    *s = (struct rs_gloo_site){.caller = caller, .real = real};
    if (s != spare) {
        s->next = __atomic_load_n(&f->sites, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&f->sites, &s->next, s, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            ;
    } else {
        __atomic_store_n(&site_count, SITES_MAX, __ATOMIC_RELAXED);
    }
    errno = saved;
    return s;
}
