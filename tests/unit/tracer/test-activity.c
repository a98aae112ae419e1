/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of CUPTI made by hand, read by the tracer. `test-activity vendor` has the vendor's own
 * cuptiActivityGetNextRecord walk over them, which needs no driver; without it the walk is ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "cuda/activity.h"

#define SLOTS 64
#define BYTES 4096

/* Sizes of a whole record: of CUDA 13.0, whose CUPTI the vendor's walk is of, and of 12.0. */
static const struct size {
    uint32_t kind;
    size_t newest, oldest;
} sizes[] = {
    {RS_CUPTI_CONCURRENT_KERNEL, 216, 208},
    {RS_CUPTI_MEMCPY, 96, 88},
    {RS_CUPTI_MEMCPY2, 96, 96},
    {RS_CUPTI_MEMSET, 88, 88},
    {RS_CUPTI_RUNTIME, 40, 40},
    {RS_CUPTI_DRIVER, 40, 40},
    {RS_CUPTI_SYNCHRONIZATION, 56, 40},
    {RS_CUPTI_GRAPH_TRACE, 56, 48},
    {39 /* external correlation */, 24, 24},
};

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;

static rs_cupti_next *next;
static bool old;
static _Alignas(8) uint8_t buffer[BYTES];
static size_t used;

static size_t size_of(uint32_t kind)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (sizes[i].kind == kind)
            return old ? sizes[i].oldest : sizes[i].newest;
    return 0;
}

static int own_next(uint8_t *from, size_t valid, void **record)
{
    uint8_t *at = *record;
    uint32_t kind;
    if (at)
        memcpy(&kind, at, sizeof(kind));
    at = at ? at + size_of(kind) : from;
    if (at >= from + valid)
        return RS_CUPTI_MAX_LIMIT_REACHED;
    *record = at;
    return RS_CUPTI_SUCCESS;
}

static void put(const void *beginning, size_t bytes)
{
    uint32_t kind;
    memcpy(&kind, beginning, sizeof(kind));
    assert_true(used + size_of(kind) <= BYTES && bytes <= size_of(kind));
    memset(buffer + used, 0, size_of(kind));
    memcpy(buffer + used, beginning, bytes);
    used += size_of(kind);
}
#define PUT(type, ...)                                                                             \
    do {                                                                                           \
        struct type record = {__VA_ARGS__};                                                        \
        put(&record, sizeof(record));                                                              \
    } while (0)

static struct rs_activity seen[SLOTS];
static unsigned seen_count;

static void see(const struct rs_activity *a, void *data)
{
    assert_ptr_equal(data, &seen_count);
    seen[seen_count++ % SLOTS] = *a;
}

static struct rs_activity_counts read_all(int expected)
{
    struct rs_activity_counts counts = {0};
    seen_count = 0;
    assert_int_equal(rs_activities_read(buffer, used, next, see, &seen_count, &counts), expected);
    used = 0;
    return counts;
}

static void put_one_of_each(void)
{
    PUT(rs_cupti_api, .kind = RS_CUPTI_RUNTIME, .function = 211, .start = 10, .end = 20,
        .thread = 77, .correlation = 5, .result = 1);
    PUT(rs_cupti_kernel, .kind = RS_CUPTI_CONCURRENT_KERNEL, .start = 30, .end = 90, .device = 1,
        .context = 2, .stream = 7, .correlation = 5, .name = "k", .graph_node = 1ull << 40,
        .graph = 6);
    PUT(rs_cupti_memcpy, .kind = RS_CUPTI_MEMCPY, .copy = 1, .bytes = 1ull << 33, .start = 91,
        .end = 95, .device = 1, .context = 2, .stream = 7, .correlation = 8, .graph = 9);
    PUT(rs_cupti_memcpy2, .kind = RS_CUPTI_MEMCPY2, .copy = 10, .bytes = 64, .start = 92, .end = 96,
        .device = 0, .context = 1, .stream = 8, .to_device = 1, .correlation = 11);
    PUT(rs_cupti_memset, .kind = RS_CUPTI_MEMSET, .value = 255, .bytes = 4096, .start = 97,
        .end = 99, .device = 1, .context = 2, .stream = 7, .correlation = 12);
    PUT(rs_cupti_sync, .kind = RS_CUPTI_SYNCHRONIZATION, .type = 3, .start = 21, .end = 100,
        .correlation = 13, .context = 2, .stream = 7, .event = RS_CUPTI_NO_ID);
    PUT(rs_cupti_api, .kind = RS_CUPTI_DRIVER, .function = 307, .start = 101, .end = 102,
        .correlation = 14);
}

