/* SPDX-License-Identifier: Apache-2.0 */
/* What CUPTI told, in captures written by hand: tracks of streams, and the calls it is joined to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture-writer.h"
#include "run.h"

#define TID      77
#define WAIT     1400
#define NO       G_MAXUINT32
#define STREAM_A 0x1000
#define STREAM_B 0x2000

typedef struct {
    CwFile *f;
    guint32 nccl_kernel, own_kernel, launch, inner, wait; /* strings */
} Writer;

static void put_comm(CwFile *f, guint32 id, gint32 rank, gint32 device)
{
    struct rs_def_comm d = {.def = {.kind = RS_DEF_COMM, .bytes = sizeof d, .id = id},
                            .identity = 0x100 + id,
                            .api = RS_COMM_NCCL,
                            .rank = rank,
                            .size = 4,
                            .device = device};
    cw_put(f, &d, sizeof d);
}

/* Communicators 2 and 3 on device 0, 4 on device 1. */
static Writer begin(void)
{
    Writer w = {.f = cw_new()};
    cw_process(w.f, 0, 1, "host", "host", 500, "1000000000");
    cw_anchor(w.f, 1000, 1000, 1700000000000000000, 40);
    cw_block(w.f, RS_BLOCK_CLOCK, 0, 0);
    cw_standard_defs(w.f, 0, 1);
    w.nccl_kernel = cw_string(w.f, "_Z31ncclDevKernel_AllReduce_Sum_f32v");
    w.own_kernel = cw_string(w.f, "gemm");
    w.launch = cw_string(w.f, "cudaLaunchKernel");
    w.inner = cw_string(w.f, "cuLaunchKernelEx");
    w.wait = cw_string(w.f, "cudaStreamSynchronize");
    cw_op(w.f, WAIT, "cudaStreamSynchronize", RS_CLASS_COMPLETE, RS_API_CUDA);
    put_comm(w.f, 2, 0, 0);
    put_comm(w.f, 3, 1, 0);
    put_comm(w.f, 4, 2, 1);
    struct rs_def_thread t = {
        .def = {.kind = RS_DEF_THREAD, .bytes = sizeof t, .id = 1}, .tid = TID, .name = w.inner};
    cw_put(w.f, &t, sizeof t);
    cw_block(w.f, RS_BLOCK_DEFS, 0, 0);
    return w;
}

/* Events of thread 0 until here; what CUPTI tells stands in the ring of another. */
static void next_thread(Writer *w)
{
    cw_block(w->f, RS_BLOCK_EVENTS, 0, 0);
}

static void put_nccl(Writer *w, guint64 start, guint64 end, guint32 comm, guint32 seq,
                     guint64 stream)
{
    struct rs_ext_stream x = {.op = RS_EXT_STREAM, .stream = stream};
    cw_event(w->f, (struct rs_event){.op = CW_NCCL_ALLREDUCE,
                                     .flags = RS_EVENT_EXT,
                                     .peer = -1,
                                     .start = start,
                                     .end = end,
                                     .count = 256,
                                     .comm = comm,
                                     .dtype = 1,
                                     .seq = seq});
    cw_put(w->f, &x, sizeof x);
}

static void put_activity(Writer *w, guint16 op, guint32 name, guint64 start, guint64 end,
                         struct rs_ext_device x)
{
    struct rs_range_event e = {.op = op, .name = name, .start = start, .end = end};
    e.flags = RS_EVENT_EXT;
    cw_put(w->f, &e, sizeof e);
    x.op = RS_EXT_DEVICE;
    cw_put(w->f, &x, sizeof x);
}

static void put_call(Writer *w, guint64 at, guint32 correlation)
{
    put_activity(w, RS_OP_HOST_CALL, w->launch, at, at + 10,
                 (struct rs_ext_device){
                     .correlation = correlation, .thread = TID, .device = NO, .context = NO});
}

static void put_kernel(Writer *w, guint32 name, guint64 start, guint64 end, guint32 correlation,
                       guint32 device, guint32 stream)
{
    put_activity(
        w, RS_OP_KERNEL, name, start, end,
        (struct rs_ext_device){
            .correlation = correlation, .device = device, .context = device + 1, .stream = stream});
}

static RsModel *finish(Writer *w)
{
    cw_block(w->f, RS_BLOCK_EVENTS, 1, 0);
    cw_end(w->f, RS_END_EXIT, 0, 0, 0);
    g_autofree gchar *folder = cw_make_folder();
    g_free(cw_save(w->f, folder, "host-500.rsc"));
    cw_free(w->f);
    const gchar *paths[] = {folder, NULL};
    g_autoptr(GError) error = NULL;
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    cw_remove_folder(folder);
    return m;
}

