/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-choice.h"

struct folder {
    char path[64], file[128];
    struct rt_layout layout; /* 2,2 */
};

static int set_up(void **state)
{
    static const int hosts[] = {0, 0, 1, 1};
    struct folder *f = calloc(1, sizeof *f);
    strcpy(f->path, "/tmp/rt-choice-XXXXXX");
    if (!mkdtemp(f->path))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/a/table", f->path);
    *state = f;
    return rt_layout_init(&f->layout, hosts, 4);
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    char inner[128];
    unlink(f->file);
    snprintf(inner, sizeof inner, "%s/a", f->path);
    rmdir(inner);
    int left = rmdir(f->path); /* no temporary file stays */
    rt_layout_release(&f->layout);
    free(f);
    return left;
}

static const struct rt_costs costs = {{1e-6, 1e-10, 1e-10, 256 << 10},
                                      {3e-5, 9e-9, 1e-10, 16 << 20}};

static struct rt_choice three_steps(void)
{
    struct rt_choice c = {0};
    struct rt_plan plan;
    assert_int_equal(rt_plan_parse("recursive-doubling", &plan), 0);
    rt_choice_add(&c, 1024, plan);
    rt_choice_add(&c, 4096, plan); /* takes no room */
    assert_int_equal(rt_plan_parse("hierarchical:double-tree", &plan), 0);
    rt_choice_add(&c, 65536, plan);
    assert_int_equal(rt_plan_parse("two-level-ring", &plan), 0);
    rt_choice_add(&c, UINT64_MAX, plan);
    assert_int_equal(c.n, 3);
    c.measured_from = 512;
    c.measured_to = (uint64_t)1 << 34;
    return c;
}

static void expect_plan(const struct rt_choice *c, uint64_t bytes, const char *text)
{
    char name[RT_PLAN_TEXT_MAX];
    rt_plan_text(rt_choice_at(c, bytes), name);
    assert_string_equal(name, text);
}

static void plan_text_is_what_was_parsed(void **state)
{
    struct folder *f = *state;
    struct rt_plan plan, again;
    char text[RT_PLAN_TEXT_MAX];
    unsigned n = 0;
    for (; rt_plan_at(&f->layout, n, &plan); n++) {
        rt_plan_text(plan, text);
        assert_int_equal(rt_plan_parse(text, &again), 0);
        assert_memory_equal(&plan, &again, sizeof plan);
        assert_non_null(strstr(RT_PLAN_NAMES, rt_algorithm_at(plan.algorithm)->name));
    }
    assert_true(n >= 11);
    assert_int_equal(rt_plan_parse("hierarchical", &plan), 0);
    rt_plan_text(plan, text);
    assert_string_equal(text, "hierarchical:auto");
    assert_int_equal(rt_plan_parse("hierarchical:", &plan), -EINVAL);
    assert_int_equal(rt_plan_parse("hierarchical:two-level-ring", &plan), -EINVAL);
    assert_int_equal(rt_plan_parse("wheel", &plan), -EINVAL);
}

/* What "hierarchical" is where it is none of the named: the plans, what is taken without a table,
 * and for long buffers where a link is dear. */
static void two_hosts_have_hierarchical_auto(void **state)
{
    static const int hosts[][4] = {{0, 1}, {0, 0, 1, 1}, {0, 1, 2, 3}};
    static const int sizes[] = {2, 4, 4};
    for (int i = 0; i < 3; i++) {
        struct rt_layout l;
        struct rt_plan plan;
        unsigned times = 0;
        assert_int_equal(rt_layout_init(&l, hosts[i], sizes[i]), 0);
        for (unsigned n = 0; rt_plan_at(&l, n, &plan); n++)
            times += plan.kind == RT_PLAN_HIERARCHICAL && plan.algorithm == 0;
        const struct rt_choice c = rt_choice_default(&l), predicted = rt_choice_predict(&l, &costs);
        assert_int_equal(times, i < 2);
        expect_plan(&c, 1 << 20, i < 2 ? "hierarchical:auto" : "auto");
        if (i < 2)
            expect_plan(&predicted, 1 << 24, "hierarchical:auto");
        rt_layout_release(&l);
    }
}

static void what_was_written_is_read_and_sections_of_others_stay(void **state)
{
    struct folder *f = *state;
    char message[512], topology[RT_TOPOLOGY_TEXT_MAX];
    struct rt_choice c = three_steps(), other = rt_choice_default(&f->layout), got;
    bool found = false;
    rt_topology_text("MPI", &f->layout, topology);
    assert_string_equal(topology, "MPI 2,2");
    assert_int_equal(rt_choice_write(f->file, "MPI 1,3", &costs, &other, message, 512), 0);
    assert_int_equal(rt_choice_write(f->file, topology, &costs, &other, message, 512), 0);
    assert_int_equal(rt_choice_write(f->file, topology, &costs, &c, message, 512), 0);
    assert_int_equal(rt_choice_read(f->file, topology, &f->layout, &got, &found, message, 512), 0);
    assert_true(found);
    assert_int_equal(got.n, 3);
    expect_plan(&got, 0, "recursive-doubling");
    expect_plan(&got, 4096, "recursive-doubling");
    expect_plan(&got, 4097, "hierarchical:double-tree");
    expect_plan(&got, (uint64_t)1 << 40, "two-level-ring");
    assert_true(got.measured_from == 512 && got.measured_to == (uint64_t)1 << 34);
    assert_int_equal(rt_choice_read(f->file, "MPI 1,3", &f->layout, &got, &found, message, 512), 0);
    assert_true(found);
    expect_plan(&got, 1, "hierarchical:auto");
    assert_true(got.measured_from == 0 && got.measured_to == 0);
}

