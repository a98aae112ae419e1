/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler.c - the NCCL profiler plug-in, versions 1 to 6: device intervals of NCCL's operations.
 *
 * NCCL tells of an operation by up to three kinds of event: the API call (from v5, from inside the
 * wrapped call), the task (when it is enqueued, in another order than that of the calls), and its
 * kernel channels (from v3) and proxy operations. It is done when the last of both is: data may
 * still be on its way when the kernel has ended. Steps of a proxy operation and network events
 * below them are summed up (proxy.h): they are many for each message. All of an operation have one
 * execution (execution.h), whose handle is the handle of its API and task events; only channels
 * have their own. The wrapped call gives the facts: an API event is of the thread's current call, a
 * task that names none (before v5) of the call with its function, buffers and size among those of
 * the thread's group. NCCL's own sequence number counts by function and is not used. Where the
 * wrappers see nothing (plug-in without preload), the events' own facts do, and collectives are
 * numbered in the order in which NCCL tells of them. Where they do, an event without a call is that
 * of a graph that is launched again, and has no number. stopEvent of a task means that it was
 * enqueued, so it does nothing here. Copy-engine collectives (v6) are not asked for: they have no
 * device interval.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device-clock.h"
#include "execution.h"
#include "library.h"
#include "ops-numbers.h"
#include "profiler-abi.h"
#include "proxy.h"
#include "record.h"
#include "unobserved.h"

/* One for each communicator and as long as the process: events may come after its end. */
struct context {
    struct context *next; /* of all: none is freed, as events may come after its end */
    struct rs_device_clock clock;
    struct rs_comm *on; /* atomic: learnt from the first wrapped call */
    uint64_t id;
    int32_t rank, size; /* size 0: this version does not tell */
};

/* An event, whatever its version. */
struct event {
    uint64_t type, parent, timer;
    int32_t rank, peer, pid;
    const char *func, *datatype;
    uint8_t func_number, datatype_number;
    const void *send, *recv; /* of a message the one buffer, twice */
    bool captured;           /* into a graph */
    bool is_beside;          /* a proxy operation: kernel channels are told of, too */
    uint64_t count;
    unsigned channels;
    const struct rs_profile_net_plugin *net;
};

#define HANDLE_NOTHING 1u /* of events that we were told of and don't need */
#define HANDLE_OFF                                                                                 \
    2u /* of those that began while capture was off: what they begin isn't recorded */
#define NUMBER_NONE 0xff

static const struct {
    const char *name;
    uint16_t op;
} functions[] = {
    /* by NCCL's own numbers, as v1 has them */
    {"Broadcast", RS_OP_ncclBroadcast}, {"Reduce", RS_OP_ncclReduce},
    {"AllGather", RS_OP_ncclAllGather}, {"ReduceScatter", RS_OP_ncclReduceScatter},
    {"AllReduce", RS_OP_ncclAllReduce}, {"SendRecv", 0},
    {"Send", RS_OP_ncclSend},           {"Recv", RS_OP_ncclRecv},
    {"AlltoAll", RS_OP_ncclAlltoAll},   {"Scatter", RS_OP_ncclScatter},
    {"Gather", RS_OP_ncclGather},
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

static uint16_t op_of(const struct event *e)
{
    if (!e->func)
        return e->func_number < FUNCTIONS ? functions[e->func_number].op : 0;
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strcmp(e->func, functions[i].name) == 0)
            return functions[i].op;
    return 0;
}

static ncclDataType_t datatype_of(const struct event *e)
{
    if (!e->datatype)
        return e->datatype_number;
    for (ncclDataType_t i = 0; i < RS_NCCL_TYPES; i++)
        if (strcmp(e->datatype, rs_nccl_type_name(i)) == 0)
            return i;
    return -1;
}

static bool is_message(uint16_t op)
{
    return op == RS_OP_ncclSend || op == RS_OP_ncclRecv;
}

