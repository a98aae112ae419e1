/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-coordinator.h"

#include <errno.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-fusion.h"

/* A tensor that at least one rank has announced and that has not been ordered yet. */
struct waiting {
    struct rt_tensor tensor; /* as the first rank to announce it said */
    struct waiting *next;    /* in the queue of those that are ready */
    int announced;           /* ranks */
    bool differs;            /* some rank said otherwise */
    bool lost;               /* a rank left without it */
    struct {
        bool announced;
        struct rt_tensor tensor;
    } by_rank[];
};

struct rt_coordinator {
    int size;
    uint64_t fusion_threshold;
    void *names; /* tree of struct waiting, those not ready */
    struct waiting *ready, **ready_end;
    bool *leaving; /* by rank */
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
    c->ready_end = &c->ready;
    c->leaving = calloc((size_t)size, sizeof *c->leaving);
    c->joined = calloc((size_t)size, sizeof *c->joined);
    if (!c->leaving || !c->joined) {
        rt_coordinator_free(c);
        return NULL;
    }
    return c;
}

void rt_coordinator_free(struct rt_coordinator *c)
{
    if (!c)
        return;
    tdestroy(c->names, free);
    for (struct waiting *w = c->ready, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    free(c->leaving);
    free(c->joined);
    free(c);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct waiting *)a)->tensor.name,
                  ((const struct waiting *)b)->tensor.name);
}

static void make_ready(struct rt_coordinator *c, struct waiting *w)
{
    tdelete(w, &c->names, compare_names);
    w->next = NULL;
    *c->ready_end = w;
    c->ready_end = &w->next;
}

static bool same_tensor(const struct rt_tensor *a, const struct rt_tensor *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->root == b->root &&
           a->count == b->count && a->row_count == b->row_count && a->members == b->members &&
           a->prescale == b->prescale && a->postscale == b->postscale &&
           strcmp(a->shape, b->shape) == 0;
}

static bool lacks_a_leaving_rank(const struct rt_coordinator *c, const struct waiting *w)
{
    for (int r = 0; r < c->size && c->leaving_count > 0; r++)
        if (c->leaving[r] && !w->by_rank[r].announced)
            return true;
    return false;
}

/* Of every rank it is known that it has it, or that it has joined; to join all must say. */
static bool is_complete(const struct rt_coordinator *c, const struct waiting *w)
{
    for (int r = 0; r < c->size && w->announced < c->size; r++)
        if (!w->by_rank[r].announced &&
            (!c->joined[r] || c->leaving[r] || w->tensor.kind == RT_JOIN))
            return false;
    return true;
}

static bool is_decided(struct rt_coordinator *c, struct waiting *w)
{
    w->lost = lacks_a_leaving_rank(c, w);
    return w->lost || is_complete(c, w);
}

struct search {
    struct rt_coordinator *c;
    struct waiting *found;
};

static void find_decided(const void *node, VISIT visit, void *data)
{
    struct search *s = data;
    struct waiting *w = *(struct waiting *const *)node;
    if ((visit == postorder || visit == leaf) && !s->found && is_decided(s->c, w))
        s->found = w;
}

/* After a rank has joined or left. */
static void find_all_decided(struct rt_coordinator *c)
{
    struct search s = {c, NULL};
    do { /* one a time: moving one changes the tree */
        s.found = NULL;
        twalk_r(c->names, find_decided, &s);
        if (s.found)
            make_ready(c, s.found);
    } while (s.found);
}

static int announce_leaving(struct rt_coordinator *c, int rank)
{
    if (c->leaving[rank])
        return -EPROTO;
    c->leaving[rank] = true;
    c->leaving_count++;
    find_all_decided(c);
    return 0;
}

static struct waiting *find_or_add(struct rt_coordinator *c, const struct rt_tensor *tensor)
{
    struct waiting key;
    key.tensor = *tensor;
    void *found = tfind(&key, &c->names, compare_names);
    if (found)
        return *(struct waiting **)found;
    struct waiting *w = calloc(1, sizeof *w + (size_t)c->size * sizeof *w->by_rank);
    if (!w)
        return NULL;
    w->tensor = *tensor;
    if (!tsearch(w, &c->names, compare_names)) {
        free(w);
        return NULL;
    }
    return w;
}

