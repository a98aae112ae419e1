/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's side of the profiler plug-in played in all versions, orders and disorders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nccl/execution.h"
#include "nccl/profiler-abi.h"
#include "nccl/record.h"
#include "ops-numbers.h"

#define SLOTS 1024

extern const struct rs_profiler_table ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3,
    ncclProfiler_v4, ncclProfiler_v5, ncclProfiler_v6;

/* ---- a tracer's core of one thread ---- */

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;

static volatile uint32_t epoch, on[RS_ON_WORDS] = {1, 1, 1};
static struct rs_ring_thread ring;
static struct rs_event slots[SLOTS];
static struct rs_thread thread = {.ring = &ring, .slots = slots, .mask = SLOTS - 1, .limit = SLOTS};
static struct rs_comm world = {.identity = 7, .id = 3, .rank = 1, .size = 4};
static struct rs_comm alone;
static const char *texts[16];
static struct rs_type type = {.id = 9};

static struct rs_thread *own_thread(void)
{
    return &thread;
}
static bool make_room(struct rs_thread *t, unsigned n)
{
    t->limit = t->keeping ? 0 : SLOTS;
    return t->head + n <= t->limit;
}
static void note_op(uint16_t op)
{
}
static struct rs_type *any_type(uint32_t api, uint64_t handle, const char *name, uint64_t size)
{
    return &type;
}
static struct rs_comm *made_comm(enum rs_comm_api api, uint64_t handle, uint64_t identity,
                                 uint64_t parent, int32_t rank, int32_t size,
                                 const int32_t *members, int32_t device, const char *name)
{
    alone = (struct rs_comm){.identity = identity, .id = 5, .rank = rank, .size = size};
    return &alone;
}
static void note_meta(const char *key, const char *value)
{
}

static uint32_t place_of_text(const char *text, size_t bytes)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!texts[i])
            texts[i] = text;
        if (strlen(texts[i]) == bytes && memcmp(texts[i], text, bytes) == 0)
            return (uint32_t)i + 1;
    }
    return 0;
}

static struct rs_core core = {
    .string = place_of_text,
    .parts = RS_PART_NCCL,
    .epoch = &epoch,
    .on = on,
    .thread = own_thread,
    .make_room = make_room,
    .define_op = note_op,
    .define_dtype = any_type,
    .define_comm = made_comm,
    .meta = note_meta,
};

static int fresh(void **state)
{
    rs_core = &core;
    rs_self = NULL;
    thread.head = 0;
    thread.depth = 0;
    world.next_seq = 0;
    rs_nccl_current = NULL;
    memset(slots, 0, sizeof slots);
    return 0;
}

/* ---- NCCL's side ---- */

typedef int init_v1(void **context, int *mask);
typedef int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
                    int ranks, int rank, void *log);
typedef int init_v5(void **context, uint64_t hash, int *mask, const char *name, int nodes,
                    int ranks, int rank, void *log);

static const struct rs_profiler_table *const tables[] = {
    NULL,
    &ncclProfiler_v1,
    &ncclProfiler_v2,
    &ncclProfiler_v3,
    &ncclProfiler_v4,
    &ncclProfiler_v5,
    &ncclProfiler_v6,
};

static void *open_context(int version, int *ret_mask)
{
    void *context = NULL;
    void (*init)(void) = tables[version]->init;
    int result;
    *ret_mask = -1;
    if (version >= 5)
        result = ((init_v5 *)init)(&context, 42, ret_mask, NULL, 1, 4, 1, NULL);
    else if (version == 4)
        result = ((init_v4 *)init)(&context, ret_mask, NULL, 42, 1, 4, 1, NULL);
    else
        result = ((init_v1 *)init)(&context, ret_mask);
    assert_int_equal(result, 0);
    assert_non_null(context);
    return context;
}

static void *start(int version, void *context, void *descriptor)
{
    void *handle = (void *)1;
    assert_int_equal(tables[version]->start_event(context, &handle, descriptor), 0);
    return handle;
}

