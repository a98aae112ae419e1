/* SPDX-License-Identifier: Apache-2.0 */
#include "execution.h"

#include <errno.h>
#include <sys/mman.h>

#include "ops-numbers.h"
#include "proxy.h"

enum kind { KIND_FREE, KIND_EXECUTION, KIND_CHANNEL };

struct slot {
    uint64_t handle; /* atomic; 0 while it is being filled */
    uint32_t kind;
    /* a channel */
    uint32_t stopped; /* atomic */
    bool is_beside;   /* a proxy operation that is counted by itself */
    uint32_t sums;    /* an execution's, atomic; 0 while no step was told of */
    uint64_t execution, start, end;
    /* an execution; all atomic but the facts */
    struct rs_execution_facts facts;
    int32_t outstanding; /* holds, and channels and proxy operations still to end */
    int32_t beside_open; /* of these, proxy operations */
    uint32_t held, begun, ended, written;
    uint64_t first, last;
};

static struct slot *pool;                        /* atomic */
static uint64_t next_turn = RS_EXECUTIONS, lost; /* atomic; from here no handle is 0, nor small */

bool rs_executions_init(void)
{
    struct slot *none = NULL;
    if (__atomic_load_n(&pool, __ATOMIC_ACQUIRE))
        return true;
    size_t bytes = RS_EXECUTIONS * sizeof *pool;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (!__atomic_compare_exchange_n(&pool, &none, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        munmap(p, bytes);
    return true;
}

static struct slot *find(uint64_t handle, enum kind kind)
{
    struct slot *p = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    if (!p || handle < RS_EXECUTIONS)
        return NULL;
    struct slot *s = &p[handle % RS_EXECUTIONS];
    return __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE) == handle && s->kind == kind ? s : NULL;
}

static bool is_alive(const struct slot *s)
{
    if (s->kind == KIND_CHANNEL)
        return !s->stopped;
    return s->kind == KIND_EXECUTION && s->begun > 0 && !s->written;
}

/* Takes the oldest slot; publish it by rs_publish once it is filled. */
static struct slot *take(uint64_t *ret_handle)
{
    struct slot *p = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    if (!p)
        return NULL;
    *ret_handle = __atomic_fetch_add(&next_turn, 1, __ATOMIC_RELAXED);
    struct slot *s = &p[*ret_handle % RS_EXECUTIONS];
    if (is_alive(s))
        __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&s->handle, 0, __ATOMIC_RELEASE);
    return s;
}

static uint64_t publish(struct slot *s, const struct slot *filled, uint64_t handle)
{
    *s = *filled;
    __atomic_store_n(&s->handle, handle, __ATOMIC_RELEASE);
    return handle;
}

/* The thread's ring even where it is inside a recorded call: its record is written after ours. And
 * even while capture is off: an execution that ends then began before. */
static struct rs_thread *writing_thread(void)
{
    if (!rs_core->on[RS_ON_KEEP])
        return NULL;
    if (!rs_self)
        rs_self = rs_core->thread();
    return rs_self;
}

static void write_record(struct slot *s)
{
    const struct rs_execution_facts *f = &s->facts;
    uint64_t first = __atomic_exchange_n(&s->first, UINT64_MAX, __ATOMIC_ACQ_REL);
    uint64_t last = __atomic_exchange_n(&s->last, 0, __ATOMIC_ACQ_REL);
    uint16_t again = __atomic_exchange_n(&s->written, 1, __ATOMIC_ACQ_REL) ? RS_EVENT_NO_SEQ : 0;
    int saved = errno;
    struct rs_thread *t = first == UINT64_MAX ? NULL : writing_thread();
    errno = saved;
    struct rs_proxy_sums sums = {0};
    uint32_t summed = __atomic_exchange_n(&s->sums, 0, __ATOMIC_ACQ_REL);
    unsigned ext = summed && rs_proxy_sums_get(summed, &sums) ? rs_proxy_slots(&sums) : 0;
    if (!t || !rs_room_of_before(t, 1 + ext))
        return;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){.op = f->op,
                           .flags = f->flags | RS_EVENT_DEVICE | again | (ext ? RS_EVENT_EXT : 0),
                           .peer = f->peer,
                           .start = first,
                           .end = last > first ? last : first,
                           .count = f->count,
                           .comm = f->on ? f->on->id : 0,
                           .dtype = f->dtype,
                           .seq = f->seq,
                           .redop = f->redop};
    if (ext)
        rs_proxy_put(t, 1, &sums);
    errno = saved;
    rs_commit(t, 1 + ext);
}

static void settle(struct slot *s, int32_t by)
{
    if (__atomic_sub_fetch(&s->outstanding, by, __ATOMIC_ACQ_REL) == 0 &&
        __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE) > 0)
        write_record(s);
}

uint64_t rs_execution_new(const struct rs_execution_facts *facts, bool held)
{
    uint64_t handle;
    struct slot *s = take(&handle);
    if (!s)
        return 0;
    struct slot filled = {.kind = KIND_EXECUTION,
                          .facts = *facts,
                          .outstanding = held,
                          .held = held,
                          .first = UINT64_MAX};
    return publish(s, &filled, handle);
}

void rs_execution_release(uint64_t execution)
{
    struct slot *s = find(execution, KIND_EXECUTION);
    if (s && __atomic_exchange_n(&s->held, 0, __ATOMIC_ACQ_REL))
        settle(s, 1);
}

