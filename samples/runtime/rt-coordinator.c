/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-coordinator-state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fusion.h"
#include "rt-member.h"
#include "rt-timeline.h"

static void set_members(struct rt_coordinator *c, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        c->member[ranks ? ranks[i] : i] = true;
    c->members = n;
}

/* `ranks` NULL: 0, 1, ... */
static struct rt_coordinator *new_of(const int *ranks, int n, int size, uint64_t fusion_threshold,
                                     uint32_t cache_capacity)
{
    struct rt_coordinator *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->size = size;
    c->member = calloc((size_t)size, sizeof *c->member);
    c->fusion_threshold = fusion_threshold;
    c->leaving = calloc((size_t)size, sizeof *c->leaving);
    c->joined = calloc((size_t)size, sizeof *c->joined);
    c->cache = rt_cache_new(true);
    c->cache_capacity = cache_capacity;
    c->orders_read = calloc((size_t)size, sizeof *c->orders_read);
    if (!c->member || !c->leaving || !c->joined || !c->cache || !c->orders_read) {
        rt_coordinator_free(c);
        return NULL;
    }
    set_members(c, ranks, n);
    c->ended = ranks != NULL; /* it gives no last order */
    return c;
}

struct rt_coordinator *rt_coordinator_new(int size, uint64_t fusion_threshold,
                                          uint32_t cache_capacity)
{
    return new_of(NULL, size, size, fusion_threshold, cache_capacity);
}

struct rt_coordinator *rt_coordinator_new_of(const int *ranks, int n, int size,
                                             uint64_t fusion_threshold, uint32_t cache_capacity)
{
    return new_of(ranks, n, size, fusion_threshold, cache_capacity);
}

void rt_coordinator_free(struct rt_coordinator *c)
{
    uint32_t at = 0;
    if (!c)
        return;
    for (struct rt_waiting *w; (w = rt_index_next(&c->waiting, &at));)
        rt_waiting_free(w);
    rt_index_release(&c->waiting);
    for (unsigned i = 0; i < c->ready_count; i++)
        rt_waiting_free(c->ready[i]);
    free(c->ready);
    free(c->member);
    free(c->leaving);
    free(c->joined);
    rt_cache_free(c->cache);
    free(c->orders_read);
    free(c);
}

