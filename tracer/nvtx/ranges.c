/* SPDX-License-Identifier: Apache-2.0 */
#include "ranges.h"

#include <string.h>

#include "payload.h"
#include "thread-memory.h"
#include "window.h"

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

/* Neither is recorded, or both have been. */
static void release(const struct rs_nvtx_what *what, const struct rs_nvtx_what *at_end)
{
    if (what)
        rs_nvtx_fields_release(what->fields);
    if (at_end)
        rs_nvtx_fields_release(at_end->fields);
}

static void record(struct rs_thread *t, uint16_t op, uint64_t start, uint64_t end, unsigned depth,
                   const struct rs_nvtx_what *what, const struct rs_nvtx_what *at_end)
{
    static const struct rs_nvtx_what nothing;
    const struct rs_nvtx_what *later = at_end ? at_end : &nothing;
    unsigned first = rs_nvtx_fields_slots(what->fields);
    unsigned ext = first + rs_nvtx_fields_slots(later->fields);
    if (!rs_room(t, 1 + ext))
        return;
    struct rs_range_event *e = rs_slot(t, 0);
    e->op = op;
    e->flags = ext ? RS_EVENT_EXT : 0;
    e->name = later->name ? later->name : what->name;
    e->start = start;
    e->end = end;
    e->payload = what->payload;
    e->domain = what->domain;
    e->category = later->category ? later->category : what->category;
    e->color = later->color ? later->color : what->color;
    e->payload_type = what->payload_type;
    e->depth = (uint16_t)depth;
    rs_nvtx_fields_put(t, 1, what->fields);
    rs_nvtx_fields_put(t, 1 + first, later->fields);
    rs_commit(t, 1 + ext);
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
    if (RS_UNLIKELY(!stack) && !rs_thread_memory(&stack, sizeof *stack)) {
        release(what, NULL);
        return 0;
    }
    int before = nesting(key);
    if (stack->depth >= STACK_MAX) {
        stack->depth++;
        release(what, NULL);
        return before;
    }
    struct open_range *r = &stack->range[stack->depth++];
    r->key = key;
    r->start = 0;
    r->what.fields = NULL;
    struct rs_thread *t = what ? rs_thread_if_recording() : NULL;
    if (!t) {
        release(what, NULL);
        return before;
    }
    r->what = *what;
    r->generation = generation;
    r->start = rs_tick();
    show_open(t);
    rs_window_leave();
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

static int pop(const void *key, const struct rs_nvtx_what *at_end)
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
        record(t, RS_OP_RANGE, r.start, rs_tick(), (unsigned)i, &r.what, at_end);
        show_open(t);
    }
    release(&r.what, NULL);
    return nesting(key);
}

int rs_nvtx_pop(const void *key)
{
    return pop(key, NULL);
}

int rs_nvtx_pop_with(const void *key, const struct rs_nvtx_what *at_end)
{
    int left = pop(key, at_end);
    release(NULL, at_end);
    return left;
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
    if (!s) {
        release(what, NULL);
        return 0;
    }
    s->what = *what;
    s->generation = generation;
    s->start = rs_tick();
    uint32_t number = (n / SPANS) % 0x7fffffffu + 2;
    __atomic_store_n(&s->state, number, __ATOMIC_RELEASE);
    rs_window_leave();
    return (uint64_t)number << 32 | n % SPANS;
}

static void end(uint64_t id, const struct rs_nvtx_what *at_end)
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
        record(t, RS_OP_SPAN, ended.start, rs_tick(), 0, &ended.what, at_end);
    release(&ended.what, NULL);
}

void rs_nvtx_end(uint64_t id)
{
    end(id, NULL);
}

void rs_nvtx_end_with(uint64_t id, const struct rs_nvtx_what *at_end)
{
    end(id, at_end);
    release(NULL, at_end);
}

void rs_nvtx_mark(const struct rs_nvtx_what *what)
{
    struct rs_thread *t = what ? rs_thread_if_recording() : NULL;
    if (t) {
        uint64_t now = rs_tick();
        record(t, RS_OP_MARK, now, now, 0, what, NULL);
    }
    release(what, NULL);
    if (t)
        rs_window_leave();
}

void rs_nvtx_ranges_forget(void)
{
    generation++;
}
