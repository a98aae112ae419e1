/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that TCP connects share a region, or all hear that they can't; nothing has a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rt-memory-file.h"
#include "rt-shm-group.h"
#include "tcp-ranks.h"

enum { WRONG = 1 };

#define VERIFY(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, by->rank, #condition);     \
            return WRONG;                                                                          \
        }                                                                                          \
    } while (0)

static int sum(struct rt_transport *t)
{
    int32_t value = t->rank + 1;
    const int error = rt_allreduce(t, &value, &value, 1, RT_INT32, RT_SUM);
    return error ? error : value == t->size * (t->size + 1) / 2 ? 0 : WRONG;
}

static int sum_rank(struct rt_transport *by, void *argument)
{
    (void)argument;
    for (int round = 0; round < 3; round++) {
        struct rt_transport *t = rt_shm_group_new(by);
        VERIFY(t && t->rank == by->rank && t->size == by->size);
        VERIFY(sum(t) == 0);
        rt_shm_group_free(t);
    }
    return sum(by); /* it stays as it was */
}

static void ranks_share_a_region(void **state)
{
    (void)state;
    for (int size = 1; size <= 8; size++)
        assert_int_equal(run_ranks_tcp(size, size % 2, false, 0, sum_rank, NULL), 0);
    rt_shm_group_free(NULL);
}

/* Rank 0 says something and has gone when rank 1 looks. */
static int leave_rank(struct rt_transport *by, void *argument)
{
    (void)argument;
    int32_t value = by->rank == 0 ? 4711 : 0, ignored;
    struct rt_transport *t = rt_shm_group_new(by);
    VERIFY(t);
    if (by->rank > 0)
        VERIFY(rt_broadcast(by, &ignored, 1, RT_INT32, 0) == 0);
    VERIFY(rt_broadcast(t, &value, 1, RT_INT32, 0) == 0);
    VERIFY(value == 4711);
    rt_shm_group_free(t);
    if (by->rank == 0)
        VERIFY(rt_broadcast(by, &value, 1, RT_INT32, 0) == 0);
    return 0;
}

static void what_one_said_who_has_left_is_found(void **state)
{
    (void)state;
    assert_int_equal(run_ranks_tcp(2, true, false, 0, leave_rank, NULL), 0);
}

/* `argument`: the rank that has no descriptor for the region. */
static int poor_rank(struct rt_transport *by, void *argument)
{
    struct rlimit limit;
    VERIFY(sum_rank(by, NULL) == 0); /* all connections are there */
    VERIFY(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit none = {.rlim_cur = 4, .rlim_max = limit.rlim_max}; /* poll wants some */
    if (by->rank == *(const int *)argument)
        VERIFY(setrlimit(RLIMIT_NOFILE, &none) == 0);
    struct rt_transport *t = rt_shm_group_new(by);
    const int error = errno;
    VERIFY(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    VERIFY(!t && error == EOPNOTSUPP);
    return sum_rank(by, NULL);
}

static void one_that_can_not_share_is_heard_of_by_all(void **state)
{
    (void)state;
    for (int poor = 0; poor < 3; poor++)
        assert_int_equal(run_ranks_tcp(3, true, false, 0, poor_rank, &poor), 0);
}

/* A file that is too large for this process (ulimit -f) is no region, and no end. */
static int limited_rank(struct rt_transport *by, void *argument)
{
    (void)argument;
    struct rlimit limit;
    VERIFY(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const struct rlimit little = {.rlim_cur = 8192, .rlim_max = limit.rlim_max};
    VERIFY(setrlimit(RLIMIT_FSIZE, &little) == 0);
    VERIFY(!rt_shm_group_new(by) && errno == EOPNOTSUPP);
    return sum(by);
}

static void region_beyond_the_limit_of_files_is_none(void **state)
{
    (void)state;
    assert_int_equal(run_ranks_tcp(2, true, false, 0, limited_rank, NULL), 0);
}

static int gone_rank(struct rt_transport *by, void *argument)
{
    if (by->rank == *(const int *)argument)
        return 0;
    VERIFY(!rt_shm_group_new(by) && errno == ECONNRESET);
    return 0;
}

static void one_that_has_gone_is_connreset(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++)
        assert_int_equal(run_ranks_tcp(2, true, false, 0, gone_rank, &gone), 0);
}

/* ---- nothing stays ---- */

static int files_of_shm(void)
{
    int n = 0;
    const struct dirent *e;
    DIR *dir = opendir("/dev/shm");
    while (dir && (e = readdir(dir)))
        n += strncmp(e->d_name, "rt-", 3) == 0;
    if (dir)
        closedir(dir);
    return n;
}

/* Rank 1 never takes part; all are killed. */
static int killed_rank(struct rt_transport *by, void *argument)
{
    int32_t *waiting = argument;
    if (by->rank == 1) {
        while (__atomic_load_n(waiting, __ATOMIC_ACQUIRE) < by->size - 1)
            usleep(1000);
        kill(0, SIGKILL);
    }
    __atomic_add_fetch(waiting, 1, __ATOMIC_ACQ_REL);
    rt_shm_group_new(by);
    return WRONG;
}

static void all_killed_at_the_start_leave_nothing(void **state)
{
    (void)state;
    const int before = files_of_shm();
    int32_t *waiting =
        mmap(NULL, sizeof *waiting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(waiting != MAP_FAILED);
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        run_ranks_tcp(3, true, false, 0, killed_rank, waiting);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(files_of_shm(), before);
    munmap(waiting, sizeof *waiting);
}

/* ---- files ---- */

static void file_opens_by_its_whole_name_alone(void **state)
{
    (void)state;
    struct rt_memory_name name, wrong;
    const int fd = rt_memory_file_new(&name);
    assert_true(fd >= 0 && name.fd == fd && name.pid == getpid());
    assert_int_equal(rt_memory_file_grow(fd, 3 * RT_MEMORY_FILE_HEAD), 0);
    assert_int_equal(pwrite(fd, "word", 4, RT_MEMORY_FILE_HEAD), 4);
    const int other = rt_memory_file_open(&name);
    char word[4];
    assert_true(other >= 0 && other != fd);
    assert_int_equal(pread(other, word, 4, RT_MEMORY_FILE_HEAD), 4);
    assert_memory_equal(word, "word", 4);
    close(other);
    wrong = name;
    wrong.token[1] ^= 1;
    assert_int_equal(rt_memory_file_open(&wrong), -ENOENT);
    wrong = name;
    wrong.fd = 0; /* whatever it is */
    assert_int_equal(rt_memory_file_open(&wrong), -ENOENT);
    close(fd);
    assert_int_equal(rt_memory_file_open(&name), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_a_region),
        cmocka_unit_test(what_one_said_who_has_left_is_found),
        cmocka_unit_test(one_that_can_not_share_is_heard_of_by_all),
        cmocka_unit_test(region_beyond_the_limit_of_files_is_none),
        cmocka_unit_test(one_that_has_gone_is_connreset),
        cmocka_unit_test(all_killed_at_the_start_leave_nothing),
        cmocka_unit_test(file_opens_by_its_whole_name_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
