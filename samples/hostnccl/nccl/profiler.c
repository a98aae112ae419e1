/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host of the NCCL profiler plug-in. Which events are started, when, with which parents follows
 * NCCL 2.28 (definitions.md section 6): an event is started if the plug-in asked for it or for
 * anything that hangs on it; stopEvent on a collective means "enqueued"; its execution is its
 * KernelCh event, of which the stand-in has one, channel 0. pTimer is nanoseconds of
 * CLOCK_REALTIME.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "internal.h"
#include "profiler-abi.h"

#define PREFIX "libnccl-profiler"

static struct {
    pthread_mutex_t lock;
    unsigned users; /* communicators */
    bool failed;
    void *library;
    const struct profiler_table *table;
    int version;
    int mask; /* atomic */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The group that the thread is in. */
static __thread struct {
    void *event;
    int depth; /* of the call that started the event, then counted down */
    bool start_noted;
} api_group;

static const char *const func_names[FUNC_COUNT] = {
    "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
    "Send",      "Recv",   "AlltoAll",  "Scatter",       "Gather",
};

static bool is_copy(const struct hostnccl_op *op)
{
    return op->func == FUNC_ALLGATHER || op->func == FUNC_BROADCAST;
}

static bool wants(int events)
{
    return __atomic_load_n(&plugin.mask, __ATOMIC_RELAXED) & events;
}

/* ---- loading ---- */

static void *open_library(const char *name)
{
    if (!name || !*name)
        return dlopen(PREFIX ".so", RTLD_NOW | RTLD_LOCAL);
    if (strcasecmp(name, "none") == 0)
        return NULL;
    if (strcasecmp(name, "STATIC_PLUGIN") == 0)
        return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    size_t n = strlen(name);
    bool is_file = strchr(name, '/') ||
                   (strncmp(name, "lib", 3) == 0 && n >= 3 && strcmp(name + n - 3, ".so") == 0);
    if (library || is_file)
        return library;
    char longer[256];
    snprintf(longer, sizeof longer, PREFIX "-%s.so", name);
    return dlopen(longer, RTLD_NOW | RTLD_LOCAL);
}

static void find_table(void)
{
    for (int version = 6; version >= 1 && !plugin.table; version--) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
        plugin.table = dlsym(plugin.library, symbol);
        plugin.version = version;
    }
}

/* With the lock. As NCCL, one failure is for good. */
static void load(void)
{
    if (plugin.failed || plugin.table)
        return;
    plugin.library = open_library(secure_getenv("NCCL_PROFILER_PLUGIN"));
    if (plugin.library)
        find_table();
    if (plugin.library && !plugin.table)
        dlclose(plugin.library);
    plugin.failed = !plugin.table;
}

static void unload(void)
{
    if (--plugin.users > 0)
        return;
    dlclose(plugin.library);
    plugin.library = NULL;
    plugin.table = NULL;
    __atomic_store_n(&plugin.mask, 0, __ATOMIC_RELAXED);
}

/* Plug-ins may log; a library never prints. */
static void discard_log(int level, unsigned long flags, const char *file, int line,
                        const char *format, ...)
{
}

static int call_init(ncclComm_t comm, int *mask)
{
    const char *name = comm->settings.name[0] ? comm->settings.name : NULL;
    void (*init)(void) = plugin.table->init;
    if (plugin.version >= 5)
        return ((profiler_init_v5_fn *)init)(&comm->profiler_context, comm->hash, mask, name, 1,
                                             comm->size, comm->rank, discard_log);
    if (plugin.version == 4)
        return ((profiler_init_v4_fn *)init)(&comm->profiler_context, mask, name, comm->hash, 1,
                                             comm->size, comm->rank, discard_log);
    return ((profiler_init_v1_fn *)init)(&comm->profiler_context, mask);
}

void hostnccl_profiler_open(ncclComm_t comm)
{
    pthread_mutex_lock(&plugin.lock);
    load();
    if (plugin.table) {
        int mask = plugin.mask;
        plugin.users++;
        comm->profiled = call_init(comm, &mask) == 0;
        if (comm->profiled)
            __atomic_store_n(&plugin.mask, mask, __ATOMIC_RELAXED);
        else
            unload();
    }
    pthread_mutex_unlock(&plugin.lock);
}

void hostnccl_profiler_close(ncclComm_t comm)
{
    if (!comm->profiled)
        return;
    plugin.table->finalize(comm->profiler_context);
    pthread_mutex_lock(&plugin.lock);
    unload();
    pthread_mutex_unlock(&plugin.lock);
}

/* ---- one event, for whatever version ---- */

