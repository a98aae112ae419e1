/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers that CUPTI fills: bounded, aligned, read in their order, whatever comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "cuda/cupti-buffers.h"

#define ROUNDS 20000

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;

static void read_one(const uint8_t *memory, size_t bytes)
{
    struct rs_cupti_buffer b;
    assert_true(rs_cupti_buffer_take(&b));
    assert_ptr_equal(b.memory, memory);
    assert_int_equal(b.valid_bytes, bytes);
    rs_cupti_buffer_done(&b);
}

static void ask_gives_as_many_as_there_are(void **state)
{
    uint8_t *all[RS_CUPTI_BUFFERS];
    struct rs_cupti_buffer b;
    for (int i = 0; i < RS_CUPTI_BUFFERS; i++) {
        all[i] = rs_cupti_buffer_ask();
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % 8, 0);
        all[i][0] = all[i][RS_CUPTI_BUFFER_BYTES - 1] = 1;
    }
    assert_null(rs_cupti_buffer_ask());
    assert_false(rs_cupti_buffer_take(&b));
    for (int i = RS_CUPTI_BUFFERS - 1; i >= 0; i--)
        assert_true(rs_cupti_buffer_give_back(all[i], 100 + (size_t)i));
    assert_null(rs_cupti_buffer_ask()); /* not before they are read */
    for (int i = RS_CUPTI_BUFFERS - 1; i >= 0; i--)
        read_one(all[i], 100 + (size_t)i);
    assert_false(rs_cupti_buffer_take(&b));
    assert_true(rs_cupti_buffer_give_back(rs_cupti_buffer_ask(), 0));
}

static void give_back_of_what_is_not_out_is_refused(void **state)
{
    struct rs_cupti_buffer b;
    uint8_t other[8], *p = rs_cupti_buffer_ask();
    assert_false(rs_cupti_buffer_give_back(NULL, 8));
    assert_false(rs_cupti_buffer_give_back(other, 8));
    assert_false(rs_cupti_buffer_give_back(p + 8, 8));
    assert_true(rs_cupti_buffer_give_back(p, SIZE_MAX)); /* more than it holds */
    assert_false(rs_cupti_buffer_give_back(p, 8));
    read_one(p, RS_CUPTI_BUFFER_BYTES);
    assert_false(rs_cupti_buffer_give_back(p, 8));
    p = rs_cupti_buffer_ask();
    assert_true(rs_cupti_buffer_give_back(p, 0)); /* nothing in it: nothing to read */
    assert_false(rs_cupti_buffer_take(&b));
}

static uint64_t given; /* atomic */

static void *fill(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t *p = rs_cupti_buffer_ask();
        if (p && rs_cupti_buffer_give_back(p, 8))
            __atomic_fetch_add(&given, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static void buffers_of_many_threads_are_each_read_once(void **state)
{
    pthread_t threads[3];
    uint64_t taken = 0;
    struct rs_cupti_buffer b;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fill, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        if (rs_cupti_buffer_take(&b)) {
            taken++;
            rs_cupti_buffer_done(&b);
        }
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (; rs_cupti_buffer_take(&b); taken++)
        rs_cupti_buffer_done(&b);
    assert_true(taken == given && taken >= RS_CUPTI_BUFFERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ask_gives_as_many_as_there_are),
        cmocka_unit_test(give_back_of_what_is_not_out_is_refused),
        cmocka_unit_test(buffers_of_many_threads_are_each_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
