/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime-arguments-check SEED - one rank of a job that calls every function of rt.h with arguments
 * drawn from good and bad ones, the same on all ranks: it has the error that the header names, or
 * the operation is done. Before rt_init and after rt_shutdown, too.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rank-check.h"

/* ---- drawing ---- */

static uint64_t state;

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

#define PICK(list) ((list)[draw(sizeof(list) / sizeof *(list))])

/* Mostly one that is good; *bad gets EINVAL's bit if it isn't. */
enum { INVALID = 1, NO_SET = 2, NOT_IN_SET = 4 };

static unsigned bad;
static bool running;
static int size, rank, good_set, removed_set;
static char long_name[10001], longest_name[RT_NAME_MAX + 1];
static uint64_t buffer[2][4096];

static bool odd(void)
{
    return draw(12) == 0;
}

static const char *draw_wrong_name(void)
{
    static const char *const wrong[] = {NULL, "", long_name, "rt.", "rt.shutdown", "rt.join"};
    bad |= INVALID;
    return PICK(wrong);
}

static const char *draw_name(void)
{
    static const char *const good[] = {"a",    "b c", "\"\\\n\t\x01",     "\xff\xc3(\xed\xa0\x80",
                                       "%s%n", "r.",  "\xf0\x9f\x98\x80", longest_name};
    return odd() ? draw_wrong_name() : PICK(good);
}

static uint64_t draw_count(void)
{
    static const uint64_t good[] = {0, 1, 2, 7, 31, 100};
    static const uint64_t wrong[] = {UINT64_MAX, UINT64_MAX / 64 + 1, (uint64_t)1 << 63};
    if (!odd())
        return PICK(good);
    bad |= INVALID;
    return PICK(wrong);
}

/* Of the first `count`; from `wrong_from` on there are none. */
static int draw_of(int count, int wrong_from)
{
    const int wrong[] = {wrong_from, -1, INT_MAX, INT_MIN, 255, 256};
    if (!odd())
        return (int)draw((uint32_t)count);
    bad |= INVALID;
    return PICK(wrong);
}

static int draw_enum(int count)
{
    return draw_of(count, count);
}

static enum rt_op draw_op(void)
{
    return (enum rt_op)draw_of(RT_OP_COUNT, RT_ADASUM + 1);
}

static double draw_scale(void)
{
    static const double scales[] = {1, 0, -1, 0.5, NAN, INFINITY, 1e300, -1e-300};
    return PICK(scales);
}

static void *draw_buffer(int which, uint64_t count)
{
    if (!odd())
        return buffer[which];
    bad |= count > 0 ? INVALID : 0;
    return NULL;
}

static int draw_set(void)
{
    const int wrong[] = {-1, removed_set, 1000, INT_MAX, INT_MIN};
    if (!odd()) {
        const int set = draw(3) == 0 ? good_set : RT_GLOBAL_SET;
        bad |= set != RT_GLOBAL_SET && rank > 1 ? NOT_IN_SET : 0;
        return set;
    }
    bad |= NO_SET;
    return PICK(wrong);
}

/* With a shape of that count, or of rows of so many elements. NULL: none. */
static const struct rt_options *draw_options(uint64_t count, uint64_t row_count, bool group)
{
    static struct rt_options o;
    static uint64_t shape[16];
    const unsigned more[] = {RT_DIMENSIONS_MAX + 1, 16, UINT_MAX};
    if (draw(2) == 0)
        return NULL;
    o = (struct rt_options){.set = draw_set(),
                            .priority = draw(2)   ? (int)draw(3) - 1
                                        : draw(2) ? INT_MAX
                                                  : INT_MIN,
                            .compression = (enum rt_compression)draw_enum(RT_COMPRESSION_COUNT)};
    if (group || draw(3) > 0)
        return &o;
    for (int i = 0; i < 16; i++)
        shape[i] = 1;
    shape[0] = count;
    shape[1] = row_count;
    o.shape = shape;
    o.dimensions = 2 + draw(RT_DIMENSIONS_MAX - 1);
    if (odd()) {
        bad |= INVALID;
        switch (draw(count > 0 ? 4 : 3)) {
        case 0:
            o.shape = NULL;
            break;
        case 1:
            o.dimensions = PICK(more);
            break;
        case 2:
            shape[0]++;
            break;
        default:
            shape[1] = UINT64_MAX;
            shape[2] = 3;
            shape[3] = 1 + draw(5);
            o.dimensions = 4;
            break;
        }
    }
    return &o;
}

