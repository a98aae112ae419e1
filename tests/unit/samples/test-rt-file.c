/* SPDX-License-Identifier: Apache-2.0 */
/* Names that lead to no file: nobody waits, and what is there stays. The limit of a file's size:
 * errors, no signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "idx.h"
#include "rt-alloc.h"
#include "rt-choice.h"
#include "rt-file.h"
#include "rt-timeline.h"
#include "rt-train.h"
#include "text.h"

static char folder[] = "/tmp/rt-file-XXXXXX";
static char message[512];

static const char *at(const char *name)
{
    static char path[4][128];
    static int n;
    snprintf(path[++n % 4], sizeof path[0], "%s/%s", folder, name);
    return path[n % 4];
}

/* A pipe that nobody has open, a socket, a folder, a device. */
static int make_folder(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    alarm(60); /* whoever waits */
    if (!mkdtemp(folder) || mkfifo(at("pipe"), 0666) != 0 || mkdir(at("folder"), 0777) != 0 ||
        symlink("/dev/full", at("device")) != 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", at("socket"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || close(fd) < 0;
}

static int remove_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const struct other {
    const char *name;
    int error;
} others[] = {{"pipe", -ENXIO}, {"socket", -ENXIO}, {"device", -ENXIO}, {"folder", -EISDIR}};
#define FOR_OTHERS(o) for (const struct other *o = others; o < others + 4; o++)

static void open_of_what_is_no_file_is_refused_at_once(void **state)
{
    FOR_OTHERS(o)
    {
        int error = 0;
        assert_int_equal(rt_file_open(at(o->name), O_WRONLY | O_CREAT | O_TRUNC, 0666), o->error);
        assert_int_equal(rt_file_open(at(o->name), O_RDONLY, 0), o->error);
        assert_null(rt_file_read(at(o->name), &error));
        assert_int_equal(error, o->error);
        assert_int_equal(rt_file_replaceable(at(o->name)), o->error);
    }
    assert_int_equal(rt_file_replaceable(at("none")), 0);
    assert_int_equal(rt_file_open(at("none"), O_RDONLY, 0), -ENOENT);
    assert_string_equal(rt_file_why(-ENOENT), "No such file or directory");
    assert_non_null(strstr(rt_file_why(-ENXIO), "expected a file"));
}

static void says(const char *name, const char *why)
{
    char expected[128];
    snprintf(expected, sizeof expected, "%s", at(name));
    if (!strstr(message, expected) || !strstr(message, why))
        fail_msg("'%s' says nothing of %s or '%s'", message, expected, why);
}

static void what_is_no_file_is_no_text_table_checkpoint_or_timeline(void **state)
{
    float value = 1;
    const struct rt_parameter p = {"value", &value, 1, RT_FLOAT32};
    const struct rt_costs costs = {.inside = {.a = 1e-6}};
    struct rt_choice choice = {0};
    struct text text;
    bool found;
    FOR_OTHERS(o)
    {
        const char *path = at(o->name), *why = rt_file_why(o->error);
        assert_int_equal(text_read(&text, path, message, sizeof message), o->error);
        says(o->name, why);
        assert_int_equal(rt_choice_read(path, "x", NULL, &choice, &found, message, sizeof message),
                         o->error);
        says(o->name, why);
        assert_int_equal(rt_choice_write(path, "x", &costs, &choice, message, sizeof message),
                         o->error);
        says(o->name, why);
        assert_int_equal(rt_checkpoint_read(path, "m", &p, 1, message, sizeof message), o->error);
        says(o->name, why);
        assert_int_equal(rt_checkpoint_write(path, "m", &p, 1, message, sizeof message), o->error);
        says(o->name, why);
        assert_int_equal(rt_timeline_open(path, false), o->error);
    }
}

/* The checkpoint's draft, and the files of a data set, have names that a user doesn't give. */
static void names_that_are_made_are_looked_at_too(void **state)
{
    float value = 1;
    const struct rt_parameter p = {"value", &value, 1, RT_FLOAT32};
    struct idx_data data;
    assert_int_equal(mkfifo(at("ckpt.new"), 0666), 0);
    assert_int_equal(rt_checkpoint_write(at("ckpt"), "m", &p, 1, message, sizeof message), -ENXIO);
    says("ckpt.new", "expected a file");
    assert_int_equal(mkfifo(at("train-images-idx3-ubyte"), 0666), 0);
    assert_int_equal(idx_read(&data, folder, 10, message, sizeof message), -ENXIO);
    says("train-images-idx3-ubyte", "expected a file");
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void assert_no_signal_waits(void)
{
    sigset_t pending, mask;
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGXFSZ));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGXFSZ));
}

static void write_over_the_limit_fails_without_a_signal(void **state)
{
    const struct rt_costs costs = {.inside = {.a = 1e-6}};
    struct rt_choice choice = {.n = 1};
    struct rt_file_limit limit, within;
    int fd = rt_file_open(at("small"), O_RDWR | O_CREAT, 0666);
    assert_true(fd >= 0);
    set_limit(4);
    rt_file_limit_begin(&limit);
    rt_file_limit_begin(&within);
    ssize_t whole = pwrite(fd, "abcd", 4, 0), more = pwrite(fd, "e", 1, 4);
    int error = errno;
    rt_file_limit_end(&within);
    int grown = ftruncate(fd, 5);
    rt_file_limit_end(&limit);
    int table = rt_choice_write(at("table"), "x", &costs, &choice, message, sizeof message);
    int timeline = rt_timeline_open(at("timeline"), false);
    float *memory = rt_alloc(1 << 20);
    set_limit(RLIM_INFINITY);
    close(fd);
    assert_int_equal(whole, 4);
    assert_int_equal(more, -1);
    assert_int_equal(error, EFBIG);
    assert_int_equal(grown, -1);
    assert_int_equal(table, -EFBIG);
    assert_int_equal(access(at("table"), F_OK), -1);
    assert_int_equal(timeline, -EFBIG);
    assert_int_equal(access(at("timeline"), F_OK), -1); /* not half of it */
    assert_non_null(memory);
    memory[(1 << 18) - 1] = 1;
    rt_free(memory);
    assert_no_signal_waits();
}

/* One that waited before isn't ours to take. */
static void signal_of_before_stays(void **state)
{
    struct rt_file_limit limit;
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGXFSZ);
    rt_file_limit_begin(&limit);
    rt_file_limit_end(&limit);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGXFSZ));
    signal(SIGXFSZ, SIG_IGN); /* forgets it */
    signal(SIGXFSZ, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    assert_no_signal_waits();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_of_what_is_no_file_is_refused_at_once),
        cmocka_unit_test(what_is_no_file_is_no_text_table_checkpoint_or_timeline),
        cmocka_unit_test(names_that_are_made_are_looked_at_too),
        cmocka_unit_test(write_over_the_limit_fails_without_a_signal),
        cmocka_unit_test(signal_of_before_stays),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
