/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the coordinator: there and back, and cut at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-message.h"

static const struct rt_tensor weight = {.kind = RT_ALLREDUCE,
                                        .type = RT_INT32,
                                        .op = RT_MAX,
                                        .priority = -5,
                                        .count = (uint64_t)5 << 33,
                                        .prescale = 0.25,
                                        .postscale = -3,
                                        .name = "layer1.weight",
                                        .members = 2,
                                        .row_count = 7,
                                        .shape = "3+4"};
static const struct rt_tensor bias = {.kind = RT_BROADCAST, .root = 3, .count = 1, .name = "b"};

static void assert_same(const struct rt_tensor *a, const struct rt_tensor *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->root, b->root);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->count, b->count);
    assert_true(a->prescale == b->prescale && a->postscale == b->postscale);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->members, b->members);
    assert_int_equal(a->row_count, b->row_count);
    assert_string_equal(a->shape, b->shape);
}

static void tensors_come_back_as_they_were(void **state)
{
    struct rt_bytes bytes = {0};
    struct rt_tensor longest = weight, got;
    memset(longest.name, 'x', RT_NAME_MAX);
    rt_put_tensor(&bytes, &weight);
    rt_put_tensor(&bytes, &longest);
    rt_put_tensor(&bytes, &bias);
    struct rt_reader reader = {bytes.data, bytes.n};
    assert_int_equal(rt_get_tensor(&reader, &got), 0);
    assert_same(&got, &weight);
    assert_int_equal(rt_get_tensor(&reader, &got), 0);
    assert_same(&got, &longest);
    assert_int_equal(rt_get_tensor(&reader, &got), 0);
    assert_same(&got, &bias);
    assert_int_equal(reader.left, 0);
    assert_int_equal(rt_get_tensor(&reader, &got), -EPROTO);
    free(bytes.data);
}

static void put_example(struct rt_bytes *bytes)
{
    struct rt_tensor tensors[] = {weight, bias, weight};
    uint32_t slots[] = {RT_SLOT_STORE | 700, RT_SLOT_NONE, 5};
    int32_t addressees[] = {4, 0, 77};
    char text[] = "no: rank 1";
    struct rt_order order = {.n = 3,
                             .tensors = tensors,
                             .slots = slots,
                             .error = -EINVAL,
                             .text = text,
                             .addressee_count = 3,
                             .addressees = addressees};
    rt_put_order(bytes, &order);
}

static void order_comes_back_as_it_was(void **state)
{
    struct rt_bytes bytes = {0};
    struct rt_order got;
    const struct rt_tensor nothing = {0};
    put_example(&bytes);
    struct rt_reader reader = {bytes.data, bytes.n};
    assert_int_equal(rt_get_order(&reader, &got), 0);
    assert_int_equal(reader.left, 0);
    assert_int_equal(got.n, 3);
    assert_same(&got.tensors[0], &weight);
    assert_same(&got.tensors[1], &bias);
    assert_same(&got.tensors[2], &nothing); /* went as a number */
    assert_int_equal(got.slots[0], RT_SLOT_STORE | 700);
    assert_int_equal(got.slots[1], RT_SLOT_NONE);
    assert_int_equal(got.slots[2], 5);
    assert_int_equal(got.error, -EINVAL);
    assert_string_equal(got.text, "no: rank 1");
    assert_int_equal(got.addressee_count, 3);
    assert_int_equal(got.addressees[2], 77);
    rt_order_clear(&got);
    free(bytes.data);
}

static void too_long_a_text_arrives_cut(void **state)
{
    enum { LONG = 3 << 20 };
    struct rt_bytes bytes = {0};
    struct rt_order order = {.error = -EINVAL, .text = malloc(LONG + 1)}, got;
    memset(order.text, 'x', LONG);
    order.text[LONG] = 0;
    rt_put_order(&bytes, &order);
    struct rt_reader reader = {bytes.data, bytes.n};
    assert_int_equal(rt_get_order(&reader, &got), 0);
    assert_int_equal(reader.left, 0);
    assert_int_equal(got.error, -EINVAL);
    assert_in_range(strlen(got.text), LONG / 4, LONG);
    rt_order_clear(&got);
    free(order.text);
    free(bytes.data);
}

static void order_cut_anywhere_is_refused(void **state)
{
    struct rt_bytes bytes = {0};
    put_example(&bytes);
    for (size_t n = 0; n < bytes.n; n++) {
        uint8_t *cut = malloc(n + 1); /* so that the sanitizer sees a read beyond */
        struct rt_order got;
        memcpy(cut, bytes.data, n);
        struct rt_reader reader = {cut, n};
        assert_int_equal(rt_get_order(&reader, &got), -EPROTO);
        free(cut);
    }
    free(bytes.data);
}

static void tensor_of_an_unknown_kind_is_refused(void **state)
{
    struct rt_bytes bytes = {0};
    struct rt_tensor got;
    rt_put_tensor(&bytes, &weight);
    bytes.data[offsetof(struct rt_tensor, kind)] = RT_KIND_COUNT;
    struct rt_reader reader = {bytes.data, bytes.n};
    assert_int_equal(rt_get_tensor(&reader, &got), -EPROTO);
    free(bytes.data);
}

static void tensor_of_an_unknown_type_is_refused_and_all_types_have_a_name(void **state)
{
    for (int type = 0; type <= RT_TYPE_COUNT; type++) {
        struct rt_bytes bytes = {0};
        struct rt_tensor sent = weight, got;
        sent.type = (uint8_t)type;
        rt_put_tensor(&bytes, &sent);
        struct rt_reader reader = {bytes.data, bytes.n};
        assert_int_equal(rt_get_tensor(&reader, &got), type < RT_TYPE_COUNT ? 0 : -EPROTO);
        assert_true((strcmp(rt_type_name((enum rt_type)type), "?") == 0) ==
                    (type == RT_TYPE_COUNT));
        assert_true((rt_type_bytes((enum rt_type)type) == 0) == (type == RT_TYPE_COUNT));
        free(bytes.data);
    }
    assert_string_equal(rt_type_name(RT_FLOAT8_E5M2), "float8_e5m2");
    assert_string_equal(rt_op_name(RT_AVG), "average");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_come_back_as_they_were),
        cmocka_unit_test(order_comes_back_as_it_was),
        cmocka_unit_test(too_long_a_text_arrives_cut),
        cmocka_unit_test(order_cut_anywhere_is_refused),
        cmocka_unit_test(tensor_of_an_unknown_kind_is_refused),
        cmocka_unit_test(tensor_of_an_unknown_type_is_refused_and_all_types_have_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