/* NCCL runs these as several messages. */
static bool has_parts(uint16_t op)
{
    return op == RS_OP_ncclAlltoAll || op == RS_OP_ncclGather || op == RS_OP_ncclScatter;
}

/* ---- executions of wrapped calls ---- */

static uint64_t execution_of_call(struct context *x, struct rs_nccl_call *c)
{
    struct rs_execution_facts facts = {.on = c->on,
                                       .op = c->op,
                                       .flags = c->flags,
                                       .peer = c->peer,
                                       .count = c->count,
                                       .dtype = c->dtype,
                                       .redop = c->redop,
                                       .seq = c->seq};
    if (!c->execution)
        c->execution = rs_execution_new(&facts, has_parts(c->op));
    __atomic_store_n(&x->on, c->on, __ATOMIC_RELEASE);
    return c->execution;
}

static bool same_function(const struct rs_nccl_call *c, const struct event *e)
{
    uint16_t op = op_of(e);
    return c->op == op || (c->op == RS_OP_ncclBcast && op == RS_OP_ncclBroadcast);
}

static bool within(const void *p, const void *base, uint64_t bytes)
{
    return base && (uintptr_t)p >= (uintptr_t)base && (uintptr_t)p - (uintptr_t)base < bytes;
}

/* A message that is part of a call of another function. */
static bool is_part(const struct rs_nccl_call *c, const struct event *e)
{
    uint64_t bytes = c->count * c->dtype_bytes * (uint64_t)c->on->size;
    return has_parts(c->op) && is_message(op_of(e)) &&
           (within(e->send, c->send, bytes) || within(e->send, c->recv, bytes));
}

/* Sizes are compared in bytes: some collectives are told of as bytes. */
static bool is_task_of(const struct rs_nccl_call *c, const struct event *e)
{
    if (!c->on || !c->is_operation || c->on->rank != e->rank)
        return false;
    if (is_part(c, e))
        return true;
    uint64_t bytes = c->count * c->dtype_bytes;
    if (c->execution || !same_function(c, e) ||
        bytes != e->count * rs_nccl_type_bytes(datatype_of(e)))
        return false;
    if (is_message(c->op))
        return c->peer == e->peer && e->send == (c->send ? c->send : c->recv);
    return e->recv == c->recv && e->send == c->send;
}

/* Before v5: the call a task belongs to, NULL unknown. */
static struct rs_nccl_call *find_call(const struct event *e)
{
    struct rs_nccl_call *c = rs_nccl_current;
    if (c && c->is_operation && is_task_of(c, e))
        return c;
    for (unsigned i = 0; (c = rs_nccl_waiting(i)); i++)
        if (is_task_of(c, e))
            return c;
    return NULL;
}

/* ---- executions that no wrapper saw ---- */

static struct rs_comm *comm_of(struct context *x)
{
    struct rs_comm *on = __atomic_load_n(&x->on, __ATOMIC_ACQUIRE);
    if (on || x->size <= 0)
        return on;
    int saved = errno;
    uint64_t identity = rs_hash_mix(RS_COMM_NCCL, x->id);
    on = rs_core->define_comm(RS_COMM_NCCL, (uintptr_t)x, identity, 0, x->rank, x->size, NULL, -1,
                              NULL);
    __atomic_store_n(&x->on, on, __ATOMIC_RELEASE);
    errno = saved;
    return on;
}

static void define_op_once(uint16_t op)
{
    static uint32_t defined;
    uint32_t bit = 1u << (op % 32);
    if (!(__atomic_fetch_or(&defined, bit, __ATOMIC_RELAXED) & bit))
        rs_core->define_op(op);
}