/* "track: name start-end <- call", an event a line, of what stands on devices' tracks; times from
 * the first event on. */
static gchar *dup_devices(const RsModel *m)
{
    GString *s = g_string_new(NULL);
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsTrack *t = &g_array_index(m->tracks, RsTrack, rs_model_track_of(m, i));
        if (!t->device)
            continue;
        g_string_append_printf(s, "%s: %s %d-%d", rs_model_str(m, t->name),
                               rs_model_str(m, rs_model_sig(m, i)->name),
                               (int)m->events.start_ns[i], (int)m->events.end_ns[i]);
        guint32 call = m->events.link[i];
        if (call != RS_NONE)
            g_string_append_printf(s, " <- %s %d", rs_model_str(m, rs_model_sig(m, call)->name),
                                   (int)m->events.start_ns[call]);
        g_string_append_c(s, '\n');
    }
    return g_string_free(s, FALSE);
}

static void assert_devices(RsModel *m, const gchar *wanted)
{
    g_autofree gchar *found = dup_devices(m);
    assert_string_equal(found, wanted);
    rs_model_free(m);
}

static void kernel_in_an_nccl_call_is_its_device_interval(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    next_thread(&w);
    put_kernel(&w, w.own_kernel, 1200, 1250, 9, 0, 7); /* before its call, and of no NCCL */
    put_kernel(&w, w.nccl_kernel, 1300, 1900, 5, 0, 8);
    put_call(&w, 1050, 5);
    put_call(&w, 1150, 9);
    RsModel *m = finish(&w);
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        if (s->kind != RS_KIND_DEVICE)
            continue;
        gboolean nccl = strstr(rs_model_str(m, s->name), "nccl") != NULL;
        assert_int_equal(s->klass, nccl ? RS_CLASS_COLL : RS_CLASS_OTHER);
        assert_int_equal(s->api, s->comm == RS_NONE ? RS_API_CUDA : RS_API_NCCL);
    }
    assert_devices(m, "GPU 0 stream 7: gemm 200-250 <- cudaLaunchKernel 150\n"
                      "GPU 0 stream 8: ncclDevKernel_AllReduce_Sum_f32 300-900 <- "
                      "cudaLaunchKernel 50\n"
                      "GPU 0 stream 8: ncclAllReduce 300-900 <- ncclAllReduce 0\n");
}

static void several_kernels_of_an_operation_are_one_interval(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    next_thread(&w);
    put_call(&w, 1020, 5);
    put_call(&w, 1040, 6);
    put_kernel(&w, w.nccl_kernel, 1500, 1600, 6, 0, 8);
    put_kernel(&w, w.nccl_kernel, 1300, 1400, 5, 0, 8);
    g_autofree gchar *found = NULL;
    RsModel *m = finish(&w);
    found = dup_devices(m);
    assert_non_null(strstr(found, "stream 8: ncclAllReduce 300-600 <- ncclAllReduce 0\n"));
    rs_model_free(m);
}

/* Two operations of a group on streams of one device; an earlier call tells one of the streams. */
static void group_over_two_streams_is_told_apart_by_what_is_left_over(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    put_nccl(&w, 2000, 2500, 2, 1, STREAM_A);
    put_nccl(&w, 2010, 2500, 3, 0, STREAM_B);
    next_thread(&w);
    put_call(&w, 1050, 5);
    put_kernel(&w, w.nccl_kernel, 1300, 1400, 5, 0, 8);
    put_call(&w, 2400, 6);
    put_call(&w, 2420, 7);
    put_kernel(&w, w.nccl_kernel, 2700, 2900, 6, 0, 9);
    put_kernel(&w, w.nccl_kernel, 2600, 2800, 7, 0, 8);
    RsModel *m = finish(&w);
    g_autofree gchar *found = dup_devices(m);
    assert_non_null(strstr(found, "stream 8: ncclAllReduce 1600-1800 <- ncclAllReduce 1000\n"));
    assert_non_null(strstr(found, "stream 9: ncclAllReduce 1700-1900 <- ncclAllReduce 1010\n"));
    rs_model_free(m);
}

static void group_over_two_unknown_streams_is_not_joined(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1500, 2, 0, STREAM_A);
    put_nccl(&w, 1010, 1500, 3, 0, STREAM_B);
    next_thread(&w);
    put_call(&w, 1400, 6);
    put_kernel(&w, w.nccl_kernel, 1600, 1700, 6, 0, 9);
    assert_devices(finish(&w), "GPU 0 stream 9: ncclDevKernel_AllReduce_Sum_f32 600-700 <- "
                               "cudaLaunchKernel 400\n");
}

