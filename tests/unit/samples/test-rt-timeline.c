/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline file: its text, letter by letter; files one after the other; threads; no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-timeline.h"

static char path[] = "/tmp/rt-timeline-XXXXXX";

static int make_path(void **state)
{
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    return unlink(path);
}

/* With 0 for what a clock says. */
static char *text_of_file(void)
{
    FILE *f = fopen(path, "r");
    struct stat status;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &status), 0);
    char *text = malloc((size_t)status.st_size + 1);
    assert_non_null(text);
    size_t n = fread(text, 1, (size_t)status.st_size, f), kept = 0;
    fclose(f);
    assert_int_equal(n, status.st_size);
    for (size_t i = 0; i < n; i++) {
        text[kept++] = text[i];
        bool is_time = (kept >= 6 && memcmp(text + kept - 6, "\"ts\": ", 6) == 0) ||
                       (kept >= 9 && memcmp(text + kept - 9, "_micros\":", 9) == 0);
        while (is_time && i + 1 < n && isdigit((unsigned char)text[i + 1]))
            i++;
        if (is_time)
            text[kept++] = '0';
    }
    text[kept] = 0;
    return text;
}

static struct rt_tensor tensor_of(const char *name)
{
    struct rt_tensor t = {.kind = RT_ALLREDUCE, .type = RT_FLOAT32, .count = 7};
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static void once(const struct rt_tensor *t)
{
    rt_timeline_ready(t, 1);
    rt_timeline_ready(t, 0);
    rt_timeline_agreed(t);
    struct rt_timeline_tensor *x = rt_timeline_begin(t, rt_timeline_operation(t));
    rt_timeline_activity(x, "QUEUE");
    char name[] = "MPI_ALLREDUCE";
    rt_timeline_activity(x, name);
    memset(name, '?', sizeof name); /* it was the call's alone */
    rt_timeline_end(x);
}

#define HEAD                                                                                       \
    "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "                        \
    "{\"start_time_since_epoch_in_micros\":0}},\n"                                                 \
    "{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 0, \"args\": {\"sort_index\": 0}}"
#define NAMED(name)                                                                                \
    ",\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"args\": {\"name\": \"" name      \
    "\"}},\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 1, \"args\": "              \
    "{\"sort_index\": 1}}"
#define BEGIN(name) ",\n{\"ph\": \"B\", \"name\": \"" name "\", \"ts\": 0, \"pid\": 1}"
#define READY(rank) ",\n{\"ph\": \"X\", \"name\": \"" rank "\", \"ts\": 0, \"pid\": 1, \"dur\": 0}"
#define END         ",\n{\"ph\": \"E\", \"ts\": 0, \"pid\": 1}"
#define END_OF(type, shape)                                                                        \
    ",\n{\"ph\": \"E\", \"ts\": 0, \"pid\": 1, \"args\": {\"dtype\": \"" type                      \
    "\", \"shape\": \"" shape "\"}}"
#define CYCLE ",\n{\"ph\": \"i\", \"name\": \"CYCLE_START\", \"ts\": 0, \"s\": \"g\"}"

static void file_is_as_horovod_writes_it(void **state)
{
    struct rt_tensor t = tensor_of("layer \"1\"\\\t\xc3\xa4\xff");
    strcpy(t.shape, "[64,3,7,7]");
    assert_int_equal(rt_timeline_open(path, true), 0);
    assert_int_equal(rt_timeline_open(path, true), -EBUSY);
    rt_timeline_cycle();
    once(&t);
    t.op = RT_ADASUM;
    *t.shape = 0;
    once(&t);
    assert_int_equal(rt_timeline_close(), 0);
    rt_timeline_release();
    char *text = text_of_file();
    assert_string_equal(
        text,
        HEAD CYCLE NAMED("layer \\\"1\\\"\\\\\\u0009\xc3\xa4\\u00ff") BEGIN("NEGOTIATE_ALLREDUCE")
            READY("1") READY("0") END BEGIN("ALLREDUCE") BEGIN("QUEUE") END BEGIN("MPI_ALLREDUCE")
                END END_OF("float32", "[64, 3, 7, 7]") BEGIN("NEGOTIATE_ADASUM") READY("1")
                    READY("0") END BEGIN("ADASUM") BEGIN("QUEUE") END BEGIN("MPI_ALLREDUCE")
                        END END_OF("float32", "[7]") "]");
    free(text);
}

static void file_without_events_is_whole(void **state)
{
    assert_int_equal(rt_timeline_open(path, true), 0);
    assert_int_equal(rt_timeline_close(), 0);
    assert_int_equal(rt_timeline_close(), 0);
    char *text = text_of_file();
    assert_string_equal(text, HEAD "]");
    free(text);
}

/* What began before, or outside, leaves no loose ends. */
static void file_opened_midway_nests(void **state)
{
    const struct rt_tensor t = tensor_of("t"), none = tensor_of("none");
    assert_int_equal(rt_timeline_open(path, false), 0);
    rt_timeline_ready(&t, 1);
    struct rt_timeline_tensor *x = rt_timeline_begin(&none, "ALLREDUCE");
    assert_int_equal(rt_timeline_close(), 0);
    rt_timeline_end(x);
    rt_timeline_cycle();
    assert_int_equal(rt_timeline_open(path, false), 0);
    rt_timeline_activity(x, "QUEUE");
    rt_timeline_agreed(&t);
    rt_timeline_end(x);
    rt_timeline_cycle();
    once(&t);
    rt_timeline_release();
    char *text = text_of_file();
    assert_string_equal(text, HEAD NAMED("t") BEGIN("NEGOTIATE_ALLREDUCE") READY("1") READY("0")
                                  END BEGIN("ALLREDUCE") BEGIN("QUEUE") END BEGIN("MPI_ALLREDUCE")
                                      END END_OF("float32", "[7]") "]");
    free(text);
}

static char one_name[] = "one", other_name[] = "other";

static void *many(void *data)
{
    char name[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "%s.%d", (const char *)data, i % 5);
        const struct rt_tensor t = tensor_of(name);
        once(&t);
    }
    return NULL;
}

static void close_and_check_ends(void)
{
    assert_int_equal(rt_timeline_close(), 0);
    char *text = text_of_file();
    assert_true(strncmp(text, HEAD, strlen(HEAD)) == 0 && text[strlen(text) - 1] == ']');
    free(text);
}

/* The last file has all that two threads do: megabytes. */
static void files_come_and_go_while_others_work(void **state)
{
    pthread_t one, other, late;
    pthread_create(&one, NULL, many, one_name);
    pthread_create(&other, NULL, many, other_name);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(rt_timeline_open(path, true), 0);
        close_and_check_ends();
    }
    assert_int_equal(rt_timeline_open(path, true), 0);
    pthread_create(&late, NULL, many, one_name);
    many(other_name);
    pthread_join(late, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    close_and_check_ends();
    rt_timeline_release();
}

static void opening_says_why_it_cannot(void **state)
{
    assert_int_equal(rt_timeline_open("/nonexistent/file", false), -ENOENT);
    assert_int_equal(rt_timeline_open("/dev/full", false), -ENXIO);
    assert_int_equal(rt_timeline_close(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_as_horovod_writes_it),
        cmocka_unit_test(file_without_events_is_whole),
        cmocka_unit_test(file_opened_midway_nests),
        cmocka_unit_test(files_come_and_go_while_others_work),
        cmocka_unit_test(opening_says_why_it_cannot),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
