/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints come back to the bit, replace the old one wholly or not at all, and are checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt-train.h"

static char folder[] = "/tmp/test-rt-checkpoint-XXXXXX", path[64], draft[80];
static char message[RT_CHECKPOINT_MESSAGE_BYTES];

static float weight[4099];
static int64_t step;
static uint8_t odd[13];
static const struct rt_parameter list[] = {
    {"weight", weight, 4099, RT_FLOAT32},
    {"step", &step, 1, RT_INT64},
    {"odd", odd, 13, RT_UINT8},
    {"empty", NULL, 0, RT_FLOAT32},
};
#define N (sizeof list / sizeof *list)

/* What was done for the disk, in its order: a file or a folder synchronised, a file renamed. */
static char done[8];
static char failing; /* one of these */

static int note(char what)
{
    const size_t n = strlen(done);
    if (n < sizeof done - 1)
        done[n] = what;
    errno = EIO;
    return what == failing ? -1 : 0;
}

int fsync(int fd)
{
    struct stat st;
    fstat(fd, &st);
    return note(S_ISDIR(st.st_mode) ? 'd' : 'f') ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return note('r') ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void fill(int with)
{
    for (int i = 0; i < 4099; i++)
        weight[i] = (float)(i * 31 + with) / 7;
    uint32_t nan_bits = 0x7fc12345;
    memcpy(&weight[5], &nan_bits, sizeof nan_bits);
    step = with;
    memset(odd, with, sizeof odd);
}

static void check_is(int with)
{
    static float wanted[4099];
    memcpy(wanted, weight, sizeof wanted);
    int64_t got = step;
    uint8_t last = odd[12];
    fill(with);
    assert_memory_equal(wanted, weight, sizeof wanted);
    assert_int_equal(got, with);
    assert_int_equal(last, with);
}

static int save(void)
{
    message[0] = 0;
    return rt_checkpoint_write(path, "net 3", list, N, message, sizeof message);
}

static int load(void)
{
    message[0] = 0;
    return rt_checkpoint_read(path, "net 3", list, N, message, sizeof message);
}

static void says(const char *text)
{
    if (!strstr(message, text) || !strstr(message, path))
        fail_msg("\"%s\" doesn't say \"%s\" of %s", message, text, path);
}

static void state_comes_back_to_the_bit(void **state)
{
    fill(1);
    assert_int_equal(save(), 0);
    fill(2);
    assert_int_equal(load(), 0);
    check_is(1);
    fill(3);
    assert_int_equal(save(), 0); /* replaces */
    fill(4);
    assert_int_equal(load(), 0);
    check_is(3);
    assert_int_equal(access(draft, F_OK), -1);
}

static void any_flipped_bit_or_missing_byte_is_seen(void **state)
{
    fill(1);
    assert_int_equal(save(), 0);
    int fd = open(path, O_RDWR);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    uint64_t random = 5;
    for (int i = 0; i < 400; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        off_t at = (off_t)(i < 200 ? (uint64_t)i * 3 : (random >> 20) % (uint64_t)st.st_size);
        uint8_t byte, flipped;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        flipped = (uint8_t)(byte ^ 1 << (random >> 60) % 8);
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        fill(2);
        assert_true(load() < 0);
        says("");
        check_is(2);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    static const off_t cuts[] = {0, 1, 15, 300, 1000, 5000};
    for (size_t i = 0; i <= sizeof cuts / sizeof *cuts; i++) {
        off_t length = i < sizeof cuts / sizeof *cuts ? cuts[i] : st.st_size - 1;
        assert_int_equal(save(), 0);
        assert_int_equal(truncate(path, length), 0);
        fill(1);
        assert_int_equal(load(), -EBADMSG);
        says(length < 288 ? "no checkpoint" : "damaged");
    }
    close(fd);
}

static void foreign_file_is_refused_by_name(void **state)
{
    fill(1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load(), -ENOENT);
    says("can't be opened");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fprintf(f, "not one of ours %d\n", i);
    fclose(f);
    assert_int_equal(load(), -EBADMSG);
    says("no checkpoint");

    assert_int_equal(rt_checkpoint_write(path, "lm 7", list, N, message, sizeof message), 0);
    assert_int_equal(load(), -EINVAL);
    says("\"lm 7\"; this is \"net 3\"");

    struct rt_parameter other[N];
    memcpy(other, list, sizeof other);
    other[1].name = "epoch";
    assert_int_equal(rt_checkpoint_write(path, "net 3", other, N, message, sizeof message), 0);
    assert_int_equal(load(), -EINVAL);
    says("epoch");
    assert_int_equal(rt_checkpoint_write(path, "net 3", list, N - 1, message, sizeof message), 0);
    assert_int_equal(load(), -EINVAL);
    says("3 tensors");
}

/* A limit of the file's size fails as a full disk does, in the middle of the file. */
static void full_disk_keeps_the_old_one(void **state)
{
    fill(1);
    assert_int_equal(save(), 0);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    for (rlim_t limit = 0; limit < 16000; limit += 5000) {
        small.rlim_cur = limit;
        fill(2);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int result = save();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(result, -EFBIG);
        says("older one is kept");
        assert_int_equal(access(draft, F_OK), -1);
        assert_int_equal(load(), 0);
        check_is(1);
    }
}

/* A name that is on the disk before its contents would be a damaged file after a power failure. */
static void contents_are_on_the_disk_before_the_name(void **state)
{
    fill(1);
    memset(done, 0, sizeof done);
    assert_int_equal(save(), 0);
    assert_string_equal(done, "frd");
    for (const char *f = "frd"; *f; f++) {
        fill(2);
        failing = *f;
        assert_int_equal(save(), -EIO);
        failing = 0;
        says(*f == 'd' ? "its folder can't be synchronised" : "an older one is kept");
        assert_int_equal(access(draft, F_OK), -1);
        fill(3);
        assert_int_equal(load(), 0);
        check_is(*f == 'd' ? 2 : 1);
    }
}

static void save_for_ever(void)
{
    for (int with = 2;; with = with % 99 + 1) {
        fill(with);
        if (save() != 0)
            _exit(1);
    }
}

/* At any moment: what stands there is whole. */
static void killed_writer_leaves_a_whole_one(void **state)
{
    const uint64_t seed = (uint64_t)time(NULL);
    uint64_t random = seed;
    printf("seed %llu\n", (unsigned long long)seed);
    fill(1);
    assert_int_equal(save(), 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            save_for_ever();
        assert_true(child > 0);
        random = random * 6364136223846793005u + 1442695040888963407u;
        const struct timespec moment = {.tv_nsec = (long)((random >> 33) % 20000000)};
        nanosleep(&moment, NULL);
        int status;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(load(), 0);
        assert_in_range(step, 1, 99);
        check_is((int)step);
    }
    assert_int_equal(save(), 0); /* what a killed one left beside doesn't matter */
    assert_int_equal(access(draft, F_OK), -1);
}

static void missing_folder_is_said(void **state)
{
    fill(1);
    assert_int_equal(
        rt_checkpoint_write("/tmp/no/such/folder/x", "net 3", list, N, message, sizeof message),
        -ENOENT);
    assert_non_null(strstr(message, "/tmp/no/such/folder/x.new"));
}

/* A name that is cut off would be the same as another one. */
static void list_that_can_be_none_is_refused(void **state)
{
    char long_name[RT_NAME_MAX + 2] = "";
    memset(long_name, 'n', RT_NAME_MAX + 1);
    const struct rt_parameter bad[] = {
        {NULL, weight, 1, RT_FLOAT32},           {long_name, weight, 1, RT_FLOAT32},
        {"data", NULL, 1, RT_FLOAT32},           {"type", weight, 1, (enum rt_type)RT_TYPE_COUNT},
        {"type", weight, 1, (enum rt_type) - 1}, {"count", weight, UINT64_MAX, RT_FLOAT32},
        {"count", weight, UINT64_MAX, RT_UINT8}, {"count", weight, INT64_MAX / 4, RT_FLOAT32},
    };
    fill(1);
    assert_int_equal(save(), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int expected = bad[i].count > 1 ? -EFBIG : -EINVAL;
        assert_int_equal(rt_checkpoint_write(path, "net 3", &bad[i], 1, message, sizeof message),
                         expected);
        says(bad[i].name == long_name ? "too long" : bad[i].name ? bad[i].name : "missing");
        assert_int_equal(rt_checkpoint_read(path, "net 3", &bad[i], 1, message, sizeof message),
                         expected);
    }
    assert_int_equal(rt_checkpoint_write(NULL, "net 3", list, N, NULL, 0), -EINVAL);
    assert_int_equal(rt_checkpoint_write("", "net 3", list, N, NULL, 0), -EINVAL);
    assert_int_equal(rt_checkpoint_write(path, NULL, list, N, NULL, 0), -EINVAL);
    assert_int_equal(rt_checkpoint_read(path, "net 3", NULL, 1, NULL, 0), -EINVAL);
    assert_int_equal(load(), 0);
    check_is(1);
}

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/checkpoint", folder);
    snprintf(draft, sizeof draft, "%s.new", path);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_comes_back_to_the_bit),
        cmocka_unit_test(any_flipped_bit_or_missing_byte_is_seen),
        cmocka_unit_test(foreign_file_is_refused_by_name),
        cmocka_unit_test(full_disk_keeps_the_old_one),
        cmocka_unit_test(contents_are_on_the_disk_before_the_name),
        cmocka_unit_test(killed_writer_leaves_a_whole_one),
        cmocka_unit_test(missing_folder_is_said),
        cmocka_unit_test(list_that_can_be_none_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