static uint64_t execution_of_event(struct context *x, const struct event *e)
{
    struct rs_comm *on = comm_of(x);
    uint16_t op = op_of(e);
    if (!on || !op)
        return 0;
    struct rs_nccl_call typed = {.op = op};
    rs_nccl_typed(&typed, datatype_of(e));
    struct rs_execution_facts facts = {
        .on = on, .op = op, .peer = e->peer, .count = e->count, .dtype = typed.dtype};
    facts.flags = e->captured ? RS_EVENT_CAPTURED : 0;
    if (rs_nccl_is_wrapped())
        facts.flags |= RS_EVENT_NO_SEQ;
    else if (!is_message(op))
        facts.seq = on->next_seq++;
    define_op_once(op);
    return rs_execution_new(&facts, false);
}

static void count_operation(struct context *x, uint16_t op)
{
    struct rs_comm *on = op && !is_message(op) ? comm_of(x) : NULL;
    if (on)
        on->next_seq++;
}

/* ---- events ---- */

static uint64_t start_call(struct context *x, const struct event *e)
{
    struct rs_nccl_call *c = rs_nccl_current;
    if (!c || !c->on || !c->is_operation)
        return execution_of_event(x, e);
    if (c->off)
        return HANDLE_OFF;
    c->flags |= e->captured ? RS_EVENT_CAPTURED : 0;
    return execution_of_call(x, c);
}

static uint64_t start_task(struct context *x, const struct event *e)
{
    uint64_t execution = e->parent;
    if (execution == HANDLE_OFF)
        return HANDLE_OFF;
    if (!rs_execution_expect(execution, e->channels)) {
        struct rs_nccl_call *c = find_call(e);
        if (c && c->off)
            return HANDLE_OFF;
        execution = c ? execution_of_call(x, c) : execution_of_event(x, e);
        rs_execution_expect(execution, e->channels);
    }
    if (e->type == RS_PROFILE_P2P)
        rs_execution_set_peer(execution, e->peer);
    return execution;
}

static uint64_t start_channel(struct context *x, const struct event *e)
{
    if (e->type == RS_PROFILE_PROXY_OP && e->pid != getpid())
        return 0; /* of another process, whose handles are not ours */
    if (e->type == RS_PROFILE_PROXY_OP && e->is_beside)
        return rs_channel_begin_beside(e->parent);
    return rs_channel_begin(e->parent, rs_device_clock_tick(&x->clock, e->timer));
}

/* Capture is switched off. What runs goes on to its end, what is captured into a graph may be
 * launched later on, and where we number collectives ourselves they go on to be counted. */
static uint64_t start_while_off(struct context *x, const struct event *e)
{
    bool is_api = e->type == RS_PROFILE_COLL_API || e->type == RS_PROFILE_P2P_API;
    bool is_task = e->type == RS_PROFILE_COLL || e->type == RS_PROFILE_P2P;
    bool is_channel = e->type == RS_PROFILE_PROXY_OP || e->type == RS_PROFILE_KERNEL_CH;
    bool is_other = e->type == RS_PROFILE_PROXY_OP && (e->is_beside || e->pid != getpid());
    if (is_api && e->captured)
        return execution_of_event(x, e);
    if (is_channel && rs_execution_is_running(e->parent))
        return start_channel(x, e);
    if (is_channel && !is_other)
        rs_execution_expect_less(e->parent);
    if ((is_api || (is_task && !e->parent)) && !rs_nccl_is_wrapped())
        count_operation(x, op_of(e));
    return HANDLE_OFF;
}

static uint64_t net_bytes(const struct rs_profile_net_plugin *net)
{
    if (net && net->data && net->id == RS_PROFILE_NET_IB_1)
        return ((const struct rs_profile_net_ib *)net->data)->length;
    if (net && net->data && net->id == RS_PROFILE_NET_SOCKET_1)
        return ((const struct rs_profile_net_socket *)net->data)->length;
    return 0;
}

