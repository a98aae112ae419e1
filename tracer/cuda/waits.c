/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static int note_name(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    base = base ? base + 1 : info->dlpi_name;
    if (!base || strncmp(base, "libcudart", 9) != 0)
        return 0;
    snprintf(found, PATH_MAX, "%s", info->dlpi_name);
    return 1;
}

static void *find(const char *name)
{
    char path[PATH_MAX];
    if (dl_iterate_phdr(note_name, path) == 0)
        return NULL;
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

void *rs_cuda_function(void **slot, const char *name, uint16_t op)
{
    void *function = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (RS_LIKELY(function != NULL))
        return function;
    int saved = errno;
    function = find(name);
    errno = saved;
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
    return function;
}

/* Defined when first recorded, not when found: that would make files of a program without NCCL. */
static void define_once(uint16_t op)
{
    static uint32_t defined;
    uint32_t bit = 1u << (op % 32);
    if (RS_UNLIKELY(!(__atomic_load_n(&defined, __ATOMIC_RELAXED) & bit))) {
        int saved = errno;
        rs_core->define_op(op);
        __atomic_fetch_or(&defined, bit, __ATOMIC_RELAXED);
        errno = saved;
    }
}

void rs_cuda_waited(struct rs_thread *t, uint16_t op, uint64_t start, bool failed)
{
    uint64_t end = rs_call_leave(t);
    define_once(op);
    if (!rs_room(t, 1))
        return;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){
        .op = op, .flags = failed ? RS_EVENT_FAILED : 0, .peer = -1, .start = start, .end = end};
    rs_commit(t, 1);
}