bool rs_execution_expect(uint64_t execution, unsigned channels)
{
    struct slot *s = find(execution, KIND_EXECUTION);
    if (s)
        __atomic_add_fetch(&s->outstanding, (int32_t)channels, __ATOMIC_ACQ_REL);
    return s != NULL;
}

void rs_execution_expect_less(uint64_t execution)
{
    struct slot *s = find(execution, KIND_EXECUTION);
    if (s && __atomic_load_n(&s->outstanding, __ATOMIC_ACQUIRE) >
                 (int32_t)__atomic_load_n(&s->held, __ATOMIC_ACQUIRE))
        settle(s, 1);
}

bool rs_execution_is_running(uint64_t execution)
{
    struct slot *s = find(execution, KIND_EXECUTION);
    return s && __atomic_load_n(&s->ended, __ATOMIC_ACQUIRE) <
                    __atomic_load_n(&s->begun, __ATOMIC_ACQUIRE);
}

void rs_execution_set_peer(uint64_t execution, int32_t peer)
{
    struct slot *s = find(execution, KIND_EXECUTION);
    if (s && s->facts.peer < 0 && (s->facts.op == RS_OP_ncclSend || s->facts.op == RS_OP_ncclRecv))
        s->facts.peer = peer;
}

static void lower(uint64_t *value, uint64_t to)
{
    uint64_t v = __atomic_load_n(value, __ATOMIC_RELAXED);
    while (to < v &&
           !__atomic_compare_exchange_n(value, &v, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void raise_to(uint64_t *value, uint64_t to)
{
    uint64_t v = __atomic_load_n(value, __ATOMIC_RELAXED);
    while (to > v &&
           !__atomic_compare_exchange_n(value, &v, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Channels past those expected, or of unknown number, count while they run. */
uint64_t rs_channel_begin(uint64_t execution, uint64_t tick)
{
    struct slot *x = find(execution, KIND_EXECUTION);
    uint64_t handle;
    struct slot *s = x ? take(&handle) : NULL;
    if (!s)
        return 0;
    uint32_t begun = __atomic_fetch_add(&x->begun, 1, __ATOMIC_ACQ_REL);
    uint32_t ended = __atomic_load_n(&x->ended, __ATOMIC_ACQUIRE);
    int32_t expected = __atomic_load_n(&x->outstanding, __ATOMIC_ACQUIRE) -
                       __atomic_load_n(&x->beside_open, __ATOMIC_ACQUIRE);
    if (expected <= (int32_t)(begun - ended))
        __atomic_add_fetch(&x->outstanding, 1, __ATOMIC_ACQ_REL);
    lower(&x->first, tick);
    struct slot filled = {.kind = KIND_CHANNEL, .execution = execution, .start = tick};
    return publish(s, &filled, handle);
}

uint64_t rs_channel_begin_beside(uint64_t execution)
{
    struct slot *x = find(execution, KIND_EXECUTION);
    uint64_t handle;
    struct slot *s = x && !__atomic_load_n(&x->written, __ATOMIC_ACQUIRE) ? take(&handle) : NULL;
    if (!s)
        return 0;
    __atomic_add_fetch(&x->outstanding, 1, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&x->beside_open, 1, __ATOMIC_ACQ_REL);
    struct slot filled = {.kind = KIND_CHANNEL, .execution = execution, .is_beside = true};
    return publish(s, &filled, handle);
}

uint32_t rs_channel_sums(uint64_t channel)
{
    struct slot *s = find(channel, KIND_CHANNEL);
    struct slot *x = s && !s->stopped ? find(s->execution, KIND_EXECUTION) : NULL;
    uint32_t none = 0;
    if (!x || __atomic_load_n(&x->written, __ATOMIC_ACQUIRE))
        return 0;
    uint32_t sums = __atomic_load_n(&x->sums, __ATOMIC_ACQUIRE);
    if (sums)
        return sums;
    sums = rs_proxy_sums_new();
    if (!__atomic_compare_exchange_n(&x->sums, &none, sums, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return none;
    return sums;
}

void rs_channel_ends(uint64_t channel, uint64_t tick)
{
    struct slot *s = find(channel, KIND_CHANNEL);
    if (s)
        __atomic_store_n(&s->end, tick, __ATOMIC_RELEASE);
}

void rs_channel_stop(uint64_t channel)
{
    struct slot *s = find(channel, KIND_CHANNEL);
    if (!s || __atomic_exchange_n(&s->stopped, 1, __ATOMIC_ACQ_REL))
        return;
    struct slot *x = find(s->execution, KIND_EXECUTION);
    if (!x)
        return;
    uint64_t end = __atomic_load_n(&s->end, __ATOMIC_ACQUIRE);
    raise_to(&x->last, end ? end : rs_tick());
    if (s->is_beside)
        __atomic_sub_fetch(&x->beside_open, 1, __ATOMIC_ACQ_REL);
    else
        __atomic_add_fetch(&x->ended, 1, __ATOMIC_ACQ_REL);
    settle(x, 1);
}

void rs_executions_finish(const struct rs_comm *on)
{
    struct slot *p = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    uint64_t used = __atomic_load_n(&next_turn, __ATOMIC_RELAXED) - RS_EXECUTIONS;
    for (uint64_t i = 0; p && i < RS_EXECUTIONS && i < used; i++) {
        struct slot *s = &p[i];
        if (s->kind == KIND_EXECUTION && s->facts.on == on && !s->written && s->begun > 0 &&
            s->begun == s->ended)
            write_record(s);
    }
}

uint64_t rs_executions_lost(void)
{
    return __atomic_load_n(&lost, __ATOMIC_RELAXED);
}