static void start(struct context *x, void **handle, const struct event *e)
{
    uint64_t h = 0;
    *handle = NULL;
    if (!rs_core->on[RS_ON_KEEP])
        return;
    if (e->type == RS_PROFILE_PROXY_STEP || e->type == RS_PROFILE_NET_PLUGIN) {
        h = e->type == RS_PROFILE_PROXY_STEP ? rs_proxy_step(rs_channel_sums(e->parent))
                                             : rs_proxy_net(e->parent, net_bytes(e->net));
        *handle = (void *)(uintptr_t)h;
        return;
    }
    if (!rs_core->on[RS_ON_RECORD]) {
        *handle = (void *)(uintptr_t)start_while_off(x, e);
        return;
    }
    switch (e->type) {
    case RS_PROFILE_COLL_API:
    case RS_PROFILE_P2P_API:
        h = start_call(x, e);
        break;
    case RS_PROFILE_COLL:
    case RS_PROFILE_P2P:
        h = start_task(x, e);
        break;
    case RS_PROFILE_PROXY_OP:
    case RS_PROFILE_KERNEL_CH:
        h = start_channel(x, e);
        break;
    default:
        h = HANDLE_NOTHING;
    }
    *handle = (void *)(uintptr_t)h;
}

static int stop_event(void *handle)
{
    if (rs_core && !rs_proxy_stop((uintptr_t)handle))
        rs_channel_stop((uintptr_t)handle);
    return RS_NCCL_SUCCESS;
}

static bool is_of_step(int state)
{
    return (state >= RS_PROFILE_STEP_SEND_GPU_WAIT && state <= RS_PROFILE_STEP_RECV_GPU_WAIT) ||
           state == RS_PROFILE_STEP_SEND_PEER_WAIT;
}

/* Before v4 a step's state has no argument, and none holds a timer. */
static int record_state_v1(void *handle, int state, void *arguments)
{
    if (rs_core && is_of_step(state))
        rs_proxy_state((uintptr_t)handle, state, 0);
    return RS_NCCL_SUCCESS;
}

/* The clock of whichever communicator: all are of one kind of device. */
static struct rs_device_clock *any_clock;

static int record_state(void *handle, int state, void *arguments)
{
    uint64_t timer;
    size_t bytes = 0;
    if (rs_core && is_of_step(state)) {
        if (arguments)
            memcpy(&bytes, arguments, sizeof bytes);
        rs_proxy_state((uintptr_t)handle, state, bytes);
        return RS_NCCL_SUCCESS;
    }
    if (state != RS_PROFILE_KERNEL_CH_STOP || !arguments || !rs_core || !any_clock)
        return RS_NCCL_SUCCESS;
    memcpy(&timer, arguments, sizeof timer);
    rs_channel_ends((uintptr_t)handle, rs_device_clock_tick(any_clock, timer));
    return RS_NCCL_SUCCESS;
}

static int finalize(void *context)
{
    struct context *x = context;
    struct rs_comm *on = x ? __atomic_load_n(&x->on, __ATOMIC_ACQUIRE) : NULL;
    if (on && rs_core && rs_core->on[RS_ON_KEEP])
        rs_executions_finish(on);
    if (rs_core && rs_executions_lost() > 0)
        rs_core->meta("off.nccl.device", "some executions: too many were under way at once");
    return RS_NCCL_SUCCESS;
}

/* ---- init, by version ---- */

enum {
    MASK_V1 = RS_PROFILE_COLL | RS_PROFILE_P2P | RS_PROFILE_PROXY_OP | RS_PROFILE_PROXY_STEP,
    MASK_V3 = MASK_V1 | RS_PROFILE_KERNEL_CH | RS_PROFILE_NET_PLUGIN,
    MASK_V5 = MASK_V3 | RS_PROFILE_GROUP_API | RS_PROFILE_COLL_API | RS_PROFILE_P2P_API,
};

static struct context *contexts;