static void group_over_two_devices_is_told_apart_by_device(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1500, 2, 0, 0); /* both on the default stream */
    put_nccl(&w, 1010, 1500, 4, 0, 0);
    next_thread(&w);
    put_call(&w, 1400, 6);
    put_call(&w, 1420, 7);
    put_kernel(&w, w.nccl_kernel, 1600, 1700, 6, 0, 7);
    put_kernel(&w, w.nccl_kernel, 1650, 1800, 7, 1, 7);
    RsModel *m = finish(&w);
    g_autofree gchar *found = dup_devices(m);
    assert_non_null(strstr(found, "GPU 0 stream 7: ncclAllReduce 600-700 <- ncclAllReduce 0\n"));
    assert_non_null(strstr(found, "GPU 1 stream 7: ncclAllReduce 650-800 <- ncclAllReduce 10\n"));
    rs_model_free(m);
}

static void interval_of_the_plug_in_is_not_doubled(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    cw_event(w.f, (struct rs_event){.op = CW_NCCL_ALLREDUCE,
                                    .flags = RS_EVENT_DEVICE,
                                    .peer = -1,
                                    .start = 1310,
                                    .end = 1390,
                                    .count = 256,
                                    .comm = 2,
                                    .dtype = 1});
    next_thread(&w);
    put_call(&w, 1050, 5);
    put_kernel(&w, w.nccl_kernel, 1300, 1400, 5, 0, 8);
    assert_devices(finish(&w), "device (thread 77): ncclAllReduce 310-390 <- ncclAllReduce 0\n"
                               "GPU 0 stream 8: ncclDevKernel_AllReduce_Sum_f32 300-400 <- "
                               "cudaLaunchKernel 50\n");
}

static void sums_of_proxy_steps_are_arguments_of_the_interval(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    cw_event(w.f, (struct rs_event){.op = CW_NCCL_ALLREDUCE,
                                    .flags = RS_EVENT_DEVICE | RS_EVENT_EXT,
                                    .peer = -1,
                                    .start = 1310,
                                    .end = 1390,
                                    .count = 256,
                                    .comm = 2,
                                    .dtype = 1});
    struct rs_ext_fields x = {.op = RS_EXT_FIELDS,
                              .n = 2,
                              .field = {{12, w.own_kernel, 0}, {345, w.launch, 0}},
                              .type = {1, 1}};
    cw_put(w.f, &x, sizeof x);
    next_thread(&w);
    RsModel *m = finish(&w);
    guint32 device = NO;
    for (guint32 i = 0; i < m->events.n; i++)
        device = rs_model_sig(m, i)->kind == RS_KIND_DEVICE ? i : device;
    assert_int_not_equal(device, NO);
    guint n;
    const RsArg *args = rs_model_args(m, device, &n);
    assert_int_equal(n, 2);
    assert_string_equal(rs_model_str(m, args[0].name), "gemm");
    assert_int_equal(args[0].value, 12);
    assert_int_equal(args[1].value, 345);
    rs_model_free(m);
}

static void call_on_another_thread_is_not_joined(void **state)
{
    Writer w = begin();
    put_nccl(&w, 1000, 1100, 2, 0, STREAM_A);
    next_thread(&w);
    put_activity(&w, RS_OP_HOST_CALL, w.launch, 1050, 1060,
                 (struct rs_ext_device){.correlation = 5, .thread = 78});
    put_kernel(&w, w.nccl_kernel, 1300, 1400, 5, 0, 8);
    put_activity(&w, RS_OP_HOST_CALL, w.launch, 1070, 1080,
                 (struct rs_ext_device){.correlation = 6}); /* of nobody knows which thread */
    put_kernel(&w, w.nccl_kernel, 1500, 1600, 6, 0, 8);
    RsModel *m = finish(&w);
    guint threads = 0;
    for (guint i = 0; i < m->tracks->len; i++)
        threads += g_array_index(m->tracks, RsTrack, i).tid == 78;
    assert_int_equal(threads, 1);
    assert_devices(m, "GPU 0 stream 8: ncclDevKernel_AllReduce_Sum_f32 300-400 <- "
                      "cudaLaunchKernel 50\n"
                      "GPU 0 stream 8: ncclDevKernel_AllReduce_Sum_f32 500-600\n");
}

