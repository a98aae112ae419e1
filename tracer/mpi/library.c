/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - which MPI this process has. */
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Every MPI defines it, and tools do not: they wrap calls, not the clock. */
#define TELLTALE "PMPI_Wtime"

struct names {
    char *text; /* each ended by NUL */
    size_t used, capacity;
};

/* Names are copied and opened later: dlopen inside dl_iterate_phdr would take the loader's locks in
 * the wrong order. */
static int add_name(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct names *n = data;
    size_t length = info->dlpi_name ? strlen(info->dlpi_name) + 1 : 0;
    if (length <= 1)
        return 0;
    if (n->used + length > n->capacity) {
        size_t capacity = (n->used + length) * 2 + 4096;
        char *text = realloc(n->text, capacity);
        if (!text)
            return 1;
        n->text = text;
        n->capacity = capacity;
    }
    memcpy(n->text + n->used, info->dlpi_name, length);
    n->used += length;
    return 0;
}

/* Pins the object that holds `symbol`. */
static int take(void *symbol, struct rs_mpi_library *ret)
{
    Dl_info info;
    if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
        return -ENOENT;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (!handle)
        return -ENOENT;
    *ret = (struct rs_mpi_library){.handle = handle, .base = info.dli_fbase};
    return 0;
}

/* A library loaded RTLD_LOCAL is in no scope of ours: ask each object. */
static int find_in_objects(struct rs_mpi_library *ret)
{
    struct names n = {0};
    dl_iterate_phdr(add_name, &n);
    int r = -ENOENT;
    for (size_t at = 0; at < n.used && r; at += strlen(n.text + at) + 1) {
        void *object = dlopen(n.text + at, RTLD_LAZY | RTLD_NOLOAD);
        if (!object)
            continue;
        r = take(dlsym(object, TELLTALE), ret);
        dlclose(object);
    }
    free(n.text);
    return r;
}

static enum rs_mpi_flavour flavour_of_version(const char *version)
{
    static const char *const mpich_abi[] = {"MPICH", "Intel(R) MPI", "MVAPICH"};
    for (size_t i = 0; i < sizeof mpich_abi / sizeof *mpich_abi; i++)
        if (strstr(version, mpich_abi[i]))
            return RS_MPI_MPICH;
    return RS_MPI_UNKNOWN;
}

static void tell_flavour(struct rs_mpi_library *l)
{
    static char text[16384]; /* MPICH's maximum is 8192 */
    int (*get)(char *, int *) =
        (int (*)(char *, int *))dlsym(l->handle, "PMPI_Get_library_version");
    int length = 0;
    if (get)
        get(text, &length);
    text[sizeof text - 1] = '\0';
    l->flavour =
        dlsym(l->handle, "ompi_mpi_comm_world") ? RS_MPI_OPENMPI : flavour_of_version(text);
    size_t n = strcspn(text, "\n");
    if (n >= sizeof l->version)
        n = sizeof l->version - 1;
    for (size_t i = 0; i < n; i++)
        l->version[i] = text[i] == '\t' ? ' ' : text[i];
}

int rs_mpi_library_find(struct rs_mpi_library *ret)
{
    int r = take(dlsym(RTLD_NEXT, TELLTALE), ret);
    if (r)
        r = find_in_objects(ret);
    if (!r)
        tell_flavour(ret);
    return r;
}

void *rs_mpi_library_next_tool(const struct rs_mpi_library *library, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    Dl_info info;
    if (!symbol || !dladdr(symbol, &info) || info.dli_fbase == library->base)
        return NULL;
    /* Another MPI of the process is no tool. */
    void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *telltale = object ? dlsym(object, TELLTALE) : NULL;
    Dl_info owner;
    bool is_mpi = telltale && dladdr(telltale, &owner) && owner.dli_fbase == info.dli_fbase;
    if (object)
        dlclose(object);
    return is_mpi ? NULL : symbol;
}
