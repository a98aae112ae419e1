/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-waiting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rt_waiting *rt_waiting_new(const struct rt_tensor *tensor, int ranks)
{
    struct rt_waiting *w = calloc(1, sizeof *w + (size_t)ranks * sizeof *w->said);
    if (w) {
        w->tensor = *tensor;
        w->ranks = ranks;
    }
    return w;
}

void rt_waiting_free(struct rt_waiting *w)
{
    for (int r = 0; w && w->differs && r < w->ranks; r++)
        if (w->said[r] != &w->tensor)
            free((void *)w->said[r]);
    free(w);
}

int rt_waiting_announce(struct rt_waiting *w, int rank, const struct rt_tensor *tensor)
{
    if (w->said[rank])
        return -EPROTO;
    if (rt_tensor_is_like(&w->tensor, tensor)) {
        w->said[rank] = &w->tensor;
    } else {
        struct rt_tensor *own = malloc(sizeof *own);
        if (!own)
            return -ENOMEM;
        *own = *tensor;
        w->said[rank] = own;
        w->differs = true;
    }
    if (tensor->priority > w->tensor.priority)
        w->tensor.priority = tensor->priority;
    w->announced++;
    return 0;
}

/* ---- texts ---- */

void rt_say(struct rt_bytes *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || text->failed)
        return;
    if (text->n + (size_t)n + 1 > text->capacity) {
        size_t capacity = (text->n + (size_t)n + 1) * 2;
        uint8_t *grown = realloc(text->data, capacity);
        if (!grown) {
            text->failed = 1;
            return;
        }
        text->data = grown;
        text->capacity = capacity;
    }
    va_start(args, format);
    vsnprintf((char *)text->data + text->n, (size_t)n + 1, format, args);
    va_end(args);
    text->n += (size_t)n;
}

void rt_waiting_say_missing(const struct rt_waiting *w, struct rt_bytes *text)
{
    const char *before = "";
    for (int r = 0; r < w->ranks; r++)
        if (!w->said[r] && (!w->members || w->members[r])) {
            rt_say(text, "%srank %d", before, r);
            before = ", ";
        }
}

/* Each rank's value of one property, where they are not all the same. */
struct property {
    const char *name;
    void (*say)(struct rt_bytes *text, const struct rt_tensor *tensor);
};

static void say_kind(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%s", rt_kind_name(t->kind));
}
static void say_type(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%s", rt_type_name(t->type));
}
static void say_members(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%u", t->members);
}
/* Unsaid, it follows from the counts; a first dimension that ranks may differ in is a star. */
static void say_shape(struct rt_bytes *text, const struct rt_tensor *t)
{
    const unsigned long long count = t->count, row = t->row_count;
    if (rt_changes_sets(t->kind))
        rt_say(text, "none");
    else if (*t->shape)
        rt_say(text, "%s", t->shape);
    else if (rt_rows_may_differ(t->kind))
        rt_say(text, "[*,%llu]", row);
    else if (row > 0)
        rt_say(text, "[%llu,%llu]", count, row);
    else
        rt_say(text, "[%llu]", count);
}
static void say_op(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%s", rt_op_name(t->op));
}
static void say_compression(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%s", rt_compression_name(t->compression));
}
static void say_root(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%d", t->root);
}
static void say_scales(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%.17g and %.17g", t->prescale, t->postscale);
}

/* The list of ranks, or the number of a set. */
static void say_set(struct rt_bytes *text, const struct rt_tensor *t)
{
    rt_say(text, "%s", rt_changes_sets(t->kind) ? t->shape : "none");
}

static const struct property properties[] = {
    {"operation", say_kind},
    {"type", say_type},
    {"tensors of the group", say_members},
    {"shape", say_shape},
    {"reduction", say_op},
    {"compression", say_compression},
    {"root", say_root},
    {"pre- and postscale", say_scales},
    {"process set", say_set},
};

static void say_by_rank(const struct rt_waiting *w, const struct property *p, struct rt_bytes *text)
{
    struct rt_bytes first = {0}, values = {0};
    bool differs = false;
    p->say(&first, &w->tensor);
    for (int r = 0; r < w->ranks; r++) {
        struct rt_bytes value = {0};
        if (!w->said[r])
            continue;
        p->say(&value, w->said[r]);
        if (!value.failed && !first.failed) {
            differs = differs || strcmp((char *)value.data, (char *)first.data) != 0;
            rt_say(&values, "%srank %d %s", values.n == 0 ? "" : ", ", r, (char *)value.data);
        }
        free(value.data);
    }
    if (differs && !values.failed)
        rt_say(text, "; %s: %s", p->name, (char *)values.data);
    free(first.data);
    free(values.data);
}

void rt_waiting_say_mismatch(const struct rt_waiting *w, struct rt_bytes *text)
{
    char title[RT_TITLE_MAX];
    if (rt_changes_sets(w->tensor.kind))
        rt_say(text, "ranks disagree about a process set");
    else
        rt_say(text, "ranks disagree about tensor %s", rt_tensor_title(&w->tensor, title));
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        say_by_rank(w, &properties[i], text);
}