static int init(void **context, int *mask, int events, uint64_t id, int ranks, int rank,
                const void *caller)
{
    rs_nccl_came(caller);
    int saved = errno;
    struct context *x = NULL;
    if (rs_core && rs_core->on[RS_ON_KEEP] && (rs_core->parts & RS_PART_NCCL) &&
        rs_executions_init() && rs_proxy_init())
        x = calloc(1, sizeof *x);
    if (x) {
        rs_device_clock_init(&x->clock);
        x->id = id;
        x->rank = rank;
        x->size = ranks;
        any_clock = &x->clock;
        x->next = __atomic_load_n(&contexts, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&contexts, &x->next, x, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            ;
    }
    if (context)
        *context = x;
    if (mask)
        *mask = x ? events : 0;
    errno = saved;
    return RS_NCCL_SUCCESS;
}

typedef void log_fn(int level, unsigned long flags, const char *file, int line, const char *format,
                    ...);

#define CALLER __builtin_return_address(0)

static int init_v1(void **context, int *mask)
{
    return init(context, mask, MASK_V1, 0, 0, -1, CALLER);
}

static int init_v3(void **context, int *mask)
{
    return init(context, mask, MASK_V3, 0, 0, -1, CALLER);
}

static int init_v4(void **context, int *mask, const char *name, uint64_t id, int nodes, int ranks,
                   int rank, log_fn *log)
{
    return init(context, mask, MASK_V3, id, ranks, rank, CALLER);
}

static int init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                   int rank, log_fn *log)
{
    return init(context, mask, MASK_V5, id, ranks, rank, CALLER);
}

/* ---- startEvent, by version ---- */

static struct event event_of_head(const struct rs_profile_head *h)
{
    return (struct event){.type = h->type,
                          .parent = (uintptr_t)h->parent,
                          .rank = h->rank,
                          .peer = -1,
                          .func_number = NUMBER_NONE,
                          .datatype_number = NUMBER_NONE};
}

/* What the versions' tasks have in common. */
#define READ_COLL(e, c)                                                                            \
    ((e).send = (c).send, (e).recv = (c).recv, (e).count = (c).count, (e).peer = (c).root)
#define READ_P2P(e, p)                                                                             \
    ((e).send = (e).recv = (p).buffer, (e).count = (p).count, (e).peer = (p).peer)
#define READ_NAMES(e, d)   ((e).func = (d).func, (e).datatype = (d).datatype)
#define READ_NUMBERS(e, d) ((e).func_number = (d).func, (e).datatype_number = (d).datatype)

static int start_v1(void *context, void **handle, void *descriptor)
{
    const struct rs_profile_v1 *d = descriptor;
    if (!context || !handle || !d)
        return RS_NCCL_SUCCESS;
    struct event e = event_of_head(&d->head);
    if (e.type == RS_PROFILE_COLL || e.type == RS_PROFILE_P2P)
        e.parent = 0; /* a task's is its group */
    if (e.type == RS_PROFILE_COLL)
        READ_COLL(e, d->coll), READ_NUMBERS(e, d->coll);
    else if (e.type == RS_PROFILE_P2P)
        READ_P2P(e, d->p2p), READ_NUMBERS(e, d->p2p);
    else if (e.type == RS_PROFILE_PROXY_OP)
        e.pid = d->proxy_op.pid;
    start(context, handle, &e);
    return RS_NCCL_SUCCESS;
}

static int start_v2_or_v3(void *context, void **handle, const struct rs_profile_v2 *d, bool v3)
{
    if (!context || !handle || !d)
        return RS_NCCL_SUCCESS;
    struct event e = event_of_head(&d->head);
    if (e.type == RS_PROFILE_COLL)
        e.parent = 0, READ_COLL(e, d->coll), READ_NAMES(e, d->coll);
    else if (e.type == RS_PROFILE_P2P)
        e.parent = 0, READ_P2P(e, d->p2p), READ_NAMES(e, d->p2p);
    else if (e.type == RS_PROFILE_PROXY_OP)
        e.pid = d->proxy_op.pid, e.is_beside = v3;
    else if (e.type == RS_PROFILE_NET_PLUGIN)
        e.net = &d->net_plugin;
    start(context, handle, &e);
    return RS_NCCL_SUCCESS;
}

