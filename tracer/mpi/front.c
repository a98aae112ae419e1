/* SPDX-License-Identifier: Apache-2.0 */
/* front.c - where the exported MPI_X and PMPI_X go: resolved one function at a time, at its first
 * call. */
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "back.h"
#include "parts.h"
#include "unobserved.h"

#define NO_MPI_ERROR 16 /* MPI_ERR_OTHER of Open MPI; nonzero is what matters */

enum state { UNKNOWN, LOOKING, FOUND };

static struct {
    pthread_mutex_t lock;
    enum state state;
    char folder[4096];
    struct rs_mpi_library library;
    struct rs_mpi_back back; /* wrappers NULL: straight through */
    bool seen;               /* a call that only those make who communicate is recorded */
} front = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

/* What a call finds where there is no MPI, or where the MPI lacks it. */
static int answer_error(void)
{
    return NO_MPI_ERROR;
}
static int answer_zero(int *flag)
{
    if (flag)
        *flag = 0;
    return 0;
}

static void turn_off(const char *why)
{
    rs_core->meta("off.mpi", why);
}

static void *open_back_end(void)
{
    char path[sizeof front.folder + 64];
    const char *name = front.library.flavour == RS_MPI_OPENMPI ? "openmpi" : "mpich";
    if (!front.folder[0]) { /* never by a search path */
        turn_off("the tracer's own folder is not known");
        return NULL;
    }
    snprintf(path, sizeof path, "%slibringscope-%s.so", front.folder, name);
    void *back = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!back)
        turn_off(dlerror());
    return back;
}

static void load_back_end(void)
{
    void *back = open_back_end();
    if (!back)
        return;
    rs_mpi_back_init_fn *init = (rs_mpi_back_init_fn *)dlsym(back, RS_MPI_BACK_INIT);
    int r = init ? init(RS_MPI_ABI, rs_mpi_front_count, RS_VERSION, rs_core, front.library.handle,
                        &front.back)
                 : -EPROTO;
    if (r == 0)
        return;
    front.back = (struct rs_mpi_back){0};
    turn_off(r == -EPROTO ? "the back end is of another build" : "the MPI library lacks functions");
    dlclose(back);
}

static void look(void)
{
    front.state = LOOKING;
    if (rs_mpi_library_find(&front.library)) {
        front.state = UNKNOWN; /* it may yet be loaded */
        return;
    }
    if (rs_core && (rs_core->parts & RS_PART_MPI)) {
        rs_core->meta("mpi.library", front.library.version);
        if (front.library.flavour == RS_MPI_UNKNOWN)
            turn_off("an MPI that is neither Open MPI nor of MPICH's ABI");
        else
            load_back_end();
    }
    front.state = FOUND;
}

static void *real_function(const char *name)
{
    char pmpi[128];
    snprintf(pmpi, sizeof pmpi, "P%s", name);
    return dlsym(front.library.handle, pmpi);
}

static void set_slots(unsigned function, void *mpi, void *pmpi)
{
    __atomic_store_n(&rs_mpi_slots[function][0], mpi, __ATOMIC_RELEASE);
    __atomic_store_n(&rs_mpi_slots[function][1], pmpi, __ATOMIC_RELEASE);
}

/* Libraries ask it without using MPI. */
static bool asks_only(const struct rs_mpi_front_name *f)
{
    return f->answers_zero || strncmp(f->name, "MPI_Get_", 8) == 0;
}

static void bind_function(unsigned function)
{
    const struct rs_mpi_front_name *f = &rs_mpi_front_names[function];
    void *real = real_function(f->name);
    if (!real) {
        set_slots(function, (void *)answer_error, (void *)answer_error);
        return;
    }
    void *tool = rs_mpi_library_next_tool(&front.library, f->name);
    struct rs_mpi_target target = {tool ? tool : real, real};
    const struct rs_mpi_wrapper *w = front.back.wrappers ? &front.back.wrappers[function] : NULL;
    if (!w || !w->mpi) {
        set_slots(function, target.next, target.real);
        return;
    }
    front.back.targets[function] = target;
    rs_core->define_op(f->op);
    front.seen |= !asks_only(f);
    set_slots(function, w->mpi, w->pmpi);
}

static void *resolve_locked(unsigned entry)
{
    const struct rs_mpi_front_name *f = &rs_mpi_front_names[entry / 2];
    if (front.state == UNKNOWN)
        look();
    if (front.state == FOUND) {
        bind_function(entry / 2);
        return rs_mpi_slots[entry / 2][entry % 2];
    }
    /* None, or called by the library itself while we ask for its version: nothing is settled. */
    void *real = front.state == LOOKING && front.library.handle ? real_function(f->name) : NULL;
    return real ? real : f->answers_zero ? (void *)answer_zero : (void *)answer_error;
}

void *rs_mpi_resolve(unsigned entry)
{
    int saved = errno;
    pthread_mutex_lock(&front.lock);
    void *target = resolve_locked(entry);
    pthread_mutex_unlock(&front.lock);
    errno = saved;
    return target;
}

void rs_mpi_unseen(struct rs_unseen *ret)
{
    typedef int ask(int *);
    int begun = 0;
    pthread_mutex_lock(&front.lock);
    bool seen = front.seen;
    pthread_mutex_unlock(&front.lock);
    if (seen)
        return;
    ask *is_begun = (ask *)rs_unseen_in_libraries("PMPI_Initialized");
    if (!is_begun)
        is_begun = (ask *)rs_unseen_in_program("PMPI_Initialized");
    if (is_begun && is_begun(&begun) == 0 && begun && rs_unseen_place(ret, (const void *)is_begun))
        ret->use = RS_USE_CERTAIN;
}

void rs_mpi_init(const char *library)
{
    const char *slash = strrchr(library, '/');
    size_t n = slash ? (size_t)(slash - library) + 1 : 0;
    if (n >= sizeof front.folder)
        n = 0;
    memcpy(front.folder, library, n);
}