int rt_coordinator_make_ready(struct rt_coordinator *c, struct rt_waiting *w)
{
    if (c->ready_count == c->ready_room) {
        unsigned room = c->ready_room * 2 + 16;
        struct rt_waiting **grown = realloc(c->ready, room * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        c->ready = grown;
        c->ready_room = room;
    }
    rt_index_remove(&c->waiting, 0, w->tensor.name);
    w->sequence = c->sequence++;
    c->ready[c->ready_count++] = w;
    c->sorted = false;
    return 0;
}

static bool lacks_a_leaving_rank(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    for (int r = 0; r < c->size && c->leaving_count > 0; r++)
        if (c->leaving[r] && !w->said[r])
            return true;
    return false;
}

/* Of every rank it is known that it has it, or that it has joined; to join all must say. */
static bool is_complete(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    for (int r = 0; r < c->size && w->announced < c->members; r++)
        if (c->member[r] && !w->said[r] &&
            (!c->joined[r] || c->leaving[r] || w->tensor.kind == RT_JOIN))
            return false;
    return true;
}

static bool is_decided(struct rt_coordinator *c, struct rt_waiting *w)
{
    w->lost = lacks_a_leaving_rank(c, w);
    return w->lost || is_complete(c, w);
}

/* After a rank has joined or left. */
static int find_all_decided(struct rt_coordinator *c)
{
    struct rt_waiting **all = malloc((c->waiting.count + 1) * sizeof(*all));
    uint32_t at = 0, n = 0;
    int error = all ? 0 : -ENOMEM;
    for (struct rt_waiting *w; all && (w = rt_index_next(&c->waiting, &at));)
        all[n++] = w;
    for (uint32_t i = 0; i < n && !error; i++)
        if (is_decided(c, all[i]))
            error = rt_coordinator_make_ready(c, all[i]);
    free(all);
    return error;
}

static int announce_leaving(struct rt_coordinator *c, int rank)
{
    if (c->leaving[rank])
        return -EPROTO;
    c->leaving[rank] = true;
    c->leaving_count++;
    return find_all_decided(c);
}

bool rt_coordinator_has_left(const struct rt_coordinator *c, int rank)
{
    return c->leaving[rank];
}

int rt_coordinator_leave(struct rt_coordinator *c, int rank)
{
    return c->member[rank] && !c->leaving[rank] ? announce_leaving(c, rank) : 0;
}

int rt_coordinator_close(struct rt_coordinator *c)
{
    uint32_t at = 0;
    int error = 0;
    for (struct rt_waiting *w; !error && (w = rt_index_next(&c->waiting, &at)); at = 0) {
        w->closed = true;
        error = rt_coordinator_make_ready(c, w);
    }
    return error;
}

static struct rt_waiting *find_or_add(struct rt_coordinator *c, const struct rt_tensor *tensor)
{
    struct rt_waiting *w = rt_index_find(&c->waiting, 0, tensor->name);
    if (w)
        return w;
    w = rt_waiting_new(tensor, c->size);
    if (!w)
        return NULL;
    w->members = c->member;
    w->since_ns = c->now_ns;
    if (rt_index_add(&c->waiting, 0, w->tensor.name, w)) {
        rt_waiting_free(w);
        return NULL;
    }
    return w;
}

int rt_coordinator_announce(struct rt_coordinator *c, int rank, const struct rt_tensor *tensor)
{
    int error = 0;
    if (!c->member[rank])
        return -EPROTO;
    if (tensor->kind == RT_SHUTDOWN)
        return announce_leaving(c, rank);
    if (tensor->kind == RT_JOIN && !c->joined[rank]) {
        c->joined[rank] = true;
        error = find_all_decided(c);
    }
    struct rt_waiting *w = error ? NULL : find_or_add(c, tensor);
    if (!w)
        return error ? error : -ENOMEM;
    error = rt_waiting_announce(w, rank, tensor);
    if (!error)
        rt_timeline_ready(tensor, rank);
    if (error || !is_decided(c, w))
        return error;
    if (tensor->kind == RT_JOIN) {
        w->tensor.root = rank;          /* the last */
        w->tensor.priority = INT32_MIN; /* what was handed over before it takes those that joined */
    }
    return rt_coordinator_make_ready(c, w);
}

static int hear_bits(struct rt_coordinator *c, int rank, const uint8_t *bits, uint32_t bytes)
{
    int error = 0;
    for (uint32_t slot = 0; slot < bytes * 8 && !error; slot++) {
        if (!(bits[slot / 8] >> slot % 8 & 1))
            continue;
        const struct rt_tensor *meant = rt_cache_at_order(c->cache, slot, c->orders_read[rank]);
        error = meant ? rt_coordinator_announce(c, rank, meant) : -EPROTO;
    }
    return error;
}

int rt_coordinator_hear(struct rt_coordinator *c, int rank, struct rt_reader *from)
{
    struct rt_announcement head;
    if (rt_get(from, &head, sizeof head) || head.orders_read < c->orders_read[rank] ||
        head.orders_read > c->orders || head.bit_bytes > from->left)
        return -EPROTO;
    c->orders_read[rank] = head.orders_read;
    int error = hear_bits(c, rank, from->at, head.bit_bytes);
    from->at += head.bit_bytes;
    from->left -= head.bit_bytes;
    for (uint32_t i = 0; i < head.tensors && !error; i++) {
        struct rt_tensor tensor;
        error = rt_get_tensor(from, &tensor);
        if (!error)
            error = rt_coordinator_announce(c, rank, &tensor);
    }
    return error;
}

/* ---- orders ---- */

/* A rank that has joined announces nothing, and reads all orders before it goes on; one that leaves
 * announces no more. */
static void forget_past(struct rt_coordinator *c)
{
    uint64_t all = c->orders;
    for (int r = 0; r < c->size; r++)
        if (c->member[r] && !c->joined[r] && !c->leaving[r] && c->orders_read[r] < all)
            all = c->orders_read[r];
    rt_cache_forget_past(c->cache, all);
}

static bool may_be_cached(const struct rt_tensor *t)
{
    return t->kind != RT_JOIN && t->kind != RT_SHUTDOWN && !rt_changes_sets(t->kind);
}

/* What all agree about is cached from now on. */
static int choose_slot(struct rt_coordinator *c, const struct rt_tensor *t, uint32_t *ret)
{
    uint32_t slot = may_be_cached(t) ? rt_cache_find(c->cache, t->name) : RT_SLOT_NONE;
    const struct rt_tensor *known = rt_cache_at(c->cache, slot);
    *ret = slot;
    if (known && rt_tensor_is_like(known, t) && known->priority == t->priority) {
        rt_cache_touch(c->cache, slot);
        return 0;
    }
    if (slot == RT_SLOT_NONE && may_be_cached(t) && c->cache_capacity > 0)
        slot = rt_cache_choose(c->cache, c->cache_capacity);
    if (slot == RT_SLOT_NONE)
        return 0;
    *ret = slot | RT_SLOT_STORE;
    return rt_cache_store(c->cache, slot, t, c->orders);
}

static int choose_slots(struct rt_coordinator *c, struct rt_order *order)
{
    int error = 0;
    order->slots = malloc((order->n + 1) * sizeof *order->slots);
    if (!order->slots)
        return -ENOMEM;
    c->orders++;
    for (uint32_t i = 0; i < order->n && !error; i++) {
        order->slots[i] = RT_SLOT_NONE;
        if (!order->error)
            error = choose_slot(c, &order->tensors[i], &order->slots[i]);
    }
    return error;
}

static bool lacks_its_root(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return w->tensor.kind == RT_BROADCAST && w->tensor.root >= 0 && w->tensor.root < c->size &&
           !w->said[w->tensor.root];
}

/* Ranks that have joined would have to come to it, too. */
static bool lacks_a_joined(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return rt_changes_sets(w->tensor.kind) && w->announced < c->members;
}

static bool is_sound(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return !w->differs && !w->lost && !w->given_up && !w->closed && !lacks_its_root(c, w) &&
           !lacks_a_joined(c, w);
}

static int refuse(struct rt_coordinator *c, const struct rt_waiting *w, struct rt_order *ret)
{
    const bool some = w->announced < c->members;
    struct rt_bytes text = {0};
    rt_coordinator_say_why(c, w, &text);
    ret->text = (char *)text.data;
    ret->error = w->closed ? -ENOENT : w->lost ? -ESHUTDOWN : w->given_up ? -ETIMEDOUT : -EINVAL;
    ret->tensors = malloc(sizeof *ret->tensors);
    ret->addressees = some ? malloc((size_t)w->announced * sizeof *ret->addressees) : NULL;
    if (text.failed || !ret->tensors || (some && !ret->addressees))
        return -ENOMEM;
    ret->tensors[0] = w->tensor;
    ret->n = 1;
    for (int r = 0; r < c->size && some; r++)
        if (w->said[r])
            ret->addressees[ret->addressee_count++] = r;
    return 0;
}

/* What joined is no longer. */
static void forget(struct rt_coordinator *c, struct rt_waiting *w)
{
    for (int r = 0; r < c->size && w->tensor.kind == RT_JOIN; r++)
        c->joined[r] = c->joined[r] && !w->said[r];
    rt_waiting_free(w);
}

/* Takes those at the ascending indices `plan` out of the queue, and frees them. */
static void take(struct rt_coordinator *c, const unsigned *plan, unsigned n)
{
    unsigned kept = plan[0], next = 0;
    for (unsigned i = plan[0]; i < c->ready_count; i++) {
        if (next < n && i == plan[next]) {
            forget(c, c->ready[i]);
            next++;
        } else {
            c->ready[kept++] = c->ready[i];
        }
    }
    c->ready_count = kept;
}

static int refuse_first(struct rt_coordinator *c, struct rt_order *ret)
{
    const unsigned first = 0;
    int error = refuse(c, c->ready[0], ret);
    if (!error)
        take(c, &first, 1);
    return error;
}

/* Those at the head of the queue that ranks agree about: they may go together. */
static unsigned count_sound(const struct rt_coordinator *c)
{
    unsigned n = 0;
    while (n < c->ready_count && is_sound(c, c->ready[n]))
        n++;
    return n;
}

static int order_ready(struct rt_coordinator *c, struct rt_order *ret)
{
    const unsigned sound = count_sound(c);
    const struct rt_tensor **ready = malloc(sound * sizeof(*ready));
    unsigned *plan = malloc(sound * sizeof *plan);
    int error = -ENOMEM;
    for (unsigned i = 0; ready && i < sound; i++)
        ready[i] = &c->ready[i]->tensor;
    if (ready && plan) {
        const unsigned n = rt_fusion_plan(ready, sound, c->fusion_threshold, plan);
        ret->tensors = malloc(n * sizeof *ret->tensors);
        for (unsigned i = 0; ret->tensors && i < n; i++)
            ret->tensors[ret->n++] = *ready[plan[i]];
        if (ret->tensors) {
            take(c, plan, n);
            error = 0;
        }
    }
    free(ready);
    free(plan);
    return error;
}

static int order_shutdown(struct rt_coordinator *c, struct rt_order *ret)
{
    ret->tensors = calloc(1, sizeof *ret->tensors);
    if (!ret->tensors)
        return -ENOMEM;
    ret->tensors[0].kind = RT_SHUTDOWN;
    strcpy(ret->tensors[0].name, "rt.shutdown");
    ret->n = 1;
    c->ended = true;
    return 0;
}

static int compare_ready(const void *a, const void *b)
{
    const struct rt_waiting *x = *(struct rt_waiting *const *)a;
    const struct rt_waiting *y = *(struct rt_waiting *const *)b;
    if (x->tensor.priority != y->tensor.priority)
        return x->tensor.priority > y->tensor.priority ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void sort(struct rt_coordinator *c)
{
    if (!c->sorted && c->ready_count > 1)
        qsort(c->ready, c->ready_count, sizeof *c->ready, compare_ready);
    c->sorted = true;
}

struct rt_coordinator *rt_coordinator_first_of(struct rt_coordinator *a, struct rt_coordinator *b)
{
    if (!a || a->ready_count == 0)
        return b && b->ready_count > 0 ? b : NULL;
    if (!b || b->ready_count == 0)
        return a;
    sort(a);
    sort(b);
    const struct rt_waiting *x = a->ready[0], *y = b->ready[0];
    if (x->tensor.priority != y->tensor.priority)
        return x->tensor.priority > y->tensor.priority ? a : b;
    return x->since_ns <= y->since_ns ? a : b;
}

int rt_coordinator_next(struct rt_coordinator *c, struct rt_order *ret)
{
    *ret = (struct rt_order){0};
    int error = 0;
    sort(c);
    forget_past(c);
    if (c->ready_count > 0)
        error = is_sound(c, c->ready[0]) ? order_ready(c, ret) : refuse_first(c, ret);
    else if (c->leaving_count == c->size && !c->ended)
        error = order_shutdown(c, ret);
    else
        return 0;
    if (!error)
        error = choose_slots(c, ret);
    if (error)
        rt_order_clear(ret);
    return error ? error : 1;
}
