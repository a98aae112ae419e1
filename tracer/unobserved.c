/* SPDX-License-Identifier: Apache-2.0 */
#include "unobserved.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

bool rs_unseen_place(struct rs_unseen *u, const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!address || !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    u->in_program = !map->l_name || !*map->l_name;
    if (!u->in_program)
        return (size_t)snprintf(u->path, sizeof(u->path), "%s", map->l_name) < sizeof(u->path);
    ssize_t n = readlink("/proc/self/exe", u->path, sizeof(u->path) - 1);
    u->path[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Preloaded libraries stand before what the program asks for. Where NCCL loaded this one as its
 * plug-in, whoever wanted that wanted no more. */
struct order {
    const void *own;
    bool done, first;
};

static int look_at_order(struct dl_phdr_info *info, size_t size, void *data)
{
    struct order *o = data;
    const char *base = strrchr(info->dlpi_name ? info->dlpi_name : "", '/');
    (void)size;
    if ((const void *)info->dlpi_addr == o->own)
        o->done = o->first = true;
    else if (base && strncmp(base, "/libc.so.", 9) == 0)
        o->done = true;
    return o->done;
}

static bool is_preloaded(void)
{
    Dl_info info;
    if (!dladdr((const void *)is_preloaded, &info))
        return false;
    struct order o = {.own = info.dli_fbase};
    dl_iterate_phdr(look_at_order, &o);
    return o.first;
}

static void note(const char *key, const struct rs_unseen *u)
{
    char text[sizeof(u->path) + 32];
    snprintf(text, sizeof(text), "%s %s: %s", u->use == RS_USE_CERTAIN ? "used" : "mapped",
             u->in_program ? "program" : "library", u->path);
    rs_lock();
    if (rs_state.control || (u->use == RS_USE_CERTAIN && rs_life_start()))
        rs_meta_set_locked(key, text);
    rs_unlock();
}

void rs_unobserved_tell(void)
{
    static const struct {
        uint32_t part;
        const char *key;
        void (*look)(struct rs_unseen *ret);
    } apis[] = {{RS_PART_MPI, "unobserved.mpi", rs_mpi_unseen},
                {RS_PART_NCCL, "unobserved.nccl", rs_nccl_unseen}};
    int saved = errno;
    /* A fork's child has what its parent used. */
    if (rs_state.forked || !rs_life_is_own() || !rs_state.on[RS_ON_KEEP] || !is_preloaded())
        return;
    for (unsigned i = 0; i < sizeof(apis) / sizeof(*apis); i++) {
        struct rs_unseen u = {.use = RS_USE_NONE};
        if (rs_env.parts & apis[i].part)
            apis[i].look(&u);
        if (u.use != RS_USE_NONE && u.path[0])
            note(apis[i].key, &u);
    }
    errno = saved;
}