static uint8_t algorithm_number(const char *algorithm)
{
    return strcmp(algorithm, "RING") == 0;
}

static bool fill_v1(const struct profiler_event_v5 *e, const struct hostnccl_op *op,
                    struct profiler_event_v1 *ret)
{
    *ret =
        (struct profiler_event_v1){.type = (uint8_t)e->type, .parent = e->parent, .rank = e->rank};
    switch (e->type) {
    case PROFILE_GROUP:
        return true;
    case PROFILE_COLL:
        ret->parent = e->coll.parent_group;
        ret->coll.name = op->comm->settings.name;
        ret->coll.hash = op->comm->hash;
        ret->coll.seq = e->coll.seq;
        ret->coll.func = (uint8_t)op->func;
        ret->coll.in = e->coll.in;
        ret->coll.out = e->coll.out;
        ret->coll.count = e->coll.count;
        ret->coll.root = e->coll.root;
        ret->coll.datatype = (uint8_t)(is_copy(op) ? ncclInt8 : op->datatype);
        ret->coll.op = (uint32_t)op->redop;
        ret->coll.channels = 1;
        ret->coll.warps = 1;
        ret->coll.algorithm = algorithm_number(e->coll.algorithm);
        ret->coll.protocol = 2;
        return true;
    case PROFILE_P2P:
        ret->parent = e->p2p.parent_group;
        ret->p2p.name = op->comm->settings.name;
        ret->p2p.hash = op->comm->hash;
        ret->p2p.func = (uint8_t)op->func;
        ret->p2p.buffer = e->p2p.buffer;
        ret->p2p.datatype = (uint8_t)op->datatype;
        ret->p2p.count = e->p2p.count;
        ret->p2p.peer = e->p2p.peer;
        return true;
    default:
        return false;
    }
}

/* The members that versions 2 to 5 share; `group` is where those before 5 have the parent. */
#define FILL_COLL(to, e)                                                                           \
    ((to)->coll.seq = (e)->coll.seq, (to)->coll.func = (e)->coll.func,                             \
     (to)->coll.in = (e)->coll.in, (to)->coll.out = (e)->coll.out,                                 \
     (to)->coll.count = (e)->coll.count, (to)->coll.root = (e)->coll.root,                         \
     (to)->coll.datatype = (e)->coll.datatype, (to)->coll.channels = (e)->coll.channels,           \
     (to)->coll.warps = (e)->coll.warps, (to)->coll.algorithm = (e)->coll.algorithm,               \
     (to)->coll.protocol = (e)->coll.protocol)
#define FILL_P2P(to, e)                                                                            \
    ((to)->p2p.func = (e)->p2p.func, (to)->p2p.buffer = (e)->p2p.buffer,                           \
     (to)->p2p.datatype = (e)->p2p.datatype, (to)->p2p.count = (e)->p2p.count,                     \
     (to)->p2p.peer = (e)->p2p.peer)

static bool fill_v2(const struct profiler_event_v5 *e, const struct hostnccl_op *op,
                    struct profiler_event_v2 *ret)
{
    *ret =
        (struct profiler_event_v2){.type = (uint8_t)e->type, .parent = e->parent, .rank = e->rank};
    if (e->type == PROFILE_COLL) {
        ret->parent = e->coll.parent_group;
        FILL_COLL(ret, e);
        ret->coll.name = op->comm->settings.name;
        ret->coll.hash = op->comm->hash;
    } else if (e->type == PROFILE_P2P) {
        ret->parent = e->p2p.parent_group;
        FILL_P2P(ret, e);
        ret->p2p.name = op->comm->settings.name;
        ret->p2p.hash = op->comm->hash;
    }
    return e->type & (PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P);
}

static bool fill_v3(const struct profiler_event_v5 *e, const struct hostnccl_op *op,
                    struct profiler_event_v3 *ret)
{
    *ret =
        (struct profiler_event_v3){.type = (uint8_t)e->type, .parent = e->parent, .rank = e->rank};
    if (e->type == PROFILE_COLL) {
        ret->parent = e->coll.parent_group;
        FILL_COLL(ret, e);
        ret->coll.name = op->comm->settings.name;
        ret->coll.hash = op->comm->hash;
    } else if (e->type == PROFILE_P2P) {
        ret->parent = e->p2p.parent_group;
        FILL_P2P(ret, e);
        ret->p2p.name = op->comm->settings.name;
        ret->p2p.hash = op->comm->hash;
    }
    return e->type & (PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P | PROFILE_KERNEL_CH);
}

