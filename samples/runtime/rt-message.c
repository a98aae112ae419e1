/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-message.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX  (1u << 20) /* bytes; what thousands of ranks said may be more, and is cut */
#define COUNT_MAX (1u << 20) /* tensors, or addressees, of one order */

const char *rt_kind_name(enum rt_kind kind)
{
    static const char *const names[] = {
        "ALLREDUCE",     "BROADCAST", "BARRIER", "SHUTDOWN",        "ALLGATHER",
        "REDUCESCATTER", "ALLTOALL",  "JOIN",    "ADD_PROCESS_SET", "REMOVE_PROCESS_SET"};
    return kind < RT_KIND_COUNT ? names[kind] : "?";
}

const char *rt_type_name(enum rt_type type)
{
#define NAME(name, text, bytes) text,
    static const char *const names[] = {RT_TYPE_LIST(NAME)};
#undef NAME
    return type < RT_TYPE_COUNT ? names[type] : "?";
}

const char *rt_op_name(enum rt_op op)
{
#define NAME(name, text) text,
    static const char *const names[] = {RT_OP_LIST(NAME)};
#undef NAME
    return op < RT_OP_COUNT ? names[op] : op == RT_ADASUM ? "adasum" : "?";
}

/* Ranks that all say NaN are of one mind. */
static bool same_scale(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

bool rt_tensor_is_like(const struct rt_tensor *a, const struct rt_tensor *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->root == b->root &&
           a->compression == b->compression && a->count == b->count &&
           a->row_count == b->row_count && a->members == b->members &&
           same_scale(a->prescale, b->prescale) && same_scale(a->postscale, b->postscale) &&
           strcmp(a->shape, b->shape) == 0;
}

const char *rt_tensor_title(const struct rt_tensor *tensor, char to[RT_TITLE_MAX])
{
    if (tensor->set == 0)
        return tensor->name;
    snprintf(to, RT_TITLE_MAX, "%s of process set %d", tensor->name, (int)tensor->set);
    return to;
}

bool rt_changes_sets(enum rt_kind kind)
{
    return kind == RT_ADD_SET || kind == RT_REMOVE_SET;
}

bool rt_rows_may_differ(enum rt_kind kind)
{
    return kind == RT_ALLGATHER || kind == RT_ALLTOALL;
}

const char *rt_compression_name(enum rt_compression compression)
{
    static const char *const names[] = {"none", "none", "fp16", "bf16"};
    return compression < RT_COMPRESSION_COUNT ? names[compression] : "?";
}

void rt_order_clear(struct rt_order *order)
{
    free(order->tensors);
    free(order->slots);
    free(order->text);
    free(order->addressees);
    *order = (struct rt_order){0};
}

void rt_put(struct rt_bytes *to, const void *data, size_t n)
{
    if (to->n + n > to->capacity && !to->failed) {
        size_t capacity = (to->n + n) * 2;
        uint8_t *grown = realloc(to->data, capacity);
        if (grown) {
            to->data = grown;
            to->capacity = capacity;
        } else {
            to->failed = 1;
        }
    }
    if (to->failed || n == 0)
        return;
    memcpy(to->data + to->n, data, n);
    to->n += n;
}

static void put_text(struct rt_bytes *to, const char *text)
{
    const size_t length = text ? strlen(text) : 0;
    const uint32_t n = length < TEXT_MAX ? (uint32_t)length : TEXT_MAX;
    rt_put(to, &n, sizeof n);
    rt_put(to, text, n);
}

void rt_put_tensor(struct rt_bytes *to, const struct rt_tensor *tensor)
{
    rt_put(to, tensor, offsetof(struct rt_tensor, name));
    put_text(to, tensor->name);
    put_text(to, tensor->shape);
}

void rt_put_order(struct rt_bytes *to, const struct rt_order *order)
{
    rt_put(to, &order->error, sizeof order->error);
    put_text(to, order->text);
    rt_put(to, &order->addressee_count, sizeof order->addressee_count);
    rt_put(to, order->addressees, order->addressee_count * sizeof *order->addressees);
    rt_put(to, &order->n, sizeof order->n);
    rt_put(to, order->slots, order->n * sizeof *order->slots);
    for (uint32_t i = 0; i < order->n; i++)
        if (order->slots[i] & RT_SLOT_STORE)
            rt_put_tensor(to, &order->tensors[i]);
}

int rt_get(struct rt_reader *from, void *ret, size_t n)
{
    if (from->left < n)
        return -EPROTO;
    if (n > 0)
        memcpy(ret, from->at, n);
    from->at += n;
    from->left -= n;
    return 0;
}

/* A text of at most `max` bytes into zeroed storage. */
static int get_short_text(struct rt_reader *from, char *ret, uint32_t max)
{
    uint32_t n;
    return rt_get(from, &n, sizeof n) || n > max || rt_get(from, ret, n) ? -EPROTO : 0;
}

int rt_get_tensor(struct rt_reader *from, struct rt_tensor *ret)
{
    memset(ret, 0, sizeof *ret);
    if (rt_get(from, ret, offsetof(struct rt_tensor, name)) ||
        get_short_text(from, ret->name, RT_NAME_MAX) ||
        get_short_text(from, ret->shape, RT_SHAPE_MAX))
        return -EPROTO;
    return ret->kind < RT_KIND_COUNT && ret->type < RT_TYPE_COUNT && ret->op <= RT_ADASUM &&
                   ret->compression < RT_COMPRESSION_COUNT
               ? 0
               : -EPROTO;
}

/* A count, and storage for that many things: NULL where there are none. */
static int get_array(struct rt_reader *from, size_t each, uint32_t max, uint32_t *ret_n, void *ret)
{
    uint32_t n;
    if (rt_get(from, &n, sizeof n) || n > max)
        return -EPROTO;
    void *data = n > 0 ? calloc(n, each) : NULL;
    if (n > 0 && !data)
        return -ENOMEM;
    memcpy(ret, &data, sizeof data);
    *ret_n = n;
    return 0;
}

static int get_text(struct rt_reader *from, char **ret)
{
    uint32_t n;
    if (rt_get(from, &n, sizeof n) || n > TEXT_MAX)
        return -EPROTO;
    char *text = calloc(1, (size_t)n + 1);
    if (!text)
        return -ENOMEM;
    *ret = text;
    return rt_get(from, text, n);
}

static int get_order(struct rt_reader *from, struct rt_order *ret)
{
    int error = rt_get(from, &ret->error, sizeof ret->error);
    if (!error)
        error = get_text(from, &ret->text);
    if (!error)
        error = get_array(from, sizeof *ret->addressees, COUNT_MAX, &ret->addressee_count,
                          &ret->addressees);
    if (!error)
        error = rt_get(from, ret->addressees, ret->addressee_count * sizeof *ret->addressees);
    if (!error)
        error = get_array(from, sizeof *ret->slots, COUNT_MAX, &ret->n, &ret->slots);
    if (!error)
        error = rt_get(from, ret->slots, ret->n * sizeof *ret->slots);
    if (!error) {
        ret->tensors = calloc(ret->n + 1, sizeof *ret->tensors);
        error = ret->tensors ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; i < ret->n && !error; i++)
        if (ret->slots[i] & RT_SLOT_STORE)
            error = rt_get_tensor(from, &ret->tensors[i]);
    return error;
}

int rt_get_order(struct rt_reader *from, struct rt_order *ret)
{
    *ret = (struct rt_order){0};
    int error = get_order(from, ret);
    if (error)
        rt_order_clear(ret);
    return error;
}
