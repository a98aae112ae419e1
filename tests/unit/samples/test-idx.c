/* SPDX-License-Identifier: Apache-2.0 */
/* MNIST-format files: right ones are read, of damaged ones it is said which, where and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "idx.h"

static char folder[] = "/tmp/test-idx-XXXXXX", message[512];
static const char *const names[] = {"train-images-idx3-ubyte",    "train-labels-idx1-ubyte",
                                    "train-images.idx3-ubyte",    "train-labels.idx1-ubyte",
                                    "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"};

/* 3 images of 2 x 2 */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2,  0,  0,
                                 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 4};

static void put(const char *name, const uint8_t *data, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static int clean(void **state)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return 0;
}

static int get(struct idx_data *ret)
{
    message[0] = 0;
    return idx_read(ret, folder, 10, message, sizeof message);
}

static void check_right(void)
{
    struct idx_data data;
    if (get(&data) < 0)
        fail_msg("%s", message);
    assert_int_equal(data.items, 3);
    assert_int_equal(data.pixels, 4);
    assert_memory_equal(data.pixel, images + 16, 12);
    assert_memory_equal(data.label, labels + 8, 3);
    idx_clear(&data);
}

static void files_of_either_name_are_read(void **state)
{
    put(names[0], images, sizeof images);
    put(names[1], labels, sizeof labels);
    check_right();
    clean(NULL);
    put(names[2], images, sizeof images);
    put(names[3], labels, sizeof labels);
    check_right();
}

static void check_wrong(const char *where, const char *what)
{
    struct idx_data data = {.items = 77};
    assert_true(get(&data) < 0);
    assert_int_equal(data.items, 77);
    if (!strstr(message, where) || !strstr(message, what))
        fail_msg("\"%s\" doesn't say \"%s\" of %s", message, what, where);
}

static void damage_is_said(void **state)
{
    static const struct {
        int byte, to; /* of the images; from 100 on of the labels. -1: cut there */
        const char *what;
    } cases[] = {
        {0, -1, "ends at byte 0"},
        {3, 1, "expected 00000803"},
        {2, 13, "expected 00000803"},
        {7, 4, "ends at byte 28"},
        {7, 2, "goes on after"},
        {4, 255, "ends at byte 28"},
        {11, 0, "size 0 at byte 8"},
        {20, -1, "ends at byte 20"},
        {15, -1, "ends at byte 15"},
        {103, 3, "expected 00000801"},
        {107, 2, "goes on after"},
        {110, -1, "ends at byte 10"},
        {109, 10, "label 10 at byte 9, expected 0 to 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t image[sizeof images], label[sizeof labels];
        bool of_labels = cases[i].byte >= 100;
        int at = cases[i].byte % 100;
        memcpy(image, images, sizeof image);
        memcpy(label, labels, sizeof label);
        if (cases[i].to >= 0)
            (of_labels ? label : image)[at] = (uint8_t)cases[i].to;
        put(names[0], image, cases[i].to < 0 && !of_labels ? (size_t)at : sizeof image);
        put(names[1], label, cases[i].to < 0 && of_labels ? (size_t)at : sizeof label);
        check_wrong(names[of_labels], cases[i].what);
    }
    uint8_t four[12] = {0, 0, 8, 1, 0, 0, 0, 4};
    put(names[0], images, sizeof images);
    put(names[1], four, sizeof four);
    check_wrong(names[1], "4 labels of 3 images");
}

static void missing_file_is_named(void **state)
{
    check_wrong(folder, "no train-images-idx3-ubyte");
    put(names[0], images, sizeof images);
    check_wrong(folder, "no train-labels-idx1-ubyte");
    put(names[5], (const uint8_t *)"\x1f\x8b\x08 damaged", 11);
    check_wrong(names[5], "");
}

static void compressed_files_are_read_where_zlib_is(void **state)
{
    char command[256];
    put(names[0], images, sizeof images);
    put(names[1], labels, sizeof labels);
    snprintf(command, sizeof command, "gzip %s/train-*", folder);
    assert_int_equal(system(command), 0);
    struct idx_data data;
    if (get(&data) == -ENOTSUP) {
        assert_non_null(strstr(message, "built without zlib"));
        return;
    }
    idx_clear(&data);
    check_right();
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(files_of_either_name_are_read, clean),
        cmocka_unit_test_teardown(damage_is_said, clean),
        cmocka_unit_test_teardown(missing_file_is_named, clean),
        cmocka_unit_test_teardown(compressed_files_are_read_where_zlib_is, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
