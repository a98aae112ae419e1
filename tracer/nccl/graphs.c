/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs.h"

#define STREAMS 64
#define EVENTS  256

#define STREAM_PER_THREAD 2 /* CUDA's handle */
/* CUDA's results with which a capture goes on */
#define ERROR_UNMATCHED    903
#define ERROR_WRONG_THREAD 908

/* That `key` belongs to a capture. */
struct entry {
    uint64_t key;     /* atomic; 0: free */
    uint32_t capture; /* atomic; 0: to none any longer */
};

static struct entry streams[STREAMS], events[EVENTS];
static uint32_t last_capture; /* atomic */
uint32_t rs_graph_captures;

static uint64_t key_of(const void *stream)
{
    return (uintptr_t)stream == STREAM_PER_THREAD ? (uintptr_t)&rs_self : (uintptr_t)stream;
}

static struct entry *find(struct entry *entries, unsigned n, uint64_t key)
{
    for (unsigned i = 0; i < n && key != 0; i++)
        if (__atomic_load_n(&entries[i].key, __ATOMIC_ACQUIRE) == key)
            return &entries[i];
    return NULL;
}

static uint32_t capture_of(struct entry *entries, unsigned n, uint64_t key)
{
    struct entry *e = find(entries, n, key);
    return e ? __atomic_load_n(&e->capture, __ATOMIC_ACQUIRE) : 0;
}

static struct entry *take(struct entry *entries, unsigned n, uint64_t key)
{
    for (unsigned i = 0; i < n && key != 0; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&entries[i].key, &none, key, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &entries[i];
    }
    return NULL;
}

static void note(struct entry *entries, unsigned n, uint64_t key, uint32_t capture)
{
    struct entry *e = find(entries, n, key);
    e = e ? e : take(entries, n, key);
    if (e)
        __atomic_store_n(&e->capture, capture, __ATOMIC_RELEASE);
}

static void release(struct entry *e)
{
    __atomic_store_n(&e->capture, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&e->key, 0, __ATOMIC_RELEASE);
}

static void release_all(struct entry *entries, unsigned n, uint32_t capture)
{
    for (unsigned i = 0; i < n; i++)
        if (__atomic_load_n(&entries[i].capture, __ATOMIC_ACQUIRE) == capture)
            release(&entries[i]);
}

void rs_graph_begin(const void *stream)
{
    uint32_t capture = __atomic_add_fetch(&last_capture, 1, __ATOMIC_RELAXED);
    note(streams, STREAMS, key_of(stream), capture);
    if (capture_of(streams, STREAMS, key_of(stream)) == capture)
        __atomic_fetch_add(&rs_graph_captures, 1, __ATOMIC_RELEASE);
}

void rs_graph_end(const void *stream, int result)
{
    uint32_t capture = capture_of(streams, STREAMS, key_of(stream));
    if (capture == 0 || result == ERROR_UNMATCHED || result == ERROR_WRONG_THREAD)
        return;
    release_all(streams, STREAMS, capture);
    release_all(events, EVENTS, capture);
    __atomic_fetch_sub(&rs_graph_captures, 1, __ATOMIC_RELEASE);
}

void rs_graph_recorded(const void *event, const void *stream)
{
    uint32_t capture = capture_of(streams, STREAMS, key_of(stream));
    struct entry *before = capture ? NULL : find(events, EVENTS, (uintptr_t)event);
    if (capture)
        note(events, EVENTS, (uintptr_t)event, capture);
    else if (before)
        release(before);
}

void rs_graph_waits(const void *stream, const void *event)
{
    uint32_t capture = capture_of(events, EVENTS, (uintptr_t)event);
    if (capture)
        note(streams, STREAMS, key_of(stream), capture);
}

bool rs_graph_holds(const void *stream)
{
    return capture_of(streams, STREAMS, key_of(stream)) != 0;
}
