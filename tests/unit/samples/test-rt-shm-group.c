/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks find a region by its name, in any order; no file stays, whatever happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-ranks.h"
#include "rt-shm-group.h"

enum { WRONG = 1 };

static char name[64], path[96];

static void new_name(void)
{
    static int number;
    snprintf(name, sizeof name, "rt-test-%d-%d", (int)getpid(), number++);
    snprintf(path, sizeof path, "/dev/shm/%s", name);
}

static int file_exists(void)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static int sum_rank(int rank, int size, void *data)
{
    struct rt_transport *t = rt_shm_group_new(name, rank, size);
    int32_t value = rank + 1;
    if (!t)
        return WRONG;
    int error = rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM);
    int is_wrong = error || value != size * (size + 1) / 2 || file_exists();
    rt_shm_group_free(t);
    return is_wrong;
}

static void ranks_meet_by_name_and_leave_no_file(void **state)
{
    for (int size = 1; size <= 8; size++) {
        new_name();
        assert_int_equal(run_each(size, size % 2, sum_rank, NULL), 0);
        assert_false(file_exists());
    }
}

/* Rank 0 has gone before rank 1 comes. */
static void what_one_said_who_has_left_is_found(void **state)
{
    int32_t value = 4711, got = 0;
    new_name();
    struct rt_transport *t = rt_shm_group_new(name, 0, 2);
    assert_non_null(t);
    assert_int_equal(rt_broadcast(t, &value, 1, RT_INT32, 0), 0);
    rt_shm_group_free(t);
    t = rt_shm_group_new(name, 1, 2);
    assert_non_null(t);
    assert_false(file_exists());
    assert_int_equal(rt_broadcast(t, &got, 1, RT_INT32, 0), 0);
    assert_int_equal(got, value);
    rt_shm_group_free(t);
    rt_shm_group_free(NULL);
}

static void abandon_leaves_no_file_of_groups_that_others_never_came_to(void **state)
{
    new_name();
    struct rt_transport *a = rt_shm_group_new(name, 0, 3), *b = rt_shm_group_new(name, 2, 3);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(file_exists());
    rt_shm_group_free(a);
    rt_shm_group_abandon();
    assert_false(file_exists());
    rt_shm_group_abandon();
    rt_shm_group_free(b);
    rt_shm_group_abandon();
}

static void file_is_for_this_user_alone(void **state)
{
    struct stat st;
    new_name();
    struct rt_transport *t = rt_shm_group_new(name, 0, 2);
    assert_non_null(t);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    rt_shm_group_abandon();
    rt_shm_group_free(t);
}

static void place_taken_twice_is_busy(void **state)
{
    new_name();
    struct rt_transport *a = rt_shm_group_new(name, 0, 2);
    assert_non_null(a);
    assert_null(rt_shm_group_new(name, 0, 2));
    assert_int_equal(errno, EBUSY);
    struct rt_transport *b = rt_shm_group_new(name, 1, 2);
    assert_non_null(b); /* the second of place 0 has spoilt nothing */
    rt_shm_group_free(a);
    rt_shm_group_free(b);
    assert_false(file_exists());
}

static void what_is_no_file_is_an_error(void **state)
{
    new_name();
    assert_int_equal(symlink("/tmp/nowhere", path), 0);
    assert_null(rt_shm_group_new(name, 0, 2));
    assert_int_equal(errno, ELOOP);
    assert_int_equal(unlink(path), 0);
    assert_null(rt_shm_group_new("no/such/folder", 0, 2));
    assert_int_equal(errno, ENOENT);
}

/* Found by its name: of another size it would be another's. */
static void region_of_other_size_is_refused(void **state)
{
    new_name();
    struct rt_transport *t = rt_shm_group_new(name, 0, 2);
    assert_non_null(t);
    assert_null(rt_shm_group_new(name, 2, 3));
    assert_int_equal(errno, EPROTO);
    assert_null(rt_shm_group_new(name, 0, 1));
    assert_int_equal(errno, EPROTO);
    rt_shm_group_abandon();
    rt_shm_group_free(t);
}

static void region_that_finds_no_room_leaves_no_file(void **state)
{
    struct rlimit limit;
    new_name();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit little = {.rlim_cur = 4096, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    struct rt_transport *t = rt_shm_group_new(name, 0, 2);
    const int error = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_null(t);
    assert_int_equal(error, EFBIG);
    assert_false(file_exists());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_meet_by_name_and_leave_no_file),
        cmocka_unit_test(what_one_said_who_has_left_is_found),
        cmocka_unit_test(abandon_leaves_no_file_of_groups_that_others_never_came_to),
        cmocka_unit_test(file_is_for_this_user_alone),
        cmocka_unit_test(place_taken_twice_is_busy),
        cmocka_unit_test(what_is_no_file_is_an_error),
        cmocka_unit_test(region_of_other_size_is_refused),
        cmocka_unit_test(region_that_finds_no_room_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