static int start_v2(void *context, void **handle, void *descriptor)
{
    return start_v2_or_v3(context, handle, descriptor, false);
}

static int start_v3(void *context, void **handle, void *descriptor)
{
    return start_v2_or_v3(context, handle, descriptor, true);
}

static int start_v4(void *context, void **handle, void *descriptor)
{
    const struct rs_profile_v4 *d = descriptor;
    if (!context || !handle || !d)
        return RS_NCCL_SUCCESS;
    struct event e = event_of_head(&d->head);
    if (e.type == RS_PROFILE_COLL)
        e.parent = 0, e.channels = d->coll.channels, READ_COLL(e, d->coll), READ_NAMES(e, d->coll);
    else if (e.type == RS_PROFILE_P2P)
        e.parent = 0, e.channels = d->p2p.channels, READ_P2P(e, d->p2p), READ_NAMES(e, d->p2p);
    else if (e.type == RS_PROFILE_KERNEL_CH)
        e.timer = d->kernel_ch.timer;
    else if (e.type == RS_PROFILE_PROXY_OP)
        e.pid = d->proxy_op.pid, e.is_beside = true;
    else if (e.type == RS_PROFILE_NET_PLUGIN)
        e.net = &d->net_plugin;
    start(context, handle, &e);
    return RS_NCCL_SUCCESS;
}

static int start_v5(void *context, void **handle, void *descriptor) /* and v6 */
{
    const struct rs_profile_v5 *d = descriptor;
    if (!context || !handle || !d)
        return RS_NCCL_SUCCESS;
    struct event e =
        event_of_head(&(struct rs_profile_head){.parent = d->head.parent, .rank = d->head.rank});
    e.type = d->head.type;
    switch (e.type) {
    case RS_PROFILE_COLL_API:
        e.count = d->coll_api.count, e.peer = d->coll_api.root, READ_NAMES(e, d->coll_api);
        e.captured = d->coll_api.captured;
        break;
    case RS_PROFILE_P2P_API:
        e.count = d->p2p_api.count, READ_NAMES(e, d->p2p_api);
        e.captured = d->p2p_api.captured;
        break;
    case RS_PROFILE_COLL:
        e.channels = d->coll.channels, READ_COLL(e, d->coll), READ_NAMES(e, d->coll);
        break;
    case RS_PROFILE_P2P:
        e.channels = d->p2p.channels, READ_P2P(e, d->p2p), READ_NAMES(e, d->p2p);
        break;
    case RS_PROFILE_KERNEL_CH:
        e.timer = d->kernel_ch.timer;
        break;
    case RS_PROFILE_PROXY_OP:
        e.pid = d->proxy_op.pid, e.is_beside = true;
        break;
    case RS_PROFILE_NET_PLUGIN:
        e.net = &d->net_plugin;
    }
    start(context, handle, &e);
    return RS_NCCL_SUCCESS;
}

/* ---- what is exported ---- */

#define TABLE(version, init_function, start_function, state_function)                              \
    RS_EXPORT extern const struct rs_profiler_table ncclProfiler_v##version;                       \
    const struct rs_profiler_table ncclProfiler_v##version = {                                     \
        "Ringscope", (void (*)(void))init_function, start_function, stop_event, state_function,    \
        finalize}

TABLE(1, init_v1, start_v1, record_state_v1);
TABLE(2, init_v1, start_v2, record_state_v1);
TABLE(3, init_v3, start_v3, record_state_v1);
TABLE(4, init_v4, start_v4, record_state);
TABLE(5, init_v5, start_v5, record_state);
TABLE(6, init_v5, start_v5, record_state);