static bool fill_v4(const struct profiler_event_v5 *e, struct profiler_event_v4 *ret)
{
    *ret =
        (struct profiler_event_v4){.type = (uint8_t)e->type, .parent = e->parent, .rank = e->rank};
    if (e->type == PROFILE_COLL) {
        ret->parent = e->coll.parent_group;
        FILL_COLL(ret, e);
    } else if (e->type == PROFILE_P2P) {
        ret->parent = e->p2p.parent_group;
        FILL_P2P(ret, e);
        ret->p2p.channels = e->p2p.channels;
    } else if (e->type == PROFILE_KERNEL_CH) {
        ret->kernel_ch.channel = e->kernel_ch.channel;
        ret->kernel_ch.timer = e->kernel_ch.timer;
    }
    return e->type & (PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P | PROFILE_KERNEL_CH);
}

/* NULL: the plug-in's version knows no such event, or it wants none. `op` for its communicator. */
static void *start(ncclComm_t comm, const struct hostnccl_op *op, struct profiler_event_v5 *e)
{
    union {
        struct profiler_event_v1 v1;
        struct profiler_event_v2 v2;
        struct profiler_event_v3 v3;
        struct profiler_event_v4 v4;
    } older;
    bool known = true;
    void *descriptor = plugin.version >= 5 ? (void *)e : (void *)&older, *handle = NULL;
    if (plugin.version == 4)
        known = fill_v4(e, &older.v4);
    else if (plugin.version == 3)
        known = fill_v3(e, op, &older.v3);
    else if (plugin.version == 2)
        known = fill_v2(e, op, &older.v2);
    else if (plugin.version == 1)
        known = fill_v1(e, op, &older.v1);
    if (!known || plugin.table->start_event(comm->profiler_context, &handle, descriptor) != 0)
        return NULL;
    return handle;
}

static void stop(void *handle)
{
    if (handle)
        plugin.table->stop_event(handle);
}

static void record(void *handle, int state, uint64_t timer, int since_version)
{
    union profiler_state_v4 arguments = {.kernel_ch = {timer}};
    if (handle && plugin.version >= since_version)
        plugin.table->record_event_state(handle, state, timer ? &arguments : NULL);
}

/* ---- API calls and groups ---- */

enum {
    BELOW_COLL = PROFILE_COLL | PROFILE_BELOW_TASK,
    BELOW_P2P = PROFILE_P2P | PROFILE_BELOW_TASK,
    BELOW_GROUP = PROFILE_GROUP | BELOW_COLL | BELOW_P2P,
    BELOW_GROUP_API = PROFILE_GROUP_API | PROFILE_COLL_API | PROFILE_P2P_API |
                      PROFILE_KERNEL_LAUNCH | BELOW_GROUP,
};

static void start_api_group(const struct hostnccl_op *op)
{
    if (api_group.depth > 0 || !wants(BELOW_GROUP_API))
        return;
    struct profiler_event_v5 e = {.type = PROFILE_GROUP_API};
    e.group_api.depth = hostnccl_group_depth();
    e.group_api.captured = op->graph != 0;
    api_group.event = start(op->comm, op, &e);
    api_group.depth = hostnccl_group_depth();
    record(api_group.event, STATE_GROUP_START_API_STOP, 0, 5);
}

void hostnccl_profiler_call_begin(struct hostnccl_op *op)
{
    bool p2p = hostnccl_is_p2p(op);
    op->api_event = NULL;
    if (!op->comm->profiled || (op->comm->size == 1 && !p2p))
        return;
    start_api_group(op);
    if (!wants(p2p ? PROFILE_P2P_API | BELOW_P2P : PROFILE_COLL_API | BELOW_COLL))
        return;
    struct profiler_event_v5 e = {.type = p2p ? PROFILE_P2P_API : PROFILE_COLL_API,
                                  .parent = api_group.event};
    if (p2p) {
        e.p2p_api.func = func_names[op->func];
        e.p2p_api.count = op->count;
        e.p2p_api.datatype = hostnccl_datatype_name(op->datatype);
        e.p2p_api.stream = op->stream;
        e.p2p_api.captured = op->graph != 0;
    } else {
        e.coll_api.func = func_names[op->func];
        e.coll_api.count = op->count;
        e.coll_api.datatype = hostnccl_datatype_name(op->datatype);
        e.coll_api.root = op->root;
        e.coll_api.stream = op->stream;
        e.coll_api.captured = op->graph != 0;
    }
    op->api_event = start(op->comm, op, &e);
}

void hostnccl_profiler_call_end(struct hostnccl_op *op)
{
    stop(op->api_event);
}

void *hostnccl_profiler_group_event(void)
{
    return api_group.event;
}

void hostnccl_profiler_group_end(void)
{
    if (api_group.depth > 0 && --api_group.depth == 0)
        record(api_group.event, STATE_GROUP_END_API_START, 0, 5);
}