/* ---- what came of it ---- */

static bool is_expected(int error)
{
    const unsigned seen = error == -EINVAL   ? INVALID
                          : error == -ENOENT ? NO_SET
                          : error == -EPERM  ? NOT_IN_SET
                                             : 0;
    if (!running)
        return error == -ESHUTDOWN || (error == -EINVAL && bad & INVALID);
    return bad & seen;
}

/* Of a call that returns a handle: where nothing was wrong the operation is done. */
static void judge(const char *call, int handle)
{
    if (!running || bad) {
        CHECK(handle < 0 && is_expected(handle) && *rt_error(), "%s: %d, bad %u, '%s'", call,
              handle, bad, rt_error());
        return;
    }
    CHECK(handle >= 0, "%s: %d, %s", call, handle, rt_error());
    const int polled = rt_poll(handle);
    CHECK(polled == 0 || polled == 1, "%s: rt_poll %d", call, polled);
    const int result = rt_wait(handle);
    CHECK(result == 0, "%s: %d, %s", call, result, rt_error());
    CHECK(rt_wait(handle) == -EINVAL && rt_poll(handle) == -EINVAL, "%s: waited twice", call);
}

/* ---- each call with what was drawn ---- */

static void reduce(void)
{
    const char *name = draw_name();
    const uint64_t count = draw_count();
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    const enum rt_op op = draw_op();
    const void *in = draw_buffer(0, count);
    void *out = draw_buffer(1, count);
    const struct rt_options *options = draw_options(count, 1, false);
    judge("allreduce",
          rt_allreduce_async(name, in, out, count, type, op, draw_scale(), draw_scale(), options));
}

static void adasum(void)
{
    const enum rt_type types[] = {RT_FLOAT32,  RT_FLOAT64, RT_FLOAT16,
                                  RT_BFLOAT16, RT_INT32,   RT_BOOL};
    const enum rt_type type = PICK(types);
    bad |= type == RT_INT32 || type == RT_BOOL ? INVALID : 0;
    judge("adasum",
          rt_allreduce_async("adasum", buffer[0], buffer[1], 31, type, RT_ADASUM, 1, 1, NULL));
}

static void reduce_group(void)
{
    const char *name = draw_name();
    struct rt_group_member members[3];
    const unsigned n = odd() ? 0 : 1 + draw(3);
    bad |= n == 0 ? INVALID : 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t count = draw_count();
        members[i] = (struct rt_group_member){draw_buffer(0, count), draw_buffer(1, count), count};
        if (members[i].out) /* each its own */
            members[i].out = buffer[1] + 200 * i;
    }
    const bool none = odd();
    bad |= none ? INVALID : 0;
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    const enum rt_op op = draw_op();
    const struct rt_options *options = draw_options(1, 1, true);
    judge("group", rt_grouped_allreduce_async(name, none ? NULL : members, n, type, op,
                                              draw_scale(), draw_scale(), options));
}

static uint64_t draw_row_count(void)
{
    static const uint64_t good[] = {1, 3, 10}, wrong[] = {0, UINT64_MAX, UINT64_MAX / 64 + 1};
    if (!odd())
        return PICK(good);
    const uint64_t count = PICK(wrong);
    bad |= INVALID;
    return count;
}

static void scatter(void)
{
    const char *name = draw_name();
    const uint64_t rows = draw_count(), row_count = draw_row_count();
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    const enum rt_op op = draw_op();
    const struct rt_options *options = draw_options(rows, row_count, false);
    judge("reducescatter",
          rt_reducescatter_async(name, draw_buffer(0, rows), buffer[1], rows, row_count, type, op,
                                 draw_scale(), draw_scale(), options));
}

static void gather(void)
{
    const char *name = draw_name();
    const uint64_t rows = draw_count(), row_count = draw_row_count();
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    const void *in = draw_buffer(0, rows);
    const struct rt_options *options = draw_options(rows, row_count, false);
    struct rt_parts parts = {0}, *ret = odd() ? NULL : &parts;
    bad |= ret ? 0 : INVALID;
    judge("allgather", rt_allgather_async(name, in, rows, row_count, type, ret, options));
    rt_parts_clear(ret);
    rt_parts_clear(&parts);
}