static struct rs_nccl_call allreduce(uint64_t count, const void *send, void *recv)
{
    return (struct rs_nccl_call){.op = RS_OP_ncclAllReduce,
                                 .peer = -1,
                                 .count = count,
                                 .on = &world,
                                 .send = send,
                                 .recv = recv};
}

static void enter(struct rs_nccl_call *c)
{
    rs_nccl_typed(c, 7);
    rs_nccl_number(c);
    rs_nccl_enter(&thread, c);
}

static void *channel(int version, void *context, void *parent)
{
    if (version >= 5) {
        struct rs_profile_v5 d = {.head = {RS_PROFILE_KERNEL_CH, parent, 1}};
        return start(version, context, &d);
    }
    struct rs_profile_v4 d = {.head = {RS_PROFILE_KERNEL_CH, parent, 1}};
    return start(version, context, &d);
}

static unsigned device_records(struct rs_event *ret_last)
{
    unsigned n = 0;
    for (unsigned i = 0; i < thread.head; i++) {
        if (slots[i].op < RS_OP_EXT && (slots[i].flags & RS_EVENT_DEVICE)) {
            *ret_last = slots[i];
            n++;
        }
    }
    return n;
}

/* ---- tests ---- */

static void execution_of_two_channels_is_one_record_with_the_calls_numbers(void **state)
{
    for (int version = 5; version <= 6; version++) {
        int mask;
        void *context = open_context(version, &mask);
        char in[8], out[8];
        struct rs_nccl_call c = allreduce(2, in, out);
        assert_true(mask & RS_PROFILE_KERNEL_CH && mask & RS_PROFILE_COLL_API);
        world.next_seq = 11;
        enter(&c);
        struct rs_profile_v5 api = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
        api.coll_api.func = "AllReduce";
        void *call = start(version, context, &api);
        struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, call, 1}};
        task.coll.func = "AllReduce";
        task.coll.seq = 99; /* NCCL's own */
        task.coll.channels = 2;
        void *coll = start(version, context, &task);
        tables[version]->stop_event(call);
        /* the device is faster than the call: a channel is through before the task is enqueued */
        void *first = channel(version, context, coll);
        tables[version]->stop_event(first);
        tables[version]->stop_event(coll);
        struct rs_event e;
        assert_int_equal(device_records(&e), version - 5);
        rs_nccl_leave_operation(&thread, &c, 0);
        void *second = channel(version, context, coll);
        tables[version]->record_event_state(second, RS_PROFILE_KERNEL_CH_STOP, NULL);
        tables[version]->stop_event(second);
        tables[version]->stop_event(second);
        assert_int_equal(device_records(&e), version - 4);
        assert_int_equal(e.op, RS_OP_ncclAllReduce);
        assert_int_equal(e.seq, 11);
        assert_int_equal(e.comm, 3);
        assert_int_equal(e.count, 2);
        assert_int_equal(e.dtype, 9);
        assert_true(e.start >= c.start && e.end >= e.start);
        assert_int_equal(tables[version]->finalize(context), 0);
    }
}

static void replayed_execution_has_no_number(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    struct rs_nccl_call c = allreduce(2, NULL, NULL);
    enter(&c);
    struct rs_profile_v5 d = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
    void *call = start(5, context, &d);
    rs_nccl_leave_operation(&thread, &c, 0);
    for (int i = 0; i < 2; i++) {
        struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, call, 1}};
        task.coll.channels = 1;
        tables[5]->stop_event(channel(5, context, start(5, context, &task)));
        struct rs_event e;
        assert_int_equal(device_records(&e), i + 1);
        assert_int_equal(!!(e.flags & RS_EVENT_NO_SEQ), i);
    }
}