void hostnccl_profiler_group_stop(void)
{
    stop(api_group.event);
    api_group.event = NULL;
}

/* ---- launches ---- */

static void start_task(struct hostnccl_op *op, void *group, uint64_t seq)
{
    struct profiler_event_v5 e = {.parent = op->api_event, .rank = op->comm->rank};
    bool copies = is_copy(op);
    if (hostnccl_is_p2p(op)) {
        e.type = PROFILE_P2P;
        e.p2p.func = func_names[op->func];
        e.p2p.buffer = op->func == FUNC_SEND ? (void *)(uintptr_t)op->in : op->out;
        e.p2p.datatype = hostnccl_datatype_name(op->datatype);
        e.p2p.count = op->count;
        e.p2p.peer = op->root;
        e.p2p.channels = 1;
        e.p2p.parent_group = group;
    } else {
        e.type = PROFILE_COLL;
        e.coll.seq = seq;
        e.coll.func = func_names[op->func];
        e.coll.in = op->in;
        e.coll.out = op->out;
        e.coll.count = copies ? op->count * rt_type_bytes(op->type) : op->count;
        e.coll.root = op->root;
        e.coll.datatype = copies ? "ncclInt8" : hostnccl_datatype_name(op->datatype);
        e.coll.channels = 1;
        e.coll.warps = 1;
        e.coll.algorithm = hostnccl_algorithm(op);
        e.coll.protocol = "SIMPLE";
        e.coll.parent_group = group;
    }
    op->event = start(op->comm, op, &e);
}

/* One rank alone has no kernel in NCCL. Numbers count whether or not anybody listens. */
void hostnccl_profiler_launch_begin(struct hostnccl_plan *plan, bool tasks,
                                    struct hostnccl_profiler_launch *ret)
{
    *ret = (struct hostnccl_profiler_launch){.on = plan->comm->profiled && plan->comm->size > 1};
    if (ret->on && tasks && wants(BELOW_GROUP)) {
        struct profiler_event_v5 e = {.type = PROFILE_GROUP};
        ret->group = start(plan->comm, plan->ops, &e);
    }
    for (struct hostnccl_op *op = plan->ops; op && tasks; op = op->next) {
        bool p2p = hostnccl_is_p2p(op);
        uint64_t *numbers = plan->comm->seq_numbers; /* a replay's thread takes some, too */
        uint64_t seq = p2p ? 0 : __atomic_fetch_add(&numbers[op->func], 1, __ATOMIC_RELAXED);
        if (ret->on && wants(p2p ? BELOW_P2P : BELOW_COLL))
            start_task(op, ret->group, seq);
    }
}

void hostnccl_profiler_kernel_launch(struct hostnccl_plan *plan, cudaStream_t stream,
                                     struct hostnccl_profiler_launch *launch)
{
    if (launch->on && wants(PROFILE_KERNEL_LAUNCH)) {
        struct profiler_event_v5 e = {.type = PROFILE_KERNEL_LAUNCH,
                                      .parent = plan->api_group_event};
        e.kernel_launch.stream = stream;
        launch->kernel = start(plan->comm, plan->ops, &e);
    }
}

void hostnccl_profiler_launch_end(const struct hostnccl_profiler_launch *launch,
                                  void *const *events, unsigned n)
{
    if (!launch->on)
        return;
    stop(launch->kernel);
    for (unsigned i = 0; i < n; i++)
        stop(events[i]);
    stop(launch->group);
}

void hostnccl_profiler_replay(struct hostnccl_plan *plan)
{
    struct hostnccl_profiler_launch launch;
    hostnccl_profiler_launch_begin(plan, true, &launch);
    for (struct hostnccl_op *op = plan->ops; op && launch.on; op = op->next)
        stop(op->event);
    hostnccl_profiler_launch_end(&launch, NULL, 0);
}

/* ---- execution ---- */

static uint64_t timer_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void hostnccl_profiler_kernel_begin(struct hostnccl_op *op)
{
    op->kernel_event = NULL;
    if (!op->event || !wants(PROFILE_KERNEL_CH))
        return;
    struct profiler_event_v5 e = {.type = PROFILE_KERNEL_CH, .parent = op->event};
    e.kernel_ch.timer = timer_ns();
    op->kernel_event = start(op->comm, op, &e);
}

void hostnccl_profiler_kernel_end(struct hostnccl_op *op)
{
    if (!op->kernel_event)
        return;
    record(op->kernel_event, STATE_KERNEL_CH_STOP, timer_ns(), 4);
    stop(op->kernel_event);
}
