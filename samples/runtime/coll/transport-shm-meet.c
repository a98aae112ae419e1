/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks come to work on each other's memory. A meeting has up to four stages, which a rank's
 * number counts; what is decided, is by what all have read, so that all decide alike.
 *
 *     POSTED   where my buffers are
 *     TRIED    whether I could map the heaps that nobody had spoken about before
 *     READ     I have read everybody's post: it may be overwritten
 *     PARTED   I am done with everybody's buffers
 */
#include <errno.h>
#include <string.h>

#include "rt-shm-inside.h"

enum stage { POSTED = 1, TRIED, READ, PARTED, STAGES = PARTED };

static struct rt_transport_shm *shm_of(struct rt_transport *t)
{
    return (struct rt_transport_shm *)t;
}

static uint64_t number_of(const struct rt_transport_shm *t, enum stage stage)
{
    return t->meetings * STAGES + stage;
}

static int reach_stage(struct rt_transport_shm *t, enum stage stage)
{
    rt_shm_advance_post(t, number_of(t, stage));
    return rt_shm_await_posts(t, number_of(t, stage));
}

static void write_post(struct rt_transport_shm *t, const void *in, void *out, uint64_t bytes)
{
    struct rt_shm_post *post = rt_shm_post_of(t, t->base.rank);
    post->bytes = bytes;
    if (!rt_heap_find(in, bytes, &post->heap, &post->in) ||
        !rt_heap_find(out, bytes, &post->heap, &post->out))
        memset(&post->heap, 0, sizeof post->heap);
}

static bool is_same(const struct rt_memory_name *a, const struct rt_memory_name *b)
{
    return a->token[0] == b->token[0] && a->token[1] == b->token[1];
}

static bool is_none(const struct rt_memory_name *name)
{
    return (name->token[0] | name->token[1]) == 0;
}

/* 1 all have said that their buffers are in heaps, 0 not, -EMSGSIZE they disagree. */
static int read_posts(const struct rt_transport_shm *t, uint64_t bytes, bool *ret_any_new)
{
    int all = 1;
    *ret_any_new = false;
    for (int r = 0; r < t->base.size; r++) {
        const struct rt_shm_post *post = rt_shm_post_of(t, r);
        if (post->bytes != bytes)
            return -EMSGSIZE;
        all &= !is_none(&post->heap);
        *ret_any_new |= !is_same(&post->heap, &t->heaps[r].name);
    }
    return all;
}

static void forget(struct rt_shm_heap *heap)
{
    rt_heap_unmap(heap->base);
    heap->base = NULL;
}

static bool map_new_heaps(struct rt_transport_shm *t)
{
    bool all = true;
    for (int r = 0; r < t->base.size; r++) {
        const struct rt_shm_post *post = rt_shm_post_of(t, r);
        if (is_same(&post->heap, &t->heaps[r].name))
            continue;
        forget(&t->heaps[r]);
        t->heaps[r] = (struct rt_shm_heap){post->heap, rt_heap_map(&post->heap)};
        all &= t->heaps[r].base != NULL;
    }
    return all;
}

/* One rank that can't map a heap is enough that no rank uses it; which of several it was nobody
 * asks. */
static int agree_on_new_heaps(struct rt_transport_shm *t)
{
    bool was_new[RT_DIRECT_RANKS_MAX], all = true;
    for (int r = 0; r < t->base.size; r++)
        was_new[r] = !is_same(&rt_shm_post_of(t, r)->heap, &t->heaps[r].name);
    rt_shm_post_of(t, t->base.rank)->reaches = map_new_heaps(t);
    int error = reach_stage(t, TRIED);
    if (error)
        return error;
    for (int r = 0; r < t->base.size; r++)
        all &= rt_shm_post_of(t, r)->reaches;
    for (int r = 0; r < t->base.size && !all; r++)
        if (was_new[r])
            forget(&t->heaps[r]);
    return 0;
}

static bool find_all(const struct rt_transport_shm *t, struct rt_reach *ret)
{
    for (int r = 0; r < t->base.size; r++) {
        const struct rt_shm_post *post = rt_shm_post_of(t, r);
        char *base = t->heaps[r].base;
        if (!base)
            return false;
        ret[r] = (struct rt_reach){base + post->in, base + post->out};
    }
    return true;
}

int rt_shm_meet(struct rt_transport *base, const void *in, void *out, uint64_t bytes,
                struct rt_reach *ret)
{
    struct rt_transport_shm *t = shm_of(base);
    bool any_new;
    int error = rt_shm_await_posts(t, t->last_read);
    if (error)
        return error;
    write_post(t, in, out, bytes);
    error = reach_stage(t, POSTED);
    if (error)
        return error;
    int all = read_posts(t, bytes, &any_new);
    if (all > 0 && any_new)
        error = agree_on_new_heaps(t);
    if (error || all < 0)
        return error ? error : all;
    if (all && find_all(t, ret))
        return 1;
    t->last_read = number_of(t, READ);
    rt_shm_advance_post(t, t->last_read);
    t->meetings++;
    return 0;
}

int rt_shm_part(struct rt_transport *base)
{
    struct rt_transport_shm *t = shm_of(base);
    int error = reach_stage(t, PARTED);
    t->meetings++;
    return error;
}