static void another_topology_is_predicted_by_the_costs(void **state)
{
    struct folder *f = *state;
    char message[512];
    struct rt_choice c = three_steps(), got;
    bool found = true;
    assert_int_equal(rt_choice_write(f->file, "MPI 4,4", &costs, &c, message, 512), 0);
    assert_int_equal(rt_choice_read(f->file, "MPI 2,2", &f->layout, &got, &found, message, 512), 0);
    assert_false(found);
    assert_int_equal(got.measured_to, 0);
    /* a dear link: few steps for short ones, few bytes over it for long ones */
    struct rt_plan longest = rt_choice_at(&got, (uint64_t)1 << 30);
    assert_true(longest.kind != RT_PLAN_FLAT);
    assert_true(got.n > 1);
    found = true;
    assert_int_equal(rt_choice_read(f->file, "TCP 2,2", &f->layout, &got, &found, message, 512), 0);
    assert_false(found);
    expect_plan(&got, 1, "hierarchical:auto");
}

/* The costs measured on one link decide for a layout: `bytes` go by `text`. */
static void predicted_order_follows_the_costs(void **state)
{
    static const int alone[] = {0, 1};
    struct rt_layout two;
    assert_int_equal(rt_layout_init(&two, alone, 2), 0);
    struct rt_choice c = rt_choice_predict(&two, &costs);
    expect_plan(&c, 8, "recursive-doubling");
    struct rt_plan longest = rt_choice_at(&c, (uint64_t)1 << 30);
    assert_true(rt_plan_cost(longest, &two, &costs, (uint64_t)1 << 30) <=
                rt_plan_cost((struct rt_plan){RT_PLAN_FLAT, 1}, &two, &costs, (uint64_t)1 << 30));
    rt_layout_release(&two);
}

/* Four sizes, three plans. */
static void expect_picks(const double *seconds, unsigned a, unsigned b, unsigned c, unsigned d)
{
    unsigned got[4];
    const unsigned expected[] = {a, b, c, d};
    rt_choice_pick(seconds, 4, 3, got);
    for (int i = 0; i < 4; i++)
        if (got[i] != expected[i])
            fail_msg("size %d: %u, expected %u", i, got[i], expected[i]);
}

static void pick_takes_the_quickest_but_for_what_is_quick_by_chance(void **state)
{
    const double clear[] = {1, 2, 3, 2, 1, 3, 9, 5, 4, 9, 5, 4};
    const double by_little[] = {1, 1.01, 3, 1.015, 1, 3, 1, 1.005, 3, 1.01, 1, 3};
    const double one_size[] = {1, 2, 3, 1.035, 1, 3, 1, 2, 3, 1, 2, 3};
    const double far_at_one[] = {1, 2, 3, 1.2, 1, 3, 1, 2, 3, 1, 2, 3};
    const double from_then_on[] = {1, 2, 3, 1.03, 1, 3, 1.03, 1, 3, 1.03, 1, 3};
    const double single[] = {3, 2, 1};
    unsigned got;
    expect_picks(clear, 0, 1, 2, 2);
    expect_picks(by_little, 1, 1, 1, 1);
    expect_picks(one_size, 0, 0, 0, 0);
    expect_picks(far_at_one, 0, 1, 0, 0);
    expect_picks(from_then_on, 0, 1, 1, 1);
    rt_choice_pick(single, 1, 3, &got);
    assert_int_equal(got, 2);
}

static void same_bits_takes_only_what_has_them(void **state)
{
    struct rt_choice c = rt_choice_same_bits();
    for (uint32_t i = 0; i < c.n; i++) {
        assert_int_equal(c.steps[i].plan.kind, RT_PLAN_FLAT);
        assert_true(rt_algorithm_at(c.steps[i].plan.algorithm)->same_bits);
    }
}