static void exchange(void)
{
    const char *name = draw_name();
    const uint64_t row_count = draw_row_count();
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    uint64_t splits[16], total = 0;
    bool wrong = false;
    const unsigned before = bad;
    for (int r = 0; r < size; r++) {
        splits[r] = draw_count();
        wrong |= splits[r] > 100;
        total += splits[r];
    }
    const bool none = odd();
    bad |= none ? INVALID : 0;
    const void *in = draw_buffer(0, total);
    const bool nowhere = odd();
    bad |= nowhere ? INVALID : 0;
    struct rt_parts parts = {0};
    bad = wrong ? bad : bad | before;
    judge("alltoall", rt_alltoall_async(name, in, none ? NULL : splits, row_count, type,
                                        nowhere ? NULL : &parts, NULL));
    rt_parts_clear(&parts);
}

static int draw_root(void)
{
    const int wrong[] = {-1, size, INT_MAX, INT_MIN};
    if (!odd())
        return draw(2) && size > 1 ? 1 : 0;
    bad |= INVALID;
    return PICK(wrong);
}

static void broadcast(void)
{
    const char *name = draw_name();
    const uint64_t count = draw_count();
    const enum rt_type type = (enum rt_type)draw_enum(RT_TYPE_COUNT);
    void *data = draw_buffer(0, count);
    const int root = draw_root();
    judge("broadcast",
          rt_broadcast_async(name, data, count, type, root, draw_options(count, 1, false)));
}

static void parameters(void)
{
    struct rt_parameter list[3] = {{0}};
    const unsigned n = draw(4);
    static const char *const names[] = {"x", "y", "z"};
    for (unsigned i = 0; i < n; i++)
        list[i] =
            (struct rt_parameter){i == 0 && odd() ? draw_wrong_name() : names[i], draw_buffer(0, 1),
                                  1, (enum rt_type)draw_enum(RT_TYPE_COUNT)};
    const int root = draw_root();
    const bool none = odd();
    if (n > 1 && !bad && !none && running && odd()) {
        list[n - 1].name = list[0].name;
        CHECK(rt_broadcast_parameters(list, n, root, NULL) == -EEXIST, "one name twice");
        return;
    }
    bad = n == 0 ? 0 : bad | (none ? INVALID : 0);
    const int result =
        rt_broadcast_parameters(none ? NULL : list, none && n > 0 ? UINT_MAX : n, root, NULL);
    if (bad || (!running && n > 0))
        CHECK(is_expected(result), "parameters: %d, %s", result, rt_error());
    else
        CHECK(result == 0, "parameters: %d, %s", result, rt_error());
}

static void meet(void)
{
    int last = -1;
    const bool none = odd();
    bad |= none ? INVALID : 0;
    judge("join", rt_join_async(none ? NULL : &last, NULL));
    bad = 0;
    const struct rt_options options = {.set = draw_set()};
    judge("barrier", rt_barrier_async(&options));
}

/* ---- what returns no handle ---- */

static void change_sets(void)
{
    static const int one[] = {0}, none_such[] = {0, 9999}, twice[] = {0, 0}, below[] = {-1};
    const int removed[] = {0, -1, 4000, INT_MIN, INT_MAX, removed_set};
    const int expected = running ? -EINVAL : -ESHUTDOWN;
    int result = 0;
    switch (draw(6)) {
    case 0:
        result = rt_add_process_set(NULL, (int)draw(3));
        break;
    case 1:
        result = rt_add_process_set(none_such, 2);
        break;
    case 2:
        result = rt_add_process_set(twice, 2);
        break;
    case 3:
        result = rt_add_process_set(below, 1);
        break;
    case 4:
        result = rt_add_process_set(one, draw(2) ? INT_MAX : INT_MIN);
        break;
    default: {
        const int set = PICK(removed);
        result = rt_remove_process_set(set);
        CHECK(result == (!running   ? -ESHUTDOWN
                         : set == 0 ? -EINVAL
                                    : -ENOENT),
              "remove %d: %d, %s", set, result, rt_error());
        return;
    }
    }
    CHECK(result == expected, "add: %d, %s", result, rt_error());
}

