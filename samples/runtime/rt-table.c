/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rt-index.h"

struct slot {
    enum { SLOT_FREE, SLOT_PENDING, SLOT_DONE } state;
    int handle; /* of the operation it is for */
    int result;
    char *text;
    int next_free; /* -1: none */
};

/* A handle is a slot's number, and above it how often a slot was taken in all: so it isn't soon
 * another operation's. */
#define SLOT_BITS 20
#define SLOTS_MAX (1 << SLOT_BITS)
#define TIMES_MAX (1 << (31 - SLOT_BITS))

struct rt_table {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t done;
    void (*ring)(void *data); /* NULL: none */
    void *ring_data;
    struct rt_operation *first, *last; /* in the order they were added */
    struct rt_operation *first_new;    /* from it on nobody was told */
    struct rt_index names;
    struct slot *slots; /* by handle */
    int slot_count;
    int first_free; /* slot; -1: none */
    int times;      /* that a slot was taken, modulo TIMES_MAX */
    int waiting;    /* threads in rt_table_wait */
    int joining;    /* operations of kind RT_JOIN that are not done */
    bool closed;
    int broken; /* what all waiting ends with, and the text; 0: not */
    char *broken_text;
};

/* A handle of a table that is gone is none of the next one's soon, either. */
static int times_before; /* atomic */

struct rt_table *rt_table_new(void)
{
    struct rt_table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->done, NULL);
    t->first_free = -1;
    t->times = __atomic_load_n(&times_before, __ATOMIC_RELAXED);
    return t;
}