static guint count_calls(const RsModel *m, const gchar *name)
{
    guint n = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        n += rs_model_sig(m, i)->kind == RS_KIND_CALL &&
             strcmp(rs_model_str(m, rs_model_sig(m, i)->name), name) == 0;
    return n;
}

/* The driver's call inside the runtime's, and a wait that the tracer wrapped itself. */
static void call_that_was_told_of_twice_is_one(void **state)
{
    Writer w = begin();
    cw_event(w.f, (struct rs_event){.op = WAIT, .peer = -1, .start = 1500, .end = 1600});
    next_thread(&w);
    put_activity(&w, RS_OP_HOST_CALL, w.inner, 1053, 1054,
                 (struct rs_ext_device){.correlation = 5, .thread = TID});
    put_call(&w, 1050, 5);
    put_kernel(&w, w.own_kernel, 1300, 1400, 5, 0, 8);
    put_activity(&w, RS_OP_HOST_CALL, w.wait, 1501, 1599,
                 (struct rs_ext_device){.correlation = 6, .thread = TID});
    put_activity(&w, RS_OP_SYNC, w.wait, 1502, 1598,
                 (struct rs_ext_device){
                     .correlation = 6, .device = NO, .context = 1, .stream = 8, .what = 3});
    put_activity(&w, RS_OP_SYNC, w.wait, 1700, 1710,
                 (struct rs_ext_device){.device = NO, .context = 99, .stream = 8, .what = 3});
    RsModel *m = finish(&w);
    assert_int_equal(count_calls(m, "cudaLaunchKernel"), 1);
    assert_int_equal(count_calls(m, "cuLaunchKernelEx"), 0);
    assert_int_equal(count_calls(m, "cudaStreamSynchronize"), 1);
    assert_devices(m, "GPU 0 stream 8: gemm 250-350 <- cudaLaunchKernel 0\n"
                      "GPU 0 waits: cudaStreamSynchronize 452-548 <- cudaStreamSynchronize 450\n"
                      "GPU waits: cudaStreamSynchronize 650-660\n");
}

static void streams_of_one_number_in_two_contexts_have_tracks_of_their_own(void **state)
{
    Writer w = begin();
    next_thread(&w);
    put_kernel(&w, w.own_kernel, 1300, 1400, 0, 0, 7);
    put_activity(&w, RS_OP_COPY, w.own_kernel, 1350, 1360,
                 (struct rs_ext_device){.device = 0, .context = 2, .stream = 7});
    put_activity(&w, RS_OP_GRAPH, w.own_kernel, 1370, 1380,
                 (struct rs_ext_device){
                     .device = 0, .context = 2, .stream = 7, .graph = 6, .graph_node = 42});
    RsModel *m = finish(&w);
    guint32 last = m->events.n - 1;
    assert_string_equal(rs_model_str(m, rs_model_sig(m, last)->category), "graph 6, node 42");
    assert_devices(m, "GPU 0 stream 7: gemm 0-100\n"
                      "GPU 0 stream 7, context 2: gemm 50-60\n"
                      "GPU 0 stream 7, context 2: gemm 70-80\n");
}

/* As a damaged capture may have it. */
static void activity_without_its_extension_is_no_harm(void **state)
{
    Writer w = begin();
    next_thread(&w);
    struct rs_range_event e = {.op = RS_OP_COPY, .start = 1300, .end = 1400};
    cw_put(w.f, &e, sizeof e);
    put_kernel(&w, 99 /* no such string */, 1500, 1400, 0, 0, 7);
    RsModel *m = finish(&w);
    assert_int_equal(m->warnings->len, 2);
    assert_devices(m, "GPU 0 stream 7:  0-0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_in_an_nccl_call_is_its_device_interval),
        cmocka_unit_test(several_kernels_of_an_operation_are_one_interval),
        cmocka_unit_test(group_over_two_streams_is_told_apart_by_what_is_left_over),
        cmocka_unit_test(group_over_two_unknown_streams_is_not_joined),
        cmocka_unit_test(group_over_two_devices_is_told_apart_by_device),
        cmocka_unit_test(interval_of_the_plug_in_is_not_doubled),
        cmocka_unit_test(sums_of_proxy_steps_are_arguments_of_the_interval),
        cmocka_unit_test(call_on_another_thread_is_not_joined),
        cmocka_unit_test(call_that_was_told_of_twice_is_one),
        cmocka_unit_test(streams_of_one_number_in_two_contexts_have_tracks_of_their_own),
        cmocka_unit_test(activity_without_its_extension_is_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