static void ask(void)
{
    int ranks[16];
    const int rooms[] = {-1, 0, 1, 16, INT_MIN};
    const int places[] = {-1, 0, size - 1, size, INT_MAX, INT_MIN};
    const uint64_t rows[] = {0, 1, 100, UINT64_MAX};
    bad = 0;
    const int set = draw_set(), place = PICK(places), room = PICK(rooms);
    const uint64_t n = PICK(rows);
    const int found = rt_process_set_size(set), expected = running ? -ENOENT : -ESHUTDOWN;
    const bool is = running && !(bad & NO_SET);
    CHECK(is ? found > 0 : found == expected, "size of set %d: %d", set, found);
    CHECK(rt_process_set_ranks(set, ranks, room) == found, "ranks of set %d", set);
    CHECK(rt_process_set_ranks(set, NULL, 0) == found, "ranks of set %d", set);
    CHECK(rt_process_set_ranks(set, NULL, 3) == (is ? -EINVAL : expected), "no ranks of %d", set);
    CHECK(is ? rt_process_set_included(set) == !(bad & NOT_IN_SET)
             : rt_process_set_included(set) == expected,
          "in set %d", set);
    CHECK(is ? rt_process_set_rank(set) == (bad & NOT_IN_SET ? -EPERM : rank)
             : rt_process_set_rank(set) == expected,
          "rank in set %d", set);
    const uint64_t part = rt_process_set_rows_of(set, n, place), own = rt_rows_of(n, place);
    CHECK(is && place >= 0 && place < found ? part <= n : part == 0, "rows of %d in %d", place,
          set);
    CHECK(running && place >= 0 && place < size ? own <= n && (n < 100 || own > 0) : own == 0,
          "rows of %d: %llu", place, (unsigned long long)own);
}

static void handles(void)
{
    const int odd_ones[] = {-1, 0, 1, INT_MAX, INT_MIN, (int)draw(INT_MAX)};
    const int handle = PICK(odd_ones), expected = running ? -EINVAL : -ESHUTDOWN;
    CHECK(rt_wait(handle) == expected && rt_poll(handle) == expected, "handle %d", handle);
}

static void timelines(void)
{
    static const char *const paths[] = {NULL,          "",       "/nowhere/x", "/dev/full", "/tmp",
                                        "/dev/null/x", long_name};
    const char *path = PICK(paths);
    const int result = rt_timeline_start(path, (int)draw(3) - 1);
    if (!running)
        CHECK(result == -ESHUTDOWN, "timeline: %d", result);
    else if (!path || rank == 0)
        CHECK(result < 0 && *rt_error(), "timeline %.20s: %d", path ? path : "NULL", result);
    else
        CHECK(result == 0, "timeline: %d", result);
    CHECK(rt_timeline_stop() == (running ? 0 : -ESHUTDOWN), "timeline_stop");
}

static void memory(void)
{
    const uint64_t bytes[] = {0, 1, 4096, 100000, (uint64_t)1 << 62, UINT64_MAX, UINT64_MAX / 2};
    const uint64_t n = PICK(bytes);
    char *p = rt_buffer_alloc(n);
    CHECK(n > 100000 ? !p : p != NULL, "%llu bytes", (unsigned long long)n);
    if (p && n > 0)
        p[0] = p[n - 1] = 1;
    rt_buffer_free(p);
    rt_buffer_free(NULL);
}

static void draw_calls(unsigned n)
{
    static void (*const calls[])(void) = {reduce,   adasum,    reduce_group, scatter, gather,
                                          exchange, broadcast, parameters,   meet,    change_sets,
                                          ask,      handles,   timelines,    memory};
    for (unsigned i = 0; i < n; i++) {
        bad = 0;
        PICK(calls)();
    }
}

static void arguments(uint64_t seed)
{
    const int first[] = {0, 1};
    memset(long_name, 'n', sizeof long_name - 1);
    memset(longest_name, 'n', sizeof longest_name - 1);
    state = seed;
    size = 1;
    good_set = 1;
    removed_set = 2;
    draw_calls(300);
    CHECK(rt_init() == 0, "rt_init");
    running = true;
    size = rt_size();
    rank = rt_rank();
    good_set = rt_add_process_set(first, size > 1 ? 2 : 1);
    removed_set = rt_add_process_set(first, 1);
    CHECK(good_set > 0 && removed_set > 0 && rt_remove_process_set(removed_set) == 0, "sets");
    draw_calls(1500);
    running = false;
    CHECK(rt_shutdown() == 0, "rt_shutdown");
    draw_calls(300);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 9;
    arguments(strtoull(argv[1], NULL, 10));
    return 0;
}