void rt_table_free(struct rt_table *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    while (t->waiting > 0) /* what they wait for is done, but they have yet to see it */
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
    __atomic_store_n(&times_before, t->times, __ATOMIC_RELAXED);
    for (struct rt_operation *o = t->first, *next; o; o = next) {
        next = o->next;
        rt_operation_free(o);
    }
    for (int i = 0; i < t->slot_count; i++)
        free(t->slots[i].text);
    free(t->slots);
    free(t->broken_text);
    rt_index_release(&t->names);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static struct rt_operation *find(struct rt_table *t, int set, const char *name)
{
    return rt_index_find(&t->names, set, name);
}

static int more_slots(struct rt_table *t)
{
    const int wanted = t->slot_count * 2 + 16, count = wanted < SLOTS_MAX ? wanted : SLOTS_MAX;
    if (count == t->slot_count)
        return -ENOMEM;
    struct slot *slots = realloc(t->slots, (size_t)count * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (int i = t->slot_count; i < count; i++)
        slots[i] = (struct slot){.next_free = i + 1 < count ? i + 1 : -1};
    t->first_free = t->slot_count;
    t->slots = slots;
    t->slot_count = count;
    return 0;
}

static int take_slot(struct rt_table *t)
{
    int error = t->first_free < 0 ? more_slots(t) : 0;
    if (error)
        return error;
    const int i = t->first_free;
    t->first_free = t->slots[i].next_free;
    t->slots[i] = (struct slot){.state = SLOT_PENDING};
    return i;
}

static void free_slot(struct rt_table *t, int i)
{
    t->slots[i] = (struct slot){.next_free = t->first_free};
    t->first_free = i;
}

static int add(struct rt_table *t, struct rt_operation *operation)
{
    if (t->broken)
        return t->broken;
    if (t->closed)
        return -ESHUTDOWN;
    const struct rt_tensor *tensor = &operation->tensor;
    if (find(t, tensor->set, tensor->name))
        return -EEXIST;
    if (t->joining > 0 && tensor->kind != RT_SHUTDOWN && find(t, tensor->set, RT_JOIN_NAME))
        return -EBUSY;
    int slot = take_slot(t);
    if (slot < 0)
        return slot;
    if (rt_index_add(&t->names, tensor->set, tensor->name, operation)) {
        free_slot(t, slot);
        return -ENOMEM;
    }
    t->times = (t->times + 1) % TIMES_MAX;
    t->slots[slot].handle = t->times << SLOT_BITS | slot;
    operation->handle = slot;
    operation->announced = false;
    operation->next = NULL;
    operation->before = t->last;
    t->joining += tensor->kind == RT_JOIN;
    *(t->last ? &t->last->next : &t->first) = operation;
    t->last = operation;
    if (!t->first_new)
        t->first_new = operation;
    if (t->ring)
        t->ring(t->ring_data);
    return t->slots[slot].handle;
}

int rt_table_add(struct rt_table *t, struct rt_operation *operation)
{
    pthread_mutex_lock(&t->lock);
    int handle = add(t, operation);
    pthread_mutex_unlock(&t->lock);
    return handle;
}

/* Valid until the lock is given up. NULL: no such operation, or somebody has waited for it. */
static struct slot *find_slot(const struct rt_table *t, int handle)
{
    const int slot = handle & (SLOTS_MAX - 1);
    return handle >= 0 && slot < t->slot_count && t->slots[slot].state != SLOT_FREE &&
                   t->slots[slot].handle == handle
               ? &t->slots[slot]
               : NULL;
}

int rt_table_poll(struct rt_table *t, int handle)
{
    pthread_mutex_lock(&t->lock);
    const struct slot *slot = find_slot(t, handle);
    int state = slot ? slot->state == SLOT_DONE || t->broken : -EINVAL;
    pthread_mutex_unlock(&t->lock);
    return state;
}

int rt_table_wait(struct rt_table *t, int handle, char **ret_text)
{
    int result = -EINVAL;
    pthread_mutex_lock(&t->lock);
    t->waiting++;
    struct slot *slot;
    while ((slot = find_slot(t, handle)) && slot->state == SLOT_PENDING && !t->broken)
        pthread_cond_wait(&t->done, &t->lock);
    if (slot && slot->state == SLOT_PENDING) {
        result = t->broken; /* the slot is its operation's */
        *ret_text = t->broken_text ? strdup(t->broken_text) : NULL;
    } else if (slot) {
        result = slot->result;
        *ret_text = slot->text;
        free_slot(t, handle & (SLOTS_MAX - 1));
    }
    if (--t->waiting == 0)
        pthread_cond_broadcast(&t->done);
    pthread_mutex_unlock(&t->lock);
    return result;
}

void rt_table_set_bell(struct rt_table *t, void (*ring)(void *data), void *data)
{
    pthread_mutex_lock(&t->lock);
    t->ring = ring;
    t->ring_data = data;
    pthread_mutex_unlock(&t->lock);
}

bool rt_table_has_new(struct rt_table *t)
{
    pthread_mutex_lock(&t->lock);
    const bool has = t->first_new != NULL;
    pthread_mutex_unlock(&t->lock);
    return has;
}

struct rt_operation *rt_table_take_new(struct rt_table *t)
{
    pthread_mutex_lock(&t->lock);
    struct rt_operation *o = t->first_new;
    if (o) {
        o->announced = true;
        t->first_new = o->next;
    }
    pthread_mutex_unlock(&t->lock);
    return o;
}

struct rt_operation *rt_table_find(struct rt_table *t, int set, const char *name)
{
    pthread_mutex_lock(&t->lock);
    struct rt_operation *o = find(t, set, name);
    if (o && !o->announced)
        o = NULL;
    pthread_mutex_unlock(&t->lock);
    return o;
}

static void finish(struct rt_table *t, struct rt_operation *o, int result, const char *text)
{
    *(o->before ? &o->before->next : &t->first) = o->next;
    *(o->next ? &o->next->before : &t->last) = o->before;
    if (t->first_new == o)
        t->first_new = o->next;
    rt_index_remove(&t->names, o->tensor.set, o->tensor.name);
    rt_phase_done(&o->phases);
    t->joining -= o->tensor.kind == RT_JOIN;
    struct slot *slot = &t->slots[o->handle];
    slot->state = SLOT_DONE;
    slot->result = result;
    slot->text = text ? strdup(text) : NULL;
    rt_operation_free(o);
}

void rt_table_finish(struct rt_table *t, struct rt_operation *operation, int result,
                     const char *text)
{
    pthread_mutex_lock(&t->lock);
    finish(t, operation, result, text);
    pthread_cond_broadcast(&t->done);
    pthread_mutex_unlock(&t->lock);
}

unsigned rt_table_fail_set(struct rt_table *t, int set, int result, const char *text)
{
    unsigned announced = 0;
    pthread_mutex_lock(&t->lock);
    for (struct rt_operation *o = t->first, *next; o; o = next) {
        next = o->next;
        if (o->tensor.set == set) {
            announced += o->announced;
            finish(t, o, result, text);
        }
    }
    pthread_cond_broadcast(&t->done);
    pthread_mutex_unlock(&t->lock);
    return announced;
}

void rt_table_close(struct rt_table *t, int result, const char *text)
{
    pthread_mutex_lock(&t->lock);
    t->closed = true;
    while (t->first)
        finish(t, t->first, result, text);
    pthread_cond_broadcast(&t->done);
    pthread_mutex_unlock(&t->lock);
}

void rt_table_break(struct rt_table *t, int result, const char *text)
{
    pthread_mutex_lock(&t->lock);
    if (!t->broken) {
        t->broken = result;
        t->broken_text = strdup(text);
    }
    pthread_cond_broadcast(&t->done);
    pthread_mutex_unlock(&t->lock);
}

char *rt_table_dup_broken_text(struct rt_table *t)
{
    pthread_mutex_lock(&t->lock);
    char *text = t->broken_text ? strdup(t->broken_text) : NULL;
    pthread_mutex_unlock(&t->lock);
    return text;
}
