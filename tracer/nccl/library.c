/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "library.h"
#include "unobserved.h"

static void *library;    /* atomic: dlopen's handle of NCCL, once found */
static bool wrapped;     /* atomic */
static const void *came; /* atomic */

struct search {
    const char *own; /* our own file: what is found there is a wrapper */
    bool by_name;    /* first those that are called libnccl */
    char found[4096];
};

static bool is_ours(const void *function, const char *own)
{
    Dl_info info;
    return dladdr(function, &info) && info.dli_fname && strcmp(info.dli_fname, own) == 0;
}

static void *open_if_nccl(const char *path, const char *own)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle ? dlsym(handle, "ncclGetVersion") : NULL;
    if (function && !is_ours(function, own))
        return handle;
    if (handle)
        dlclose(handle);
    return NULL;
}

/* Names only: dlopen inside the iteration could wait for its lock. */
static int note_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *s = data;
    const char *path = info->dlpi_name;
    if (!path || !*path)
        return 0;
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (strncmp(base, "libnccl.so", 10) != 0 && strncmp(base, "libpnccl.so", 11) != 0)
        return 0;
    snprintf(s->found, sizeof s->found, "%s", path);
    return 1;
}

/* NCCL inside another library, or under another name: whatever the program's global scope finds
 * behind us. */
static void *behind_us(const char *own)
{
    void *function = dlsym(RTLD_NEXT, "ncclGetVersion");
    Dl_info info;
    if (!function || is_ours(function, own) || !dladdr(function, &info) || !info.dli_fname)
        return NULL;
    return open_if_nccl(info.dli_fname, own);
}

static void *find_library(void)
{
    Dl_info self;
    struct search s = {.found = ""};
    if (!dladdr((const void *)find_library, &self) || !self.dli_fname)
        return NULL;
    if (dl_iterate_phdr(note_name, &s) == 0)
        return behind_us(self.dli_fname);
    return open_if_nccl(s.found, self.dli_fname);
}

static bool is_on(void)
{
    return rs_core && rs_core->on[RS_ON_KEEP] && (rs_core->parts & RS_PART_NCCL);
}

static void describe(void *handle)
{
    ncclResult_t (*get_version)(int *) = dlsym(handle, "ncclGetVersion");
    const int *standin = dlsym(handle, "hostnccl_standin");
    char text[48];
    int version = 0;
    if (!is_on())
        return;
    if (get_version && get_version(&version) == RS_NCCL_SUCCESS && version > 0) {
        int base = version < 10000 ? 1000 : 10000; /* as NCCL_VERSION of nccl.h */
        snprintf(text, sizeof text, "%d.%d.%d", version / base, version % base / 100,
                 version % 100);
        rs_core->meta("nccl.library", text);
    }
    if (standin) {
        snprintf(text, sizeof text, "hostnccl %d", *standin);
        rs_core->meta("nccl.standin", text);
    }
}

static void *borrow_library(void)
{
    void *handle = __atomic_load_n(&library, __ATOMIC_ACQUIRE), *none = NULL;
    if (handle)
        return handle;
    handle = find_library();
    if (handle && __atomic_compare_exchange_n(&library, &none, handle, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE))
        describe(handle);
    return handle;
}

void *rs_nccl_find(const char *name)
{
    int saved = errno;
    void *handle = borrow_library();
    void *function = handle ? dlsym(handle, name) : NULL;
    errno = saved;
    return function;
}

void *rs_nccl_resolve(void **slot, const char *name, uint16_t op)
{
    __atomic_store_n(&wrapped, true, __ATOMIC_RELAXED);
    void *function = rs_nccl_find(name);
    if (!function)
        return NULL;
    if (is_on())
        rs_core->define_op(op);
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    return function;
}

bool rs_nccl_is_wrapped(void)
{
    return __atomic_load_n(&wrapped, __ATOMIC_RELAXED);
}

void rs_nccl_came(const void *code)
{
    __atomic_store_n(&came, code, __ATOMIC_RELAXED);
}

const void *rs_nccl_who_came(void)
{
    return __atomic_load_n(&came, __ATOMIC_RELAXED);
}
