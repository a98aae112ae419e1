/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include <string.h>

#include "thread-memory.h"

#define STACK_MAX 64     /* deeper ranges are counted, not recorded */
#define SPANS     65536u /* open at once; a power of two. Untouched, they take no memory */
#define PROBES    64

struct open_range {
    const void *key;
    uint64_t start; /* 0: not to be recorded */
    uint32_t generation;
    struct rs_nvtx_what what;
};

struct stack {
    unsigned depth; /* may exceed STACK_MAX */
    struct open_range range[STACK_MAX];
};
static __thread struct stack *stack __attribute__((tls_model("initial-exec")));

struct span {
    uint32_t state; /* atomic: 0 free, 1 being filled, else the number in its id */
    uint32_t generation;
    uint64_t start;
    struct rs_nvtx_what what;
};
static struct span spans[SPANS];
static uint32_t next_span;
static uint32_t generation = 1;

static void record(struct rs_thread *t, uint16_t op, uint64_t start, uint64_t end, unsigned depth,
                   const struct rs_nvtx_what *what)
{
    if (!rs_room(t, 1))
        return;
    struct rs_range_event *e = rs_slot(t, 0);
    e->op = op;
    e->flags = 0;
    e->name = what->name;
    e->start = start;
    e->end = end;
    e->payload = what->payload;
    e->domain = what->domain;
    e->category = what->category;
    e->color = what->color;
    e->payload_type = what->payload_type;
    e->depth = (uint16_t)depth;
    rs_commit(t, 1);
}

/* What the thread has open, for `status` and the capture of a killed process. */
static void show_open(struct rs_thread *t)
{
    struct rs_open *o = &t->ring->open;
    unsigned n = 0;
    for (unsigned i = 0; i < stack->depth && i < STACK_MAX && n < RS_OPEN_RANGES; i++) {
        const struct open_range *r = &stack->range[i];
        if (r->start == 0 || r->generation != generation)
            continue;
        o->range[n].name = r->what.name;
        o->range[n].domain = r->what.domain;
        o->range[n++].start = r->start;
    }
    __atomic_store_n(&o->range_depth, n, __ATOMIC_RELEASE);
}

static int nesting(const void *key)
{
    int n = 0;
    for (unsigned i = 0; i < stack->depth && i < STACK_MAX; i++)
        n += stack->range[i].key == key;
    return n;
}

int rs_nvtx_push(const void *key, const struct rs_nvtx_what *what)
{
    if (RS_UNLIKELY(!stack) && !rs_thread_memory(&stack, sizeof *stack))
        return 0;
    int before = nesting(key);
    if (stack->depth >= STACK_MAX) {
        stack->depth++;
        return before;
    }
    struct open_range *r = &stack->range[stack->depth++];
    r->key = key;
    r->start = 0;
    struct rs_thread *t = what ? rs_thread_if_recording() : NULL;
    if (!t)
        return before;
    r->what = *what;
    r->generation = generation;
    r->start = rs_tick();
    show_open(t);
    return before;
}

/* The innermost range of `key`: domains have stacks of their own, which may interleave. */
static int innermost(const void *key)
{
    int i = (int)stack->depth - 1;
    while (i >= 0 && stack->range[i].key != key)
        i--;
    return i;
}

int rs_nvtx_pop(const void *key)
{
    if (!stack)
        return -1;
    if (stack->depth > STACK_MAX) {
        stack->depth--;
        return nesting(key);
    }
    int i = innermost(key);
    if (i < 0)
        return -1;
    struct open_range r = stack->range[i];
    stack->depth--;
    memmove(&stack->range[i], &stack->range[i + 1], (stack->depth - (unsigned)i) * sizeof(r));
    struct rs_thread *t = r.start && r.generation == generation ? rs_thread_if_recording() : NULL;
    if (t) {
        record(t, RS_OP_RANGE, r.start, rs_tick(), (unsigned)i, &r.what);
        show_open(t);
    }
    return nesting(key);
}

static struct span *claim(uint32_t *ret_number)
{
    for (unsigned i = 0; i < PROBES; i++) {
        uint32_t n = __atomic_fetch_add(&next_span, 1, __ATOMIC_RELAXED);
        struct span *s = &spans[n % SPANS];
        uint32_t unused = 0;
        if (!__atomic_compare_exchange_n(&s->state, &unused, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        *ret_number = n;
        return s;
    }
    return NULL;
}

/* An id is the slot's index, and above it a number that differs when the slot is used again. */
uint64_t rs_nvtx_start(const struct rs_nvtx_what *what)
{
    struct rs_thread *t = what ? rs_thread_if_recording() : NULL;
    uint32_t n;
    struct span *s = t ? claim(&n) : NULL;
    if (!s)
        return 0;
    s->what = *what;
    s->generation = generation;
    s->start = rs_tick();
    uint32_t number = (n / SPANS) % 0x7fffffffu + 2;
    __atomic_store_n(&s->state, number, __ATOMIC_RELEASE);
    return (uint64_t)number << 32 | n % SPANS;
}

void rs_nvtx_end(uint64_t id)
{
    uint32_t index = (uint32_t)id, number = (uint32_t)(id >> 32);
    if (index >= SPANS || number < 2)
        return;
    struct span *s = &spans[index];
    uint32_t state = number;
    if (!__atomic_compare_exchange_n(&s->state, &state, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    struct span ended = *s;
    __atomic_store_n(&s->state, 0, __ATOMIC_RELEASE);
    struct rs_thread *t = ended.generation == generation ? rs_thread_if_recording() : NULL;
    if (t)
        record(t, RS_OP_SPAN, ended.start, rs_tick(), 0, &ended.what);
}

void rs_nvtx_mark(const struct rs_nvtx_what *what)
{
    struct rs_thread *t = what ? rs_thread_if_recording() : NULL;
    if (!t)
        return;
    uint64_t now = rs_tick();
    record(t, RS_OP_MARK, now, now, 0, what);
}

void rs_nvtx_ranges_forget(void)
{
    generation++;
}
