/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks tell each other of all sets: runs of a set's number, for announcements a length, and
 * what rt-member.h and rt-message.h say of one.
 */
#include "rt-sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct head {
    int32_t set;
    uint32_t bytes;
};

/* ---- announcements ---- */

/* A set may have been removed since an operation of it was handed over. */
static int note(struct rt_sets *s, struct rt_operation *o)
{
    struct rt_set *set = rt_sets_find(s, o->tensor.set);
    char text[80];
    if (set && set->member) {
        s->under_way++;
        return rt_member_announce(set->member, &o->tensor);
    }
    snprintf(text, sizeof text, "process set %d was removed", (int)o->tensor.set);
    rt_table_finish(s->table, o, -ENOENT, text);
    return 0;
}

static int put_set(struct rt_set *set, struct rt_bytes *to)
{
    struct rt_bytes noted = {0};
    if (!set->member)
        return 0;
    rt_member_put(set->member, &noted);
    const struct head head = {set->id, (uint32_t)noted.n};
    if (noted.n > 0) {
        rt_put(to, &head, sizeof head);
        rt_put(to, noted.data, noted.n);
    }
    free(noted.data);
    return noted.failed || to->failed ? -ENOMEM : 0;
}

/* That of all ranks comes last: where it says that this rank shuts down, all is said. */
int rt_sets_announce(struct rt_sets *s, struct rt_bytes *to)
{
    struct rt_operation *o;
    int error = 0;
    while (!error && (o = rt_table_take_new(s->table)))
        error = note(s, o);
    for (int i = s->count - 1; i >= 0 && !error; i--)
        error = put_set(s->list[i], to);
    return error;
}

static int tell_who_left(struct rt_sets *s, int rank)
{
    int error = 0;
    if (rt_coordinator_has_left(s->list[0]->coordinator, rank))
        for (int i = 1; i < s->count && !error; i++)
            error = rt_coordinator_leave(s->list[i]->coordinator, rank);
    return error;
}

int rt_sets_hear(struct rt_sets *s, int from, const struct rt_bytes *message)
{
    struct rt_reader reader = {message->data, message->n};
    int error = 0;
    while (reader.left > 0 && !error) {
        struct head head;
        if (rt_get(&reader, &head, sizeof head) || head.bytes > reader.left ||
            head.set >= s->next_id)
            return -EPROTO;
        const struct rt_set *set = rt_sets_find(s, head.set); /* NULL: removed meanwhile */
        struct rt_reader its = {reader.at, head.bytes};
        while (set && its.left > 0 && !error)
            error = rt_coordinator_hear(set->coordinator, from, &its);
        reader.at += head.bytes;
        reader.left -= head.bytes;
    }
    return error ? error : tell_who_left(s, from);
}

/* ---- orders ---- */

static int put_order(const struct rt_set *set, struct rt_order *order, struct rt_bytes *to)
{
    struct rt_bytes text = {0};
    const int32_t id = set->id;
    bool failed = false;
    rt_put(&text, &id, sizeof id);
    rt_put_order(&text, order);
    for (int i = 0; i < set->n; i++) {
        rt_put(&to[set->ranks[i]], text.data, text.n);
        failed = failed || to[set->ranks[i]].failed;
    }
    for (uint32_t i = 0; i < order->n; i++)
        rt_timeline_agreed(&order->tensors[i]);
    failed = failed || text.failed;
    free(text.data);
    rt_order_clear(order);
    return failed ? -ENOMEM : 0;
}

/* The last of all is that of all ranks, where no other has any. */
static struct rt_set *next_set(const struct rt_sets *s)
{
    struct rt_coordinator *first = NULL;
    for (int i = 0; i < s->count; i++)
        first = rt_coordinator_first_of(first, s->list[i]->coordinator);
    for (int i = 0; i < s->count; i++)
        if (s->list[i]->coordinator == first)
            return s->list[i];
    return s->list[0];
}

/* All that it has ready comes before its end. */
static int end_set(const struct rt_set *set, struct rt_bytes *to)
{
    struct rt_order order;
    int error = set ? rt_coordinator_close(set->coordinator) : 0, got = 0;
    while (set && !error && (got = rt_coordinator_next(set->coordinator, &order)) > 0)
        error = put_order(set, &order, to);
    return error ? error : got;
}

int rt_sets_decide(struct rt_sets *s, struct rt_bytes *to)
{
    struct rt_order order;
    for (;;) {
        struct rt_set *set = next_set(s);
        int error = rt_coordinator_next(set->coordinator, &order);
        if (error <= 0)
            return error;
        const int id = order.tensors[0].kind == RT_REMOVE_SET ? (int)order.tensors[0].count : 0;
        error = id > 0 && !order.error ? end_set(rt_sets_find(s, id), to) : 0;
        if (!error)
            error = put_order(set, &order, to);
        if (error) {
            rt_order_clear(&order);
            return error;
        }
    }
}

int rt_sets_get_order(struct rt_sets *s, struct rt_reader *from, struct rt_order *ret,
                      struct rt_set **ret_set)
{
    int32_t id;
    if (rt_get(from, &id, sizeof id))
        return -EPROTO;
    *ret_set = rt_sets_find(s, id);
    return *ret_set && (*ret_set)->member ? rt_member_get_order((*ret_set)->member, from, ret)
                                          : -EPROTO;
}

/* ---- what takes too long ---- */

void rt_sets_set_time(struct rt_sets *s, uint64_t now_ns)
{
    for (int i = 0; i < s->count; i++)
        rt_coordinator_set_time(s->list[i]->coordinator, now_ns);
}

unsigned rt_sets_say_stalled(const struct rt_sets *s, uint64_t after_ns, struct rt_bytes *text)
{
    unsigned n = 0;
    for (int i = 0; i < s->count; i++)
        n += rt_coordinator_say_stalled(s->list[i]->coordinator, after_ns, text);
    return n;
}

int rt_sets_give_up(struct rt_sets *s, uint64_t after_ns)
{
    int error = 0;
    for (int i = 0; i < s->count && !error; i++)
        error = rt_coordinator_give_up(s->list[i]->coordinator, after_ns);
    return error;
}