/* Before v5 nothing names the call: buffers and size do, and NCCL orders by size. */
static void tasks_of_a_group_find_their_calls(void **state)
{
    int mask;
    void *context = open_context(4, &mask), *coll[3];
    static float buffer[3][100];
    static const uint64_t counts[3] = {10, 100, 10};
    rs_nccl_group_depth(1);
    for (int i = 0; i < 3; i++) {
        struct rs_nccl_call c = allreduce(counts[i], buffer[i], buffer[i]);
        enter(&c);
        rs_nccl_leave_operation(&thread, &c, 0);
    }
    rs_nccl_group_depth(-1);
    struct rs_nccl_call end = {.op = RS_OP_ncclGroupEnd, .peer = -1};
    rs_nccl_enter(&thread, &end);
    static const int order[3] = {1, 2, 0};
    for (int k = 0; k < 3; k++) {
        int i = order[k];
        struct rs_profile_v4 d = {.head = {RS_PROFILE_COLL, (void *)77, 1}};
        d.coll = (struct rs_profile_coll_v4){.func = "AllReduce",
                                             .send = buffer[i],
                                             .recv = buffer[i],
                                             .count = counts[i],
                                             .datatype = "ncclFloat32",
                                             .channels = 1};
        coll[k] = start(4, context, &d);
    }
    rs_nccl_group_end(&thread, &end, 0);
    for (int k = 0; k < 3; k++) {
        tables[4]->stop_event(channel(4, context, coll[k]));
        struct rs_event e;
        assert_int_equal(device_records(&e), k + 1);
        assert_int_equal(e.seq, order[k]);
        assert_int_equal(e.count, counts[order[k]]);
        assert_true(e.flags & RS_EVENT_GROUPED);
    }
}

/* v1 tells of the proxy alone, and perhaps of one in another process. */
static void proxy_operations_of_this_process_alone_count(void **state)
{
    int mask;
    void *context = open_context(1, &mask);
    static float buffer[10];
    assert_true(mask & RS_PROFILE_PROXY_OP);
    assert_false(mask & RS_PROFILE_KERNEL_CH);
    struct rs_nccl_call c = allreduce(10, buffer, buffer);
    enter(&c);
    struct rs_profile_v1 d = {.head = {RS_PROFILE_COLL, NULL, 1}};
    d.coll.func = 4;
    d.coll.send = d.coll.recv = buffer;
    d.coll.count = 10;
    d.coll.datatype = 7;
    void *coll = start(1, context, &d);
    rs_nccl_leave_operation(&thread, &c, 0);
    struct rs_profile_v1 proxy = {.head = {RS_PROFILE_PROXY_OP, coll, 1}};
    proxy.proxy_op.pid = getpid() + 1;
    struct rs_event e;
    assert_null(start(1, context, &proxy));
    proxy.proxy_op.pid = getpid();
    void *op = start(1, context, &proxy);
    assert_int_equal(device_records(&e), 0);
    tables[1]->stop_event(op);
    assert_int_equal(device_records(&e), 1);
    assert_int_equal(e.seq, 0);
}

static void *proxy_operation(int version, void *context, void *parent, int32_t pid)
{
    struct rs_profile_v2 three = {.head = {RS_PROFILE_PROXY_OP, parent, 1}};
    struct rs_profile_v4 four = {.head = {RS_PROFILE_PROXY_OP, parent, 1}};
    struct rs_profile_v5 five = {.head = {RS_PROFILE_PROXY_OP, parent, 1}};
    three.proxy_op.pid = four.proxy_op.pid = five.proxy_op.pid = pid;
    return start(version, context,
                 version == 3   ? (void *)&three
                 : version == 4 ? (void *)&four
                                : (void *)&five);
}

/* Beside kernel channels: it is done when both are, in whichever order; a proxy operation in place
 * of no channel. */