static void expect_refusal(struct folder *f, const char *content, const char *expected)
{
    char message[1024] = "";
    struct rt_choice got;
    bool found;
    FILE *file = fopen(f->file, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    int error = rt_choice_read(f->file, "MPI 2,2", &f->layout, &got, &found, message, 1024);
    if (error != -EINVAL || !strstr(message, expected) || !strstr(message, "rt_tune"))
        fail_msg("%d, '%s', expected '%s'", error, message, expected);
    /* and it isn't overwritten unseen */
    struct rt_choice c = rt_choice_default(&f->layout);
    assert_int_equal(rt_choice_write(f->file, "MPI 2,2", &costs, &c, message, 1024), -EINVAL);
}

#define FIRST "ringscope-allreduce-table 1\n"
#define COSTS "costs 1e-6 1e-10 3e-5 9e-9 1e-10\n"

static void a_damaged_table_is_refused_with_its_line(void **state)
{
    struct folder *f = *state;
    char inner[128];
    snprintf(inner, sizeof inner, "%s/a", f->path);
    mkdir(inner, 0700);
    expect_refusal(f, "", "no topology");
    expect_refusal(f, "{\"a\": 1}\n", ":1: no table of this version");
    expect_refusal(f, "ringscope-allreduce-table 2\n", ":1: no table of this version");
    expect_refusal(f, FIRST "beyond ring\n", ":2: 'beyond ring' stands before");
    expect_refusal(f, FIRST "topology MPI 2,2\n" COSTS "up-to 10 ring\n", "before its 'beyond'");
    expect_refusal(f, FIRST "topology MPI 2,2\nbeyond ring\n", "before its 'costs'");
    expect_refusal(f, FIRST "topology MPI 2,2\n" COSTS "beyond wheel\n", ":4: 'wheel' is no alg");
    expect_refusal(f, FIRST "topology MPI 2,2\n" COSTS "up-to x ring\n", ":4: 'x' is no number");
    expect_refusal(f, FIRST "topology MPI 2,2\n" COSTS "up-to 9 ring\nup-to 9 tree\n",
                   ":5: sizes must ascend");
    expect_refusal(f, FIRST "topology MPI 2,2\n" COSTS "beyond ring\nup-to 9 tree\n",
                   ":5: sizes must ascend");
    expect_refusal(f, FIRST "topology MPI 2,2\ncosts 1 2 3\n", ":3: costs are '1 2 3'");
    expect_refusal(f, FIRST "topology MPI 2,2\ncosts 1 2 3 nan 5\n", ":3: costs are");
    expect_refusal(f, FIRST "topology MPI 2,2\nmeasured 64\n", ":3: measured is '64'");
    expect_refusal(f, FIRST "topology MPI 2,2\nmeasured 64 8\n", ":3: measured is '64 8'");
    expect_refusal(f, FIRST "topology MPI 2,2\nmeasured 64 -8\n", ":3: measured is '64 -8'");
    expect_refusal(f, FIRST "topology MPI 2,2\nmeasured 0 8 9\n", ":3: measured is '0 8 9'");
    expect_refusal(f, FIRST "topology MPI 2,2\nwhat\n", ":3: 'what', expected");
}

static void a_missing_table_says_so(void **state)
{
    struct folder *f = *state;
    char message[512];
    struct rt_choice got;
    bool found;
    assert_int_equal(rt_choice_read("/nowhere/table", "MPI 2,2", &f->layout, &got, &found, message,
                                    sizeof message),
                     -ENOENT);
    assert_non_null(strstr(message, "/nowhere/table"));
    assert_int_equal(
        rt_choice_write("/proc/nowhere/table", "MPI 2,2", &costs, &got, message, sizeof message),
        -ENOENT);
}

/* An error where stdio's buffer is full, in whatever line that is, is not one of the end: the
 * length of a name moves the place. A limit of the file's size fails as a full disk does. */
static void full_disk_keeps_the_old_one(void **state)
{
    struct folder *f = *state;
    char message[512], topology[RT_TOPOLOGY_TEXT_MAX];
    const struct rt_choice c = three_steps();
    struct rlimit old, none;
    struct stat before, after;
    int n = 100;
    do { /* until one more would be on both sides of a buffer's end */
        snprintf(topology, sizeof topology, "MPI 1,%d", n++);
        assert_int_equal(rt_choice_write(f->file, topology, &costs, &c, message, 512), 0);
        assert_int_equal(stat(f->file, &before), 0);
    } while (before.st_size < 4096 - 500);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    for (size_t length = 5; length < sizeof topology; length++) {
        memset(topology, '9', sizeof topology);
        memcpy(topology, "MPI ", 4);
        topology[length] = 0;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        const int error = rt_choice_write(f->file, topology, &costs, &c, message, sizeof message);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(error, -EFBIG);
        assert_non_null(strstr(message, f->file));
        assert_int_equal(stat(f->file, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
    }
    /* whose sizes have been on both sides of the buffer's */
    assert_true(before.st_size < 4096 - 200 && before.st_size + RT_TOPOLOGY_TEXT_MAX > 4096 + 200);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(plan_text_is_what_was_parsed),
        cmocka_unit_test(two_hosts_have_hierarchical_auto),
        IN_FOLDER(what_was_written_is_read_and_sections_of_others_stay),
        IN_FOLDER(another_topology_is_predicted_by_the_costs),
        cmocka_unit_test(predicted_order_follows_the_costs),
        cmocka_unit_test(pick_takes_the_quickest_but_for_what_is_quick_by_chance),
        cmocka_unit_test(same_bits_takes_only_what_has_them),
        IN_FOLDER(a_damaged_table_is_refused_with_its_line),
        IN_FOLDER(a_missing_table_says_so),
        IN_FOLDER(full_disk_keeps_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