static void read_of_each_kind_gives_what_it_holds(void **state)
{
    put_one_of_each();
    assert_int_equal(read_all(0).read, 7);
    assert_int_equal(seen_count, 7);
    static const struct rs_activity wanted[] = {
        {RS_OP_HOST_CALL, 0, true, 211, RS_CUPTI_RUNTIME, NULL, 10, 20, 0, RS_CUPTI_NO_ID,
         RS_CUPTI_NO_ID, RS_CUPTI_NO_ID, 5, 0, 77, 0},
        {RS_OP_KERNEL, 0, false, 0, RS_CUPTI_CONCURRENT_KERNEL, "k", 30, 90, 0, 1, 2, 7, 5, 6, 0,
         1ull << 40},
        {RS_OP_COPY, 1, false, 0, RS_CUPTI_MEMCPY, NULL, 91, 95, 1ull << 33, 1, 2, 7, 8, 9, 0, 0},
        {RS_OP_COPY, 10, false, 0, RS_CUPTI_MEMCPY2, NULL, 92, 96, 64, 0, 1, 8, 11, 0, 0, 0},
        {RS_OP_SET, 0, false, 0, RS_CUPTI_MEMSET, NULL, 97, 99, 4096, 1, 2, 7, 12, 0, 0, 0},
        {RS_OP_SYNC, 3, false, 0, RS_CUPTI_SYNCHRONIZATION, NULL, 21, 100, 0, RS_CUPTI_NO_ID, 2, 7,
         13, 0, 0, 0},
        {RS_OP_HOST_CALL, 0, false, 307, RS_CUPTI_DRIVER, NULL, 101, 102, 0, RS_CUPTI_NO_ID,
         RS_CUPTI_NO_ID, RS_CUPTI_NO_ID, 14, 0, 0, 0},
    };
    for (unsigned i = 0; i < 7; i++) {
        const struct rs_activity *a = &seen[i], *w = &wanted[i];
        assert_int_equal(a->op, w->op);
        assert_int_equal(a->what, w->what);
        assert_int_equal(a->failed, w->failed);
        assert_int_equal(a->function, w->function);
        assert_int_equal(a->kind, w->kind);
        assert_ptr_equal(a->name, w->name);
        assert_int_equal(a->start_ns, w->start_ns);
        assert_int_equal(a->end_ns, w->end_ns);
        assert_int_equal(a->bytes, w->bytes);
        assert_int_equal(a->device, w->device);
        assert_int_equal(a->context, w->context);
        assert_int_equal(a->stream, w->stream);
        assert_int_equal(a->correlation, w->correlation);
        assert_int_equal(a->graph, w->graph);
        assert_int_equal(a->thread, w->thread);
        assert_int_equal(a->graph_node, w->graph_node);
    }
}

static void read_of_an_older_version_gives_the_same(void **state)
{
    rs_cupti_next *before = next;
    next = own_next;
    old = true;
    read_of_each_kind_gives_what_it_holds(state);
    old = false;
    next = before;
}

static void read_of_other_kinds_passes_them_over(void **state)
{
    struct {
        uint32_t kind, external;
        uint64_t id;
        uint32_t correlation, reserved;
    } other = {39, 1, 12, 5, 0};
    put(&other, sizeof(other));
    PUT(rs_cupti_kernel, .kind = RS_CUPTI_CONCURRENT_KERNEL, .start = 1, .end = 2);
    put(&other, sizeof(other));
    assert_int_equal(read_all(0).read, 3);
    assert_int_equal(seen_count, 1);
}

static void read_without_times_counts(void **state)
{
    PUT(rs_cupti_kernel, .kind = RS_CUPTI_CONCURRENT_KERNEL);
    PUT(rs_cupti_memset, .kind = RS_CUPTI_MEMSET, .start = 9, .end = 3);
    PUT(rs_cupti_memset, .kind = RS_CUPTI_MEMSET, .start = 9, .end = 9);
    assert_int_equal(read_all(0).untimed, 2);
    assert_int_equal(seen_count, 1);
}

static void read_of_an_empty_buffer_gives_nothing(void **state)
{
    assert_int_equal(read_all(0).read, 0);
}

/* A CUPTI whose records are shorter than all that we know. */
static int short_next(uint8_t *from, size_t valid, void **record)
{
    uint8_t *at = *record ? (uint8_t *)*record + 144 : from;
    if (at >= from + valid)
        return RS_CUPTI_MAX_LIMIT_REACHED;
    *record = at;
    return RS_CUPTI_SUCCESS;
}

static void read_of_too_short_records_stops(void **state)
{
    rs_cupti_next *before = next;
    next = short_next;
    for (int i = 0; i < 4; i++)
        PUT(rs_cupti_kernel, .kind = RS_CUPTI_CONCURRENT_KERNEL, .start = 1, .end = 2);
    read_all(-EPROTO);
    assert_int_equal(seen_count, 0);
    PUT(rs_cupti_kernel, .kind = RS_CUPTI_CONCURRENT_KERNEL, .start = 1, .end = 2);
    used = 150; /* the last one, cut by the buffer's end */
    next = own_next;
    read_all(-EPROTO);
    next = before;
}