static void execution_lasts_to_the_last_proxy_operation(void **state)
{
    static float buffer[10];
    for (int version = 3; version <= 6; version++) {
        int mask;
        void *context = open_context(version, &mask);
        assert_true(mask & RS_PROFILE_PROXY_OP && mask & RS_PROFILE_KERNEL_CH);
        fresh(state);
        struct rs_nccl_call c = allreduce(10, buffer, buffer);
        enter(&c);
        struct rs_profile_v2 three = {.head = {RS_PROFILE_COLL, NULL, 1}};
        struct rs_profile_v4 four = {.head = {RS_PROFILE_COLL, NULL, 1}};
        struct rs_profile_v5 five = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
        three.coll.func = four.coll.func = five.coll_api.func = "AllReduce";
        three.coll.datatype = four.coll.datatype = "ncclFloat32";
        three.coll.send = four.coll.send = three.coll.recv = four.coll.recv = buffer;
        three.coll.count = four.coll.count = 10;
        four.coll.channels = 1;
        struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, NULL, 1}};
        task.head.parent = version >= 5 ? start(version, context, &five) : NULL;
        task.coll.func = "AllReduce";
        task.coll.channels = 1;
        void *coll = start(version, context,
                           version == 3   ? (void *)&three
                           : version == 4 ? (void *)&four
                                          : (void *)&task);
        rs_nccl_leave_operation(&thread, &c, 0);
        struct rs_event e;
        assert_null(proxy_operation(version, context, coll, getpid() + 1));
        void *early = proxy_operation(version, context, coll, getpid());
        void *late = proxy_operation(version, context, coll, getpid());
        tables[version]->stop_event(early);
        assert_int_equal(device_records(&e), 0);
        tables[version]->stop_event(channel(version, context, coll));
        assert_int_equal(device_records(&e), 0);
        uint64_t before = rs_tick();
        tables[version]->stop_event(late);
        assert_int_equal(device_records(&e), 1);
        assert_true(e.end >= before);
        assert_null(proxy_operation(version, context, coll, getpid())); /* it is told already */
        tables[version]->finalize(context);
        assert_int_equal(device_records(&e), 1);
    }
}

/* ---- steps and network events ---- */

static uint64_t field(const struct rs_event *e, const char *name)
{
    for (const struct rs_event *s = e + 1; s < slots + thread.head && s->op >= RS_OP_EXT; s++) {
        struct rs_ext_fields x;
        memcpy(&x, s, sizeof x);
        for (unsigned k = 0; x.op == RS_EXT_FIELDS && k < x.n; k++)
            if (strcmp(texts[x.field[k].name - 1], name) == 0)
                return x.field[k].value;
    }
    return UINT64_MAX;
}

static void *begin_step(int version, void *context, void *operation)
{
    struct rs_profile_v1 one = {.head = {RS_PROFILE_PROXY_STEP, operation, 1}};
    struct rs_profile_v2 two = {.head = {RS_PROFILE_PROXY_STEP, operation, 1}};
    struct rs_profile_v4 four = {.head = {RS_PROFILE_PROXY_STEP, operation, 1}};
    struct rs_profile_v5 five = {.head = {RS_PROFILE_PROXY_STEP, operation, 1}};
    return start(version, context,
                 version == 1   ? (void *)&one
                 : version <= 3 ? (void *)&two
                 : version == 4 ? (void *)&four
                                : (void *)&five);
}

static void *begin_net(int version, void *context, void *step, int64_t id, void *data)
{
    struct rs_profile_net_plugin net = {id, data};
    struct rs_profile_v2 three = {.head = {RS_PROFILE_NET_PLUGIN, step, 1}, .net_plugin = net};
    struct rs_profile_v4 four = {.head = {RS_PROFILE_NET_PLUGIN, step, 1}, .net_plugin = net};
    struct rs_profile_v5 five = {.head = {RS_PROFILE_NET_PLUGIN, step, 1}, .net_plugin = net};
    return start(version, context,
                 version == 3   ? (void *)&three
                 : version == 4 ? (void *)&four
                                : (void *)&five);
}