int rt_coordinator_announce(struct rt_coordinator *c, int rank, const struct rt_tensor *tensor)
{
    if (tensor->kind == RT_SHUTDOWN)
        return announce_leaving(c, rank);
    if (tensor->kind == RT_JOIN && !c->joined[rank]) {
        c->joined[rank] = true;
        find_all_decided(c);
    }
    struct waiting *w = find_or_add(c, tensor);
    if (!w)
        return -ENOMEM;
    if (w->by_rank[rank].announced)
        return -EPROTO;
    w->by_rank[rank].announced = true;
    w->by_rank[rank].tensor = *tensor;
    w->announced++;
    w->differs = w->differs || !same_tensor(&w->tensor, tensor);
    if (!is_decided(c, w))
        return 0;
    if (tensor->kind == RT_JOIN)
        w->tensor.root = rank; /* the last */
    make_ready(c, w);
    return 0;
}

/* ---- texts of errors ---- */

__attribute__((format(printf, 2, 3))) static void say(struct rt_bytes *text, const char *format,
                                                      ...)
{
    char part[RT_NAME_MAX + 128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    if (n <= 0 || text->failed)
        return;
    size_t room = text->n + (size_t)n + 1;
    char *grown = realloc(text->data, room);
    if (!grown) {
        text->failed = 1;
        return;
    }
    text->data = (uint8_t *)grown;
    memcpy(grown + text->n, part, (size_t)n + 1);
    text->n += (size_t)n;
}

/* Each rank's value of one property, where they are not all the same. */
struct property {
    const char *name;
    void (*say)(struct rt_bytes *text, const struct rt_tensor *tensor);
};

static void say_kind(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%s", rt_kind_name(t->kind));
}
static void say_type(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%s", rt_type_name(t->type));
}
static void say_count(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%llu", (unsigned long long)t->count);
}
static void say_row(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%llu", (unsigned long long)t->row_count);
}
static void say_members(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%u", t->members);
}
static void say_shape(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%s", *t->shape ? t->shape : "none");
}
static void say_op(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%s", rt_op_name(t->op));
}
static void say_root(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%d", t->root);
}
static void say_scales(struct rt_bytes *text, const struct rt_tensor *t)
{
    say(text, "%.17g and %.17g", t->prescale, t->postscale);
}

static const struct property properties[] = {
    {"operation", say_kind},
    {"type", say_type},
    {"count", say_count},
    {"elements of a row", say_row},
    {"tensors of the group", say_members},
    {"counts of the group", say_shape},
    {"reduction", say_op},
    {"root", say_root},
    {"pre- and postscale", say_scales},
};

static void say_by_rank(const struct rt_coordinator *c, const struct waiting *w,
                        const struct property *p, struct rt_bytes *text)
{
    struct rt_bytes first = {0}, values = {0};
    bool differs = false;
    p->say(&first, &w->tensor);
    for (int r = 0; r < c->size; r++) {
        struct rt_bytes value = {0};
        if (!w->by_rank[r].announced)
            continue;
        p->say(&value, &w->by_rank[r].tensor);
        if (!value.failed && !first.failed) {
            differs = differs || strcmp((char *)value.data, (char *)first.data) != 0;
            say(&values, "%srank %d ", values.n == 0 ? "" : ", ", r);
            say(&values, "%s", (char *)value.data);
        }
        free(value.data);
    }
    if (differs && !values.failed) {
        say(text, "; %s: ", p->name);
        for (size_t done = 0; done < values.n; done += 256) /* say() works in pieces */
            say(text, "%.256s", (char *)values.data + done);
    }
    free(first.data);
    free(values.data);
}

static void say_mismatch(const struct rt_coordinator *c, const struct waiting *w,
                         struct rt_bytes *text)
{
    say(text, "ranks disagree about tensor %s", w->tensor.name);
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        say_by_rank(c, w, &properties[i], text);
}

static void say_left(const struct rt_coordinator *c, const struct waiting *w, struct rt_bytes *text)
{
    say(text, "tensor %s will not be ready: shut down without it:", w->tensor.name);
    for (int r = 0; r < c->size; r++)
        if (c->leaving[r] && !w->by_rank[r].announced)
            say(text, " rank %d", r);
}

/* ---- orders ---- */

static bool lacks_its_root(const struct rt_coordinator *c, const struct waiting *w)
{
    return w->tensor.kind == RT_BROADCAST && w->tensor.root >= 0 && w->tensor.root < c->size &&
           !w->by_rank[w->tensor.root].announced;
}

static bool is_sound(const struct rt_coordinator *c, const struct waiting *w)
{
    return !w->differs && !w->lost && !lacks_its_root(c, w);
}

static int refuse(struct rt_coordinator *c, struct waiting *w, struct rt_order *ret)
{
    const bool some = w->announced < c->size;
    struct rt_bytes text = {0};
    if (w->lost)
        say_left(c, w, &text);
    else if (w->differs)
        say_mismatch(c, w, &text);
    else
        say(&text, "tensor %s: its root, rank %d, has joined", w->tensor.name, w->tensor.root);
    ret->text = (char *)text.data;
    ret->error = w->lost ? -ESHUTDOWN : -EINVAL;
    ret->tensors = malloc(sizeof *ret->tensors);
    ret->addressees = some ? malloc((size_t)w->announced * sizeof *ret->addressees) : NULL;
    if (text.failed || !ret->tensors || (some && !ret->addressees))
        return -ENOMEM;
    ret->tensors[0] = w->tensor;
    ret->n = 1;
    for (int r = 0; r < c->size && some; r++)
        if (w->by_rank[r].announced)
            ret->addressees[ret->addressee_count++] = r;
    return 0;
}

/* Those at the head of the queue that ranks agree about: they may go together. */
static unsigned count_sound(const struct rt_coordinator *c)
{
    unsigned n = 0;
    for (const struct waiting *w = c->ready; w && is_sound(c, w); w = w->next)
        n++;
    return n;
}

static void take(struct rt_coordinator *c, struct waiting **place)
{
    struct waiting *w = *place;
    for (int r = 0; r < c->size && w->tensor.kind == RT_JOIN; r++)
        c->joined[r] = c->joined[r] && !w->by_rank[r].announced;
    *place = w->next;
    if (c->ready_end == &w->next)
        c->ready_end = place;
    free(w);
}

/* Moves the tensors at the indices `plan` of the queue into the order. */
static void take_planned(struct rt_coordinator *c, const unsigned *plan, unsigned n,
                         struct rt_order *ret)
{
    struct waiting **place = &c->ready;
    for (unsigned i = 0; ret->n < n; i++) {
        if (i != plan[ret->n]) {
            place = &(*place)->next;
            continue;
        }
        ret->tensors[ret->n++] = (*place)->tensor;
        take(c, place);
    }
}

static int order_ready(struct rt_coordinator *c, struct rt_order *ret)
{
    unsigned sound = count_sound(c);
    const struct rt_tensor **ready = malloc(sound * sizeof *ready);
    unsigned *plan = malloc(sound * sizeof *plan);
    int error = ready && plan ? 0 : -ENOMEM;
    if (!error) {
        const struct waiting *w = c->ready;
        for (unsigned i = 0; i < sound; i++, w = w->next)
            ready[i] = &w->tensor;
        unsigned n = rt_fusion_plan(ready, sound, c->fusion_threshold, plan);
        ret->tensors = malloc(n * sizeof *ret->tensors);
        if (ret->tensors)
            take_planned(c, plan, n, ret);
        else
            error = -ENOMEM;
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

int rt_coordinator_next(struct rt_coordinator *c, struct rt_order *ret)
{
    *ret = (struct rt_order){0};
    int error = 0;
    if (c->ready && !is_sound(c, c->ready)) {
        error = refuse(c, c->ready, ret);
        if (!error)
            take(c, &c->ready);
    } else if (c->ready) {
        error = order_ready(c, ret);
    } else if (c->leaving_count == c->size && !c->ended) {
        error = order_shutdown(c, ret);
    } else {
        return 0;
    }
    if (error)
        rt_order_clear(ret);
    return error ? error : 1;
}
