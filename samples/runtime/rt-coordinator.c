/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-coordinator.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fusion.h"
#include "rt-timeline.h"
#include "rt-waiting.h"

struct rt_coordinator {
    int size;
    uint64_t fusion_threshold;
    void *names;               /* tree of struct rt_waiting, those not ready */
    struct rt_waiting **ready; /* in the sequence of their orders, where `sorted` */
    unsigned ready_count, ready_room;
    bool sorted;
    uint64_t sequence; /* of the next that becomes ready */
    bool *leaving;     /* by rank */
    int leaving_count;
    bool *joined; /* by rank */
    bool ended;   /* the last order was given */
};

struct rt_coordinator *rt_coordinator_new(int size, uint64_t fusion_threshold)
{
    struct rt_coordinator *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->size = size;
    c->fusion_threshold = fusion_threshold;
    c->leaving = calloc((size_t)size, sizeof *c->leaving);
    c->joined = calloc((size_t)size, sizeof *c->joined);
    if (!c->leaving || !c->joined) {
        rt_coordinator_free(c);
        return NULL;
    }
    return c;
}

static void free_waiting(void *w)
{
    rt_waiting_free(w);
}

void rt_coordinator_free(struct rt_coordinator *c)
{
    if (!c)
        return;
    tdestroy(c->names, free_waiting);
    for (unsigned i = 0; i < c->ready_count; i++)
        rt_waiting_free(c->ready[i]);
    free(c->ready);
    free(c->leaving);
    free(c->joined);
    free(c);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct rt_waiting *)a)->tensor.name,
                  ((const struct rt_waiting *)b)->tensor.name);
}

static int make_ready(struct rt_coordinator *c, struct rt_waiting *w)
{
    if (c->ready_count == c->ready_room) {
        unsigned room = c->ready_room * 2 + 16;
        struct rt_waiting **grown = realloc(c->ready, room * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        c->ready = grown;
        c->ready_room = room;
    }
    tdelete(w, &c->names, compare_names);
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
    for (int r = 0; r < c->size && w->announced < c->size; r++)
        if (!w->said[r] && (!c->joined[r] || c->leaving[r] || w->tensor.kind == RT_JOIN))
            return false;
    return true;
}

static bool is_decided(struct rt_coordinator *c, struct rt_waiting *w)
{
    w->lost = lacks_a_leaving_rank(c, w);
    return w->lost || is_complete(c, w);
}

struct search {
    struct rt_coordinator *c;
    struct rt_waiting *found;
};

static void find_decided(const void *node, VISIT visit, void *data)
{
    struct search *s = data;
    struct rt_waiting *w = *(struct rt_waiting *const *)node;
    if ((visit == postorder || visit == leaf) && !s->found && is_decided(s->c, w))
        s->found = w;
}

/* After a rank has joined or left. */
static int find_all_decided(struct rt_coordinator *c)
{
    struct search s = {c, NULL};
    int error = 0;
    do { /* one a time: moving one changes the tree */
        s.found = NULL;
        twalk_r(c->names, find_decided, &s);
        if (s.found)
            error = make_ready(c, s.found);
    } while (s.found && !error);
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

static struct rt_waiting *find_or_add(struct rt_coordinator *c, const struct rt_tensor *tensor)
{
    struct rt_waiting key;
    key.tensor = *tensor;
    void *found = tfind(&key, &c->names, compare_names);
    if (found)
        return *(struct rt_waiting **)found;
    struct rt_waiting *w = rt_waiting_new(tensor, c->size);
    if (w && !tsearch(w, &c->names, compare_names)) {
        rt_waiting_free(w);
        w = NULL;
    }
    return w;
}

int rt_coordinator_announce(struct rt_coordinator *c, int rank, const struct rt_tensor *tensor)
{
    int error = 0;
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
    return make_ready(c, w);
}

/* ---- orders ---- */

static bool lacks_its_root(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return w->tensor.kind == RT_BROADCAST && w->tensor.root >= 0 && w->tensor.root < c->size &&
           !w->said[w->tensor.root];
}

static bool is_sound(const struct rt_coordinator *c, const struct rt_waiting *w)
{
    return !w->differs && !w->lost && !lacks_its_root(c, w);
}

static void say_left(const struct rt_coordinator *c, const struct rt_waiting *w,
                     struct rt_bytes *text)
{
    rt_say(text, "tensor %s will not be ready: shut down without it:", w->tensor.name);
    for (int r = 0; r < c->size; r++)
        if (c->leaving[r] && !w->said[r])
            rt_say(text, " rank %d", r);
}

static int refuse(struct rt_coordinator *c, const struct rt_waiting *w, struct rt_order *ret)
{
    const bool some = w->announced < c->size;
    struct rt_bytes text = {0};
    if (w->lost)
        say_left(c, w, &text);
    else if (w->differs)
        rt_waiting_say_mismatch(w, &text);
    else
        rt_say(&text, "tensor %s: its root, rank %d, has joined", w->tensor.name, w->tensor.root);
    ret->text = (char *)text.data;
    ret->error = w->lost ? -ESHUTDOWN : -EINVAL;
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

int rt_coordinator_next(struct rt_coordinator *c, struct rt_order *ret)
{
    *ret = (struct rt_order){0};
    int error = 0;
    if (!c->sorted && c->ready_count > 1)
        qsort(c->ready, c->ready_count, sizeof *c->ready, compare_ready);
    c->sorted = true;
    if (c->ready_count > 0)
        error = is_sound(c, c->ready[0]) ? order_ready(c, ret) : refuse_first(c, ret);
    else if (c->leaving_count == c->size && !c->ended)
        error = order_shutdown(c, ret);
    else
        return 0;
    if (error)
        rt_order_clear(ret);
    return error ? error : 1;
}