/* An operation that is told of with one proxy operation; *ret_call is its call, still entered. */
static void *proxied(int version, void *context, struct rs_nccl_call *ret_call)
{
    static float buffer[10];
    *ret_call = allreduce(10, buffer, buffer);
    enter(ret_call);
    struct rs_profile_v1 one = {.head = {RS_PROFILE_COLL, NULL, 1}};
    struct rs_profile_v2 two = {.head = {RS_PROFILE_COLL, NULL, 1}};
    struct rs_profile_v4 four = {.head = {RS_PROFILE_COLL, NULL, 1}};
    struct rs_profile_v5 five = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
    one.coll.func = 4;
    one.coll.datatype = 7;
    two.coll.func = four.coll.func = five.coll_api.func = "AllReduce";
    two.coll.datatype = four.coll.datatype = "ncclFloat32";
    one.coll.send = two.coll.send = four.coll.send = buffer;
    one.coll.recv = two.coll.recv = four.coll.recv = buffer;
    one.coll.count = two.coll.count = four.coll.count = 10;
    if (version >= 5) {
        struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, start(version, context, &five), 1}};
        task.coll.func = "AllReduce";
        return start(version, context, &task);
    }
    return start(version, context,
                 version == 1   ? (void *)&one
                 : version <= 3 ? (void *)&two
                                : (void *)&four);
}

static void *operation_of(int version, void *context, void *coll)
{
    struct rs_profile_v1 one = {.head = {RS_PROFILE_PROXY_OP, coll, 1}};
    struct rs_profile_v2 two = {.head = {RS_PROFILE_PROXY_OP, coll, 1}};
    one.proxy_op.pid = two.proxy_op.pid = getpid();
    return version == 1   ? start(1, context, &one)
           : version == 2 ? start(2, context, &two)
                          : proxy_operation(version, context, coll, getpid());
}

static void let_time_pass(void)
{
    for (uint64_t from = rs_tick_monotonic(); rs_tick_monotonic() - from < 20000;)
        ;
}

static void steps_and_network_events_are_summed_up(void **state)
{
    for (int version = 1; version <= 6; version++) {
        int mask;
        void *context = open_context(version, &mask);
        const struct rs_profiler_table *table = tables[version];
        fresh(state);
        assert_true(mask & RS_PROFILE_PROXY_STEP);
        assert_int_equal(!!(mask & RS_PROFILE_NET_PLUGIN), version >= 3);
        struct rs_nccl_call c;
        void *coll = proxied(version, context, &c);
        void *operation = operation_of(version, context, coll);
        size_t bytes[2] = {3000, 4096};
        for (unsigned i = 0; i < 2; i++) {
            void *step = begin_step(version, context, operation);
            assert_non_null(step);
            struct rs_profile_net_ib ib = {.type = 1, .length = bytes[i]};
            struct rs_profile_net_socket socket = {.type = 1, .length = bytes[i]};
            table->record_event_state(step, i ? 12 : 8, NULL);
            let_time_pass();
            table->record_event_state(step, i ? 10 : 9, &bytes[i]);
            if (version >= 3) {
                void *net = i ? begin_net(version, context, step, 2 << 16 | 1, &socket)
                              : begin_net(version, context, step, 1 << 16 | 1, &ib);
                let_time_pass();
                table->stop_event(net);
            }
            table->stop_event(step);
            table->stop_event(step); /* stale: nothing */
        }
        table->stop_event(operation);
        assert_null(begin_step(version, context, operation));
        if (version >= 3)
            table->stop_event(channel(version, context, coll));
        rs_nccl_leave_operation(&thread, &c, 0);
        table->finalize(context);
        struct rs_event e;
        assert_int_equal(device_records(&e), 1);
        const struct rs_event *at = slots;
        while (!(at->flags & RS_EVENT_DEVICE))
            at++;
        assert_true(at->flags & RS_EVENT_EXT);
        assert_int_equal(field(at, "proxy steps"), 2);
        assert_int_equal(field(at, "proxy bytes"), version >= 4 ? 7096 : 0);
        assert_true(field(at, "waited for the GPU (ns)") >= 40000);
        assert_int_equal(field(at, "waited for the peer (ns)"), 0);
        assert_int_equal(field(at, "network events"), version >= 3 ? 2 : UINT64_MAX);
        assert_int_equal(field(at, "network bytes"), version >= 3 ? 7096 : UINT64_MAX);
        assert_true(version < 3 || field(at, "network (ns)") >= 40000);
        assert_true(version < 3 || field(at, "waited for the network (ns)") >= 40000);
    }
}

