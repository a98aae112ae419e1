/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-timeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-timeline-file.h"

#define TEXTS_MAX 64 /* names of activities */
#define ARGS_MAX  64 /* of one tensor: whose shape always changes has none further on */

struct args {
    struct args *next;
    char text[];
};

struct rt_timeline_tensor {
    uint32_t pid;
    unsigned file; /* the number of the file that all below is about */
    enum { IDLE, NEGOTIATING, WORKING, ACTIVE } state;
    const char *now;   /* args of what is done */
    struct args *args; /* all that there were: events lie in the queue */
    unsigned args_count;
    struct rt_timeline_tensor *next; /* in the bucket */
    uint64_t hash;
    char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct rt_timeline_file *file;
static bool is_open; /* atomic: to look without the lock */
static bool marks_cycles;
static unsigned files;
static uint32_t pids;
static uint64_t start_us;
static struct rt_timeline_tensor **buckets; /* by hash; a power of two of them */
static size_t bucket_count, tensor_count;
static char *texts[TEXTS_MAX]; /* events have them: those often asked for come first */
static unsigned text_count;

const char *rt_timeline_operation(const struct rt_tensor *tensor)
{
    const bool adasum = tensor->kind == RT_ALLREDUCE && tensor->op == RT_ADASUM;
    return adasum ? "ADASUM" : rt_kind_name(tensor->kind);
}

const char *rt_timeline_negotiation(const struct rt_tensor *tensor)
{
    static const char *const names[RT_KIND_COUNT] = {
        [RT_ALLREDUCE] = "NEGOTIATE_ALLREDUCE",
        [RT_BROADCAST] = "NEGOTIATE_BROADCAST",
        [RT_BARRIER] = "NEGOTIATE_BARRIER",
        [RT_SHUTDOWN] = "NEGOTIATE_SHUTDOWN",
        [RT_ALLGATHER] = "NEGOTIATE_ALLGATHER",
        [RT_REDUCESCATTER] = "NEGOTIATE_REDUCESCATTER",
        [RT_ALLTOALL] = "NEGOTIATE_ALLTOALL",
        [RT_JOIN] = "NEGOTIATE_JOIN",
        [RT_ADD_SET] = "NEGOTIATE_ADD_PROCESS_SET",
        [RT_REMOVE_SET] = "NEGOTIATE_REMOVE_PROCESS_SET"};
    const bool adasum = tensor->kind == RT_ALLREDUCE && tensor->op == RT_ADASUM;
    return adasum ? "NEGOTIATE_ADASUM" : names[tensor->kind];
}

static uint64_t us_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- with the lock ---- */

static void put(struct rt_timeline_event event)
{
    event.us = us_of(CLOCK_MONOTONIC) - start_us;
    rt_timeline_file_put(file, &event);
}

static uint64_t hash_of(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a's */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash ^ hash >> 32;
}

static void grow(void)
{
    const size_t count = bucket_count > 0 ? 2 * bucket_count : 256;
    struct rt_timeline_tensor **grown = calloc(count, sizeof(*grown));
    if (!grown)
        return; /* longer chains, then */
    for (size_t i = 0; i < bucket_count; i++)
        for (struct rt_timeline_tensor *t = buckets[i], *next; t; t = next) {
            next = t->next;
            t->next = grown[t->hash & (count - 1)];
            grown[t->hash & (count - 1)] = t;
        }
    free(buckets);
    buckets = grown;
    bucket_count = count;
}

/* NULL: no memory. */
static struct rt_timeline_tensor *find(const char *name)
{
    const uint64_t hash = hash_of(name);
    if (tensor_count >= bucket_count)
        grow();
    if (bucket_count == 0)
        return NULL;
    struct rt_timeline_tensor **bucket = &buckets[hash & (bucket_count - 1)];
    for (struct rt_timeline_tensor *t = *bucket; t; t = t->next)
        if (t->hash == hash && strcmp(t->name, name) == 0)
            return t;
    struct rt_timeline_tensor *t = calloc(1, sizeof *t + strlen(name) + 1);
    if (!t)
        return NULL;
    strcpy(t->name, name);
    t->hash = hash;
    t->next = *bucket;
    *bucket = t;
    tensor_count++;
    return t;
}

/* In this file; named there at its first event. */
static struct rt_timeline_tensor *find_here(const struct rt_tensor *tensor)
{
    char title[RT_TITLE_MAX];
    struct rt_timeline_tensor *t = find(rt_tensor_title(tensor, title));
    if (t && t->file != files) {
        t->file = files;
        t->state = IDLE;
        t->pid = ++pids;
        put((struct rt_timeline_event){.phase = 'M', .pid = t->pid, .name = t->name});
    }
    return t;
}

/* Until rt_timeline_release. */
static const char *keep(const char *text)
{
    for (unsigned i = 0; i < text_count; i++)
        if (strcmp(texts[i], text) == 0) {
            char *found = texts[i];
            const unsigned to = i > 0 ? i - 1 : 0;
            texts[i] = texts[to];
            texts[to] = found;
            return found;
        }
    char *fresh = text_count < TEXTS_MAX ? strdup(text) : NULL;
    if (fresh)
        texts[text_count++] = fresh;
    return fresh ? fresh : "OTHER";
}

static void end_one(struct rt_timeline_tensor *t, const char *args)
{
    put((struct rt_timeline_event){.phase = 'E', .pid = t->pid, .args = args});
}

static void begin_one(struct rt_timeline_tensor *t, const char *name)
{
    put((struct rt_timeline_event){.phase = 'B', .pid = t->pid, .name = name});
}

/* As Horovod writes it: "[2, 3]". */
static void shape_text(const struct rt_tensor *tensor, char *to, size_t room)
{
    const unsigned long long count = tensor->count, row = tensor->row_count;
    if (!*tensor->shape && rt_rows_may_differ(tensor->kind))
        snprintf(to, room, "[*, %llu]", row);
    else if (!*tensor->shape && row > 0)
        snprintf(to, room, "[%llu, %llu]", count, row);
    else if (!*tensor->shape)
        snprintf(to, room, "[%llu]", count);
    size_t used = 0;
    for (const char *s = tensor->shape; *s && used + 3 < room; s++) {
        to[used++] = *s;
        if (*s == ',')
            to[used++] = ' ';
        to[used] = 0;
    }
}

/* NULL: none, or no memory for them. */
static const char *args_of(struct rt_timeline_tensor *t, const struct rt_tensor *tensor)
{
    char shape[2 * RT_SHAPE_MAX + 1] = "", text[sizeof shape + 64];
    if (tensor->kind == RT_BARRIER || tensor->kind == RT_JOIN || rt_changes_sets(tensor->kind))
        return NULL;
    shape_text(tensor, shape, sizeof shape);
    snprintf(text, sizeof text, "\"dtype\": \"%s\", \"shape\": \"%s\"", rt_type_name(tensor->type),
             shape);
    for (const struct args *a = t->args; a; a = a->next)
        if (strcmp(a->text, text) == 0)
            return a->text;
    struct args *fresh = t->args_count < ARGS_MAX ? malloc(sizeof *fresh + strlen(text) + 1) : NULL;
    if (!fresh)
        return NULL;
    strcpy(fresh->text, text);
    fresh->next = t->args;
    t->args = fresh;
    t->args_count++;
    return fresh->text;
}

/* ---- calls ---- */

static bool lock_if_open(void)
{
    if (!__atomic_load_n(&is_open, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&lock);
    if (file)
        return true;
    pthread_mutex_unlock(&lock);
    return false;
}

void rt_timeline_ready(const struct rt_tensor *tensor, int rank)
{
    if (!lock_if_open())
        return;
    struct rt_timeline_tensor *t = find_here(tensor);
    if (t && t->state == IDLE) {
        begin_one(t, rt_timeline_negotiation(tensor));
        t->state = NEGOTIATING;
    }
    if (t && t->state == NEGOTIATING)
        put((struct rt_timeline_event){.phase = 'X', .pid = t->pid, .rank = rank});
    pthread_mutex_unlock(&lock);
}

void rt_timeline_agreed(const struct rt_tensor *tensor)
{
    if (!lock_if_open())
        return;
    char title[RT_TITLE_MAX];
    struct rt_timeline_tensor *t = find(rt_tensor_title(tensor, title));
    if (t && t->file == files && t->state == NEGOTIATING) {
        end_one(t, NULL);
        t->state = IDLE;
    }
    pthread_mutex_unlock(&lock);
}

struct rt_timeline_tensor *rt_timeline_begin(const struct rt_tensor *tensor, const char *op)
{
    if (tensor->kind == RT_SHUTDOWN || !lock_if_open())
        return NULL;
    struct rt_timeline_tensor *t = find_here(tensor);
    if (t && t->state == IDLE) {
        begin_one(t, op);
        t->state = WORKING;
        t->now = args_of(t, tensor);
    }
    pthread_mutex_unlock(&lock);
    return t;
}

void rt_timeline_activity(struct rt_timeline_tensor *t, const char *activity)
{
    if (!t || !lock_if_open())
        return;
    if (t->file == files && t->state == ACTIVE) {
        end_one(t, NULL);
        t->state = WORKING;
    }
    if (t->file == files && t->state == WORKING && activity) {
        begin_one(t, keep(activity));
        t->state = ACTIVE;
    }
    pthread_mutex_unlock(&lock);
}

void rt_timeline_end(struct rt_timeline_tensor *t)
{
    if (!t || !lock_if_open())
        return;
    if (t->file == files && t->state == ACTIVE) {
        end_one(t, NULL);
        t->state = WORKING;
    }
    if (t->file == files && t->state == WORKING) {
        end_one(t, t->now);
        t->state = IDLE;
    }
    pthread_mutex_unlock(&lock);
}

void rt_timeline_cycle(void)
{
    if (!lock_if_open())
        return;
    if (marks_cycles)
        put((struct rt_timeline_event){.phase = 'i', .name = "CYCLE_START"});
    pthread_mutex_unlock(&lock);
}

/* ---- its life ---- */

int rt_timeline_open(const char *path, bool mark_cycles)
{
    int error = -EBUSY;
    pthread_mutex_lock(&lock);
    if (!file) {
        start_us = us_of(CLOCK_MONOTONIC);
        file = rt_timeline_file_new(path, us_of(CLOCK_REALTIME), &error);
        marks_cycles = mark_cycles;
        files++;
        pids = 0;
        __atomic_store_n(&is_open, file != NULL, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

int rt_timeline_close(void)
{
    pthread_mutex_lock(&lock);
    struct rt_timeline_file *closing = file;
    file = NULL;
    __atomic_store_n(&is_open, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return rt_timeline_file_close(closing);
}

static void free_tensor(struct rt_timeline_tensor *t)
{
    for (struct args *a = t->args, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    free(t);
}

void rt_timeline_release(void)
{
    rt_timeline_close();
    for (size_t i = 0; i < bucket_count; i++)
        for (struct rt_timeline_tensor *t = buckets[i], *next; t; t = next) {
            next = t->next;
            free_tensor(t);
        }
    while (text_count > 0)
        free(texts[--text_count]);
    free(buckets);
    buckets = NULL;
    bucket_count = tensor_count = 0;
}
