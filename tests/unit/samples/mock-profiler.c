/* SPDX-License-Identifier: Apache-2.0 */
#include "mock-profiler.h"

#include <pthread.h>
#include <stdio.h>

#include "profiler-abi.h"

#define EXPORT            __attribute__((visibility("default")))
#define PASTE(a, b)       a##b
#define NUMBERED(name, n) PASTE(name, n)

#if MOCK_VERSION == 6
typedef struct profiler_event_v5 event_descriptor;
#else
typedef struct NUMBERED(profiler_event_v, MOCK_VERSION) event_descriptor;
#endif

extern EXPORT struct mock_profiler mock_profiler;
struct mock_profiler mock_profiler = {.version = MOCK_VERSION, .mask = 0x7fff};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *note_init(int *mask, uint64_t hash, int ranks, int rank, const char *name)
{
    pthread_mutex_lock(&lock);
    struct mock_init *i = &mock_profiler.inits[mock_profiler.init_count++];
    *i = (struct mock_init){.hash = hash, .ranks = ranks, .rank = rank};
    snprintf(i->name, sizeof i->name, "%s", name ? name : "");
    *mask = mock_profiler.mask;
    pthread_mutex_unlock(&lock);
    return i;
}

#if MOCK_VERSION >= 5
static int init(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
                int rank, profiler_log_fn *log)
{
    *context = note_init(mask, hash, ranks, rank, name);
    return nodes == 1 && log ? 0 : 1;
}
#elif MOCK_VERSION == 4
static int init(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                int rank, profiler_log_fn *log)
{
    *context = note_init(mask, hash, ranks, rank, name);
    return nodes == 1 && log ? 0 : 1;
}
#else
static int init(void **context, int *mask)
{
    *context = note_init(mask, 0, 0, 0, NULL);
    return 0;
}
#endif

static void note_coll(struct mock_event *e, const event_descriptor *d)
{
    e->seq = d->coll.seq;
    e->count = d->coll.count;
    e->root = d->coll.root;
    e->in = d->coll.in;
    e->out = d->coll.out;
#if MOCK_VERSION == 1
    e->func_number = d->coll.func;
    e->datatype_number = d->coll.datatype;
#else
    snprintf(e->func, sizeof e->func, "%s", d->coll.func);
    snprintf(e->datatype, sizeof e->datatype, "%s", d->coll.datatype);
    snprintf(e->algorithm, sizeof e->algorithm, "%s", d->coll.algorithm);
#endif
#if MOCK_VERSION <= 3
    e->hash = d->coll.hash;
#elif MOCK_VERSION >= 5
    e->group = d->coll.parent_group;
#endif
}

static void note_p2p(struct mock_event *e, const event_descriptor *d)
{
    e->count = d->p2p.count;
    e->peer = d->p2p.peer;
    e->in = d->p2p.buffer;
#if MOCK_VERSION == 1
    e->func_number = d->p2p.func;
    e->datatype_number = d->p2p.datatype;
#else
    snprintf(e->func, sizeof e->func, "%s", d->p2p.func);
    snprintf(e->datatype, sizeof e->datatype, "%s", d->p2p.datatype);
#endif
#if MOCK_VERSION >= 5
    e->group = d->p2p.parent_group;
#endif
}

static void note_api(struct mock_event *e, const event_descriptor *d)
{
#if MOCK_VERSION >= 5
    if (d->type == PROFILE_GROUP_API)
        e->depth = d->group_api.depth;
    if (d->type == PROFILE_GROUP_API)
        e->captured = d->group_api.captured;
    if (d->type == PROFILE_KERNEL_LAUNCH)
        e->stream = d->kernel_launch.stream;
    if (d->type == PROFILE_COLL_API) {
        snprintf(e->func, sizeof e->func, "%s", d->coll_api.func);
        e->count = d->coll_api.count;
        e->root = d->coll_api.root;
        e->stream = d->coll_api.stream;
        e->captured = d->coll_api.captured;
    }
    if (d->type == PROFILE_P2P_API) {
        snprintf(e->func, sizeof e->func, "%s", d->p2p_api.func);
        e->count = d->p2p_api.count;
        e->stream = d->p2p_api.stream;
        e->captured = d->p2p_api.captured;
    }
#endif
}

static int start_event(void *context, void **handle, void *descriptor)
{
    const event_descriptor *d = descriptor;
    pthread_mutex_lock(&lock);
    struct mock_event *e = mock_profiler.event_count < MOCK_EVENTS_MAX
                               ? &mock_profiler.events[mock_profiler.event_count++]
                               : NULL;
    pthread_mutex_unlock(&lock);
    *handle = e;
    if (!e)
        return 1;
    *e = (struct mock_event){.type = d->type, .parent = d->parent, .rank = d->rank};
    note_api(e, d);
    if (d->type == PROFILE_COLL)
        note_coll(e, d);
    if (d->type == PROFILE_P2P)
        note_p2p(e, d);
#if MOCK_VERSION >= 4
    if (d->type == PROFILE_KERNEL_CH)
        e->timer = d->kernel_ch.timer;
#endif
    return 0;
}

static int stop_event(void *handle)
{
    ((struct mock_event *)handle)->stopped++;
    return 0;
}

static int record_event_state(void *handle, int state, void *arguments)
{
    struct mock_event *e = handle;
    e->states |= 1u << state;
    if (state == STATE_KERNEL_CH_STOP && arguments && !e->stopped)
        e->stop_timer = ((union profiler_state_v4 *)arguments)->kernel_ch.timer;
    return 0;
}

static int finalize(void *context)
{
    ((struct mock_init *)context)->finalized++;
    return 0;
}

#define TABLE NUMBERED(ncclProfiler_v, MOCK_VERSION)
extern EXPORT struct profiler_table TABLE;
struct profiler_table TABLE = {"mock",     (void (*)(void))init, start_event,
                               stop_event, record_event_state,   finalize};

#if MOCK_VERSION == 5
/* An older one beside it that must not be taken. */
static int older_init(void **context, int *mask)
{
    return 1;
}
extern EXPORT struct profiler_table ncclProfiler_v3;
struct profiler_table ncclProfiler_v3 = {"older",    (void (*)(void))older_init, start_event,
                                         stop_event, record_event_state,         finalize};
#endif