/* An operation of another process's, of nothing, and data that no version knows. */
static void steps_without_an_operation_are_nothing(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    assert_null(begin_step(5, context, NULL));
    assert_null(begin_step(5, context, (void *)77));
    assert_null(begin_net(5, context, NULL, 1 << 16 | 1, NULL));
    struct rs_nccl_call c;
    void *operation = operation_of(5, context, proxied(5, context, &c));
    void *step = begin_step(5, context, operation);
    void *net = begin_net(5, context, step, 9 << 16 | 9, &c);
    assert_non_null(net);
    assert_null(begin_net(5, context, net, 1 << 16 | 1, NULL));
    tables[5]->record_event_state(net, 9, NULL);
    tables[5]->stop_event(net);
    tables[5]->stop_event(step);
    tables[5]->stop_event(operation);
    rs_nccl_leave_operation(&thread, &c, 0);
}

static void without_wrappers_events_tell_what_ran(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    for (unsigned i = 0; i < 2; i++) {
        struct rs_profile_v5 api = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
        api.coll_api.func = "AllGather";
        api.coll_api.count = 30 + i;
        api.coll_api.datatype = "ncclInt64";
        void *call = start(5, context, &api);
        struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, call, 1}};
        task.coll.func = "AllGather";
        task.coll.count = 240; /* bytes */
        task.coll.datatype = "ncclInt8";
        task.coll.channels = 1;
        tables[5]->stop_event(channel(5, context, start(5, context, &task)));
        struct rs_event e;
        assert_int_equal(device_records(&e), i + 1);
        assert_int_equal(e.op, RS_OP_ncclAllGather);
        assert_int_equal(e.count, 30 + i);
        assert_int_equal(e.seq, i);
        assert_int_equal(e.comm, 5);
        assert_int_equal(alone.size, 4);
    }
}

static void switch_capture(bool to)
{
    on[RS_ON_RECORD] = to;
    thread.keeping = !to;
    thread.limit = to ? SLOTS : 0;
}

static void *start_api(void *context, bool captured)
{
    struct rs_profile_v5 api = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
    api.coll_api.func = "AllReduce";
    api.coll_api.count = 2;
    api.coll_api.datatype = "ncclFloat32";
    api.coll_api.captured = captured;
    return start(5, context, &api);
}

static void *start_coll(void *context, void *call, unsigned channels)
{
    struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, call, 1}};
    task.coll.func = "AllReduce";
    task.coll.datatype = "ncclFloat32";
    task.coll.channels = (uint8_t)channels;
    return start(5, context, &task);
}

static void execution_under_way_at_a_switch_off_is_recorded(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    struct rs_nccl_call c = allreduce(2, NULL, NULL);
    enter(&c);
    void *coll = start_coll(context, start_api(context, false), 2);
    rs_nccl_leave_operation(&thread, &c, 0);
    void *first = channel(5, context, coll);
    switch_capture(false);
    tables[5]->stop_event(channel(5, context, coll)); /* its other one */
    struct rs_event e;
    assert_int_equal(device_records(&e), 0);
    tables[5]->stop_event(first);
    assert_int_equal(device_records(&e), 1);
    assert_int_equal(thread.limit, 0); /* what begins now finds no room */
    switch_capture(true);
}

static void call_of_a_time_off_has_no_execution(void **state)
{
    for (int later = 0; later < 3;
         later++) { /* switched on after the call, its task, its channel */
        int mask;
        void *context = open_context(5, &mask);
        struct rs_nccl_call c = allreduce(2, NULL, NULL);
        fresh(state);
        switch_capture(false);
        enter(&c);
        void *call = start_api(context, false);
        switch_capture(later == 0);
        void *coll = start_coll(context, call, 1);
        switch_capture(later <= 1);
        rs_nccl_leave_operation(&thread, &c, 0);
        void *run = channel(5, context, coll);
        switch_capture(true);
        tables[5]->stop_event(run);
        tables[5]->finalize(context);
        assert_int_equal(thread.head, 0);
        assert_int_equal(world.next_seq, 1);
    }
}