static bool no_room(struct rs_thread *t, unsigned n)
{
    return false;
}

static void write_of_an_activity_is_a_range_and_an_extension(void **state)
{
    static struct rs_ring_thread ring;
    static struct rs_event slots[SLOTS];
    static const struct rs_core core = {.make_room = no_room};
    struct rs_thread t = {.ring = &ring, .slots = slots, .mask = SLOTS - 1, .limit = 4};
    struct rs_activity a = {.op = RS_OP_COPY,
                            .what = 2,
                            .bytes = 77,
                            .device = 3,
                            .context = 4,
                            .stream = 5,
                            .correlation = 6,
                            .graph = 7,
                            .graph_node = 8};
    rs_core = &core;
    rs_activity_write(&t, &a, 11, 100, 200);
    a = (struct rs_activity){.op = RS_OP_HOST_CALL, .failed = true, .thread = 99};
    rs_activity_write(&t, &a, 12, 90, 95);
    rs_activity_write(&t, &a, 13, 96, 97); /* no room */
    assert_int_equal(ring.head, 4);
    struct rs_range_event e;
    struct rs_ext_device x;
    memcpy(&e, &slots[0], sizeof(e));
    memcpy(&x, &slots[1], sizeof(x));
    assert_int_equal(e.op, RS_OP_COPY);
    assert_int_equal(e.flags, RS_EVENT_EXT | RS_EVENT_DEVICE);
    assert_true(e.name == 11 && e.start == 100 && e.end == 200 && e.payload == 77);
    assert_true(x.op == RS_EXT_DEVICE && x.what == 2 && x.correlation == 6 && x.device == 3);
    assert_true(x.context == 4 && x.stream == 5 && x.graph == 7 && x.graph_node == 8);
    memcpy(&e, &slots[2], sizeof(e));
    memcpy(&x, &slots[3], sizeof(x));
    assert_int_equal(e.flags, RS_EVENT_EXT | RS_EVENT_FAILED);
    assert_true(e.op == RS_OP_HOST_CALL && e.payload_type == 0 && x.thread == 99);
}

static void name_is_what_a_program_calls(void **state)
{
    static const char *const pairs[][2] = {
        {"cudaLaunchKernel_v7000", "cudaLaunchKernel"},
        {"cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"},
        {"cudaMemcpy_ptds_v7000", "cudaMemcpy"},
        {"cuMemcpyHtoD_v2", "cuMemcpyHtoD"},
        {"cuLaunchKernelEx", "cuLaunchKernelEx"},
        {"cuMemsetD32", "cuMemsetD32"},
        {"v2", "v2"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        assert_int_equal(rs_activity_plain_name(pairs[i][0]), strlen(pairs[i][1]));
        assert_memory_equal(pairs[i][0], pairs[i][1], strlen(pairs[i][1]));
    }
    assert_true(rs_activity_is_idle_talk("cudaGetDevice_v3020"));
    assert_true(rs_activity_is_idle_talk("cudaEventQuery_v3020"));
    assert_false(rs_activity_is_idle_talk("cudaGraphLaunch_v10000"));
    assert_false(rs_activity_is_idle_talk("cudaMemcpy_v3020"));
    struct rs_activity a = {.op = RS_OP_COPY, .what = 1};
    assert_string_equal(rs_activity_name(&a), "copy HtoD");
    a.what = 200;
    assert_string_equal(rs_activity_name(&a), "copy");
    a = (struct rs_activity){.op = RS_OP_KERNEL};
    assert_string_equal(rs_activity_name(&a), "kernel");
}

static bool find_vendors(void)
{
#ifdef RS_HAVE_CUDA_HEADERS
    static const char *const names[] = {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                                        "/usr/local/cuda/lib/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
        library = dlopen(names[i], RTLD_LAZY);
    if (library)
        next = (rs_cupti_next *)dlsym(library, "cuptiActivityGetNextRecord");
#endif
    return next != NULL;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_of_each_kind_gives_what_it_holds),
        cmocka_unit_test(read_of_an_older_version_gives_the_same),
        cmocka_unit_test(read_of_other_kinds_passes_them_over),
        cmocka_unit_test(read_without_times_counts),
        cmocka_unit_test(read_of_an_empty_buffer_gives_nothing),
        cmocka_unit_test(read_of_too_short_records_stops),
        cmocka_unit_test(write_of_an_activity_is_a_range_and_an_extension),
        cmocka_unit_test(name_is_what_a_program_calls),
    };
    bool vendor = argc > 1 && strcmp(argv[1], "vendor") == 0;
    if (vendor && !find_vendors()) {
        puts("needs the vendor's CUPTI 13, header and library");
        return 77;
    }
    if (!vendor)
        next = own_next;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