static void call_of_a_group_is_recorded_where_it_began_while_on(void **state)
{
    static float buffer[3][100];
    rs_nccl_group_depth(1);
    for (int i = 0; i < 3; i++) {
        struct rs_nccl_call c = allreduce(10, buffer[i], buffer[i]);
        switch_capture(i != 1);
        enter(&c);
        rs_nccl_leave_operation(&thread, &c, 0);
    }
    rs_nccl_group_depth(-1);
    struct rs_nccl_call end = {.op = RS_OP_ncclGroupEnd, .peer = -1};
    switch_capture(false);
    rs_nccl_enter(&thread, &end);
    rs_nccl_group_end(&thread, &end, 0);
    switch_capture(true);
    assert_int_equal(thread.head, 4); /* two of two slots */
    assert_int_equal(slots[0].seq, 0);
    assert_int_equal(slots[2].seq, 2);
}

static void graph_captured_while_off_has_executions_once_it_is_on(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    switch_capture(false);
    void *call = start_api(context, true);
    tables[5]->stop_event(channel(5, context, start_coll(context, call, 1)));
    struct rs_event e;
    assert_int_equal(device_records(&e), 0);
    for (unsigned i = 1; i <= 3; i++) { /* its launches; one is on its way at a switch */
        switch_capture(true);
        void *coll = start_coll(context, call, 1);
        switch_capture(i != 2);
        tables[5]->stop_event(channel(5, context, coll));
        assert_int_equal(device_records(&e), i == 3 ? 2 : 1);
    }
    switch_capture(true);
    tables[5]->finalize(context);
}

static void without_wrappers_numbers_go_on_while_off(void **state)
{
    for (int version = 4; version <= 5; version++) {
        int mask;
        void *context = open_context(version, &mask);
        alone.next_seq = 0;
        for (unsigned i = 0; i < 4; i++) {
            struct rs_profile_v4 four = {.head = {RS_PROFILE_COLL, NULL, 1}};
            four.coll = (struct rs_profile_coll_v4){
                .func = "AllReduce", .count = 2, .datatype = "ncclFloat32", .channels = 1};
            fresh(state);
            switch_capture(i % 2);
            tables[version]->stop_event(
                channel(version, context,
                        version == 4 ? start(4, context, &four)
                                     : start_coll(context, start_api(context, false), 1)));
            struct rs_event e;
            assert_int_equal(device_records(&e), i % 2);
            assert_true(i % 2 == 0 || e.seq == i);
        }
        switch_capture(true);
        tables[version]->finalize(context);
    }
}

static void fewer_channels_than_expected_are_written_at_the_end(void **state)
{
    int mask;
    void *context = open_context(5, &mask);
    struct rs_nccl_call c = allreduce(2, NULL, NULL);
    enter(&c);
    struct rs_profile_v5 api = {.head = {RS_PROFILE_COLL_API, NULL, 1}};
    struct rs_profile_v5 task = {.head = {RS_PROFILE_COLL, start(5, context, &api), 1}};
    task.coll.channels = 8;
    void *coll = start(5, context, &task);
    rs_nccl_leave_operation(&thread, &c, 0);
    struct rs_event e;
    tables[5]->stop_event(channel(5, context, coll));
    assert_int_equal(device_records(&e), 0);
    tables[5]->finalize(context);
    assert_int_equal(device_records(&e), 1);
    tables[5]->finalize(context);
    assert_int_equal(device_records(&e), 1);
}

static void nonsense_is_survived_and_leaves_no_record(void **state)
{
    static const uint64_t types[] = {0,   1,   2,   4,    8,    16,   32,      64,        128,
                                     255, 256, 512, 1024, 2048, 4096, 1 << 20, UINT64_MAX};
    uint64_t bits = 0x9e3779b97f4a7c15;
    for (int version = 1; version <= 6; version++) {
        const struct rs_profiler_table *p = tables[version];
        int mask;
        void *context = open_context(version, &mask), *handle = NULL;
        char descriptor[256] = {0};
        assert_int_equal(p->start_event(NULL, NULL, NULL), 0);
        assert_int_equal(p->start_event(context, &handle, NULL), 0);
        assert_int_equal(p->start_event(context, NULL, descriptor), 0);
        assert_int_equal(p->finalize(NULL), 0);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            if (version >= 5)
                memcpy(descriptor, &types[i], 8);
            else
                descriptor[0] = (char)types[i];
            assert_int_equal(p->start_event(context, &handle, descriptor), 0);
            assert_int_equal(p->record_event_state(handle, (int)types[i], NULL), 0);
            assert_int_equal(p->stop_event(handle), 0);
            assert_int_equal(p->stop_event(handle), 0);
        }
        for (int i = 0; i < 1000; i++) { /* handles that nobody gave */
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            void *wild = (void *)(uintptr_t)(bits >> (i % 60));
            uint64_t timer = bits;
            assert_int_equal(p->stop_event(wild), 0);
            assert_int_equal(p->record_event_state(wild, RS_PROFILE_KERNEL_CH_STOP, &timer), 0);
        }
        p->finalize(context);
        assert_int_equal(p->start_event(context, &handle, descriptor), 0); /* after its end */
    }
    struct rs_event e;
    assert_int_equal(device_records(&e), 0);
}

static void executions_beyond_the_pool_are_counted(void **state)
{
    struct rs_execution_facts facts = {.on = &world, .op = RS_OP_ncclAllReduce};
    uint64_t before = rs_executions_lost(), first = rs_execution_new(&facts, false);
    rs_execution_expect(first, 1);
    uint64_t running = rs_channel_begin(first, 5);
    for (unsigned i = 0; i < RS_EXECUTIONS; i++)
        rs_execution_new(&facts, false);
    assert_int_equal(rs_executions_lost(), before + 2); /* the execution and its channel */
    rs_channel_stop(running);
    struct rs_event e;
    assert_int_equal(device_records(&e), 0);
}

static void tracing_that_is_off_asks_for_nothing(void **state)
{
    int mask = -1;
    void *context = &mask;
    core.parts = RS_PART_MPI;
    ((init_v5 *)tables[5]->init)(&context, 42, &mask, NULL, 1, 4, 1, NULL);
    core.parts = RS_PART_NCCL;
    assert_int_equal(mask, 0);
    assert_null(context);
    struct rs_profile_v5 d = {.head = {RS_PROFILE_COLL, NULL, 1}};
    void *handle = NULL;
    assert_int_equal(tables[5]->start_event(context, &handle, &d), 0);
    assert_null(handle);
}

#define TEST(function) cmocka_unit_test_setup(function, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(execution_of_two_channels_is_one_record_with_the_calls_numbers),
        TEST(replayed_execution_has_no_number),
        TEST(tasks_of_a_group_find_their_calls),
        TEST(proxy_operations_of_this_process_alone_count),
        TEST(execution_lasts_to_the_last_proxy_operation),
        TEST(steps_and_network_events_are_summed_up),
        TEST(steps_without_an_operation_are_nothing),
        TEST(without_wrappers_events_tell_what_ran),
        TEST(execution_under_way_at_a_switch_off_is_recorded),
        TEST(call_of_a_time_off_has_no_execution),
        TEST(call_of_a_group_is_recorded_where_it_began_while_on),
        TEST(graph_captured_while_off_has_executions_once_it_is_on),
        TEST(without_wrappers_numbers_go_on_while_off),
        TEST(fewer_channels_than_expected_are_written_at_the_end),
        TEST(nonsense_is_survived_and_leaves_no_record),
        TEST(executions_beyond_the_pool_are_counted),
        TEST(tracing_that_is_off_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
