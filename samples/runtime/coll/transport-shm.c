/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region: a place for every rank, a queue for every ordered pair. A queue is a ring of
 * slots; its sender numbers them, and a slot's number, written last, says that it is full. A
 * message is as many slots as it needs: what a receiver can take it takes, so that copying in,
 * copying out and reducing overlap.
 */
#include "rt-transport-shm.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rt-clock.h"
#include "rt-process.h"
#include "rt-shm-inside.h"
#include "rt-step.h"

#define LINE         64u
#define SLOTS        8u
#define SLOT_BYTES   (32u << 10)
#define INLINE_BYTES (LINE - 16u) /* short data lies beside its number: one line moves, not two */
#define BLOCK_BYTES  (256u << 10)

#define LOOK_AT_PEERS_NS 100000000u
#define SPIN_NS          100000u /* some sleeps and wake-ups: a peer that just woke finds us awake */
#define SPIN_CROWDED_NS  5000u   /* some turns of the others */

/* Rounds of looking between two looks at the clock and at whether others want the processor: whom
 * we wait for may need it. Surely so where there are more ranks than processors. */
#define ROUNDS         64u
#define ROUNDS_CROWDED 2u

enum place_state { PLACE_FREE, PLACE_CLAIMED, PLACE_TAKEN, PLACE_LEFT };

struct place {
    uint32_t state;    /* atomic */
    uint32_t sleeping; /* atomic: the rank is in, or on its way to, a futex wait on `bell` */
    uint32_t bell;     /* atomic */
    int32_t pid;
    uint64_t start;
    char spare[LINE - 24];
};

struct slot {
    uint64_t number; /* atomic: 1 + running number in the queue, once full */
    uint32_t bytes;
    uint32_t spare;
    char shorts[INLINE_BYTES];
};

struct queue {
    uint64_t freed; /* atomic: slots that the receiver is done with */
    char spare[LINE - 8];
    struct slot slots[SLOTS];
    char data[SLOTS][SLOT_BYTES];
};

_Static_assert(sizeof(struct place) == LINE && sizeof(struct slot) == LINE, "a line each");
_Static_assert(sizeof(struct queue) % LINE == 0, "queues keep the alignment");

enum request_kind { KIND_SEND, KIND_RECV, KIND_REDUCE, KIND_AWAIT };

/* What an rt_request holds here. KIND_AWAIT: the peer's post, until its number is `bytes`. */
struct message {
    uint8_t kind, type, op, complete;
    int32_t peer;
    uint32_t ticket;
    uint32_t spare;
    union {
        const char *from;
        char *to;
    };
    const char *operand;
    uint64_t bytes, done;
};
_Static_assert(sizeof(struct message) <= sizeof(struct rt_request), "a request holds a message");

static struct rt_transport_shm *shm_of(struct rt_transport *t)
{
    return (struct rt_transport_shm *)t;
}

/* The region: `size` places, `size` posts, then size * size queues, by sender and receiver. */
static struct place *place_of(const struct rt_transport_shm *t, int rank)
{
    return (struct place *)t->region + rank;
}

struct rt_shm_post *rt_shm_post_of(const struct rt_transport_shm *t, int rank)
{
    return (struct rt_shm_post *)place_of(t, t->base.size) + rank;
}

static struct queue *queue_of(struct rt_transport_shm *t, int from, int to)
{
    struct queue *first = (struct queue *)rt_shm_post_of(t, t->base.size);
    return &first[(size_t)from * (size_t)t->base.size + (size_t)to];
}

uint64_t rt_shm_bytes(int size)
{
    return (uint64_t)size * (sizeof(struct place) + sizeof(struct rt_shm_post)) +
           (uint64_t)size * (uint64_t)size * sizeof(struct queue);
}

/* ---- waking ---- */

static void ring_bell(struct place *p)
{
    __atomic_fetch_add(&p->bell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &p->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* After a change that `peer` may be waiting for. The fence pairs with the one in sleep_once: either
 * the sleeper sees the change or we see the sleeper. */
static void notify(struct rt_transport_shm *t, int peer)
{
    struct place *p = place_of(t, peer);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&p->sleeping, __ATOMIC_RELAXED))
        ring_bell(p);
}

/* ---- moving data ---- */

/* Long messages go in whole slots; shorter ones in about four pieces, so that both ends work at
 * once. */
static uint32_t piece_bytes(const struct message *m)
{
    uint64_t rest = m->bytes - m->done;
    if (rest <= INLINE_BYTES)
        return (uint32_t)rest;
    uint64_t piece = (m->bytes / 4 + LINE - 1) & ~(uint64_t)(LINE - 1);
    if (piece < 4096)
        piece = 4096;
    if (piece > SLOT_BYTES)
        piece = SLOT_BYTES;
    return (uint32_t)(rest < piece ? rest : piece);
}

static bool push(struct rt_transport_shm *t, struct message *m)
{
    struct queue *q = queue_of(t, t->base.rank, m->peer);
    struct rt_shm_pair *pair = &t->pairs[m->peer];
    if (pair->sent - pair->freed == SLOTS) {
        pair->freed = __atomic_load_n(&q->freed, __ATOMIC_ACQUIRE);
        if (pair->sent - pair->freed == SLOTS)
            return false;
    }
    unsigned i = pair->sent % SLOTS;
    uint32_t bytes = piece_bytes(m);
    memcpy(bytes <= INLINE_BYTES ? q->slots[i].shorts : q->data[i], m->from + m->done, bytes);
    q->slots[i].bytes = bytes;
    __atomic_store_n(&q->slots[i].number, ++pair->sent, __ATOMIC_RELEASE);
    m->done += bytes;
    notify(t, m->peer);
    return true;
}

static void take(struct message *m, const char *data, uint32_t bytes)
{
    if (m->kind == KIND_REDUCE)
        rt_reduce(m->to + m->done, m->operand + m->done, data, bytes / rt_type_bytes(m->type),
                  m->type, m->op);
    else
        memcpy(m->to + m->done, data, bytes);
    m->done += bytes;
}

static bool has_piece(struct rt_transport_shm *t, int peer)
{
    const struct rt_shm_pair *pair = &t->pairs[peer];
    const struct slot *slot = &queue_of(t, peer, t->base.rank)->slots[pair->received % SLOTS];
    return __atomic_load_n(&slot->number, __ATOMIC_ACQUIRE) == pair->received + 1;
}

/* 1 moved something, 0 nothing there, or -EMSGSIZE. */
static int pull(struct rt_transport_shm *t, struct message *m)
{
    if (!has_piece(t, m->peer))
        return 0;
    struct queue *q = queue_of(t, m->peer, t->base.rank);
    struct rt_shm_pair *pair = &t->pairs[m->peer];
    unsigned i = pair->received % SLOTS;
    uint32_t bytes = q->slots[i].bytes;
    if (bytes > m->bytes - m->done || bytes > SLOT_BYTES ||
        (m->kind == KIND_REDUCE && bytes % rt_type_bytes(m->type) != 0))
        return -EMSGSIZE;
    take(m, bytes <= INLINE_BYTES ? q->slots[i].shorts : q->data[i], bytes);
    __atomic_store_n(&q->freed, ++pair->received, __ATOMIC_RELEASE);
    notify(t, m->peer);
    return 1;
}

static bool is_its_turn(const struct rt_shm_pair *pair, const struct message *m)
{
    return m->ticket == (m->kind == KIND_SEND ? pair->sends_done : pair->recvs_done);
}

static bool has_come_so_far(const struct rt_transport_shm *t, const struct message *m)
{
    return __atomic_load_n(&rt_shm_post_of(t, m->peer)->number, __ATOMIC_ACQUIRE) >= m->bytes;
}

/* A message from one that has not come so far: it is in another call than this rank. What it
 * sends after it has come it may have sent between the two looks. */
static int look_at_post(struct rt_transport_shm *t, struct message *m)
{
    m->complete = has_come_so_far(t, m);
    if (m->complete || !has_piece(t, m->peer))
        return m->complete;
    m->complete = has_come_so_far(t, m);
    return m->complete ? 1 : -EMSGSIZE;
}

/* One piece of one message: 1 moved, 0 not now, or a negative errno. */
static int advance(struct rt_transport_shm *t, struct message *m)
{
    struct rt_shm_pair *pair = &t->pairs[m->peer];
    if (m->complete)
        return 0;
    if (m->kind == KIND_AWAIT)
        return look_at_post(t, m);
    if (!is_its_turn(pair, m))
        return 0;
    int moved = m->kind == KIND_SEND ? push(t, m) : pull(t, m);
    if (moved > 0 && m->done == m->bytes) {
        m->complete = 1;
        (*(m->kind == KIND_SEND ? &pair->sends_done : &pair->recvs_done))++;
    }
    return moved;
}

/* ---- posting ---- */

static void post(struct rt_transport_shm *t, struct rt_request *ret, struct message m)
{
    struct rt_shm_pair *pair = &t->pairs[m.peer];
    m.ticket = m.kind == KIND_SEND ? pair->sends_posted++ : pair->recvs_posted++;
    memcpy(ret->word, &m, sizeof m);
}

static int shm_send(struct rt_transport *base, const void *data, uint64_t bytes, int peer,
                    struct rt_request *ret)
{
    struct rt_transport_shm *t = shm_of(base);
    post(t, ret, (struct message){.kind = KIND_SEND, .peer = peer, .from = data, .bytes = bytes});
    /* the peer may be waiting: it gets the first piece before we look at anything else */
    int moved = advance(t, (struct message *)ret->word);
    return moved < 0 ? moved : 0;
}

static int shm_recv(struct rt_transport *base, void *data, uint64_t bytes, int peer,
                    struct rt_request *ret)
{
    post(shm_of(base), ret,
         (struct message){.kind = KIND_RECV, .peer = peer, .to = data, .bytes = bytes});
    return 0;
}

static int shm_recv_reduce(struct rt_transport *base, void *out, const void *operand,
                           uint64_t count, enum rt_type type, enum rt_op op, int peer,
                           struct rt_request *ret)
{
    post(shm_of(base), ret,
         (struct message){.kind = KIND_REDUCE,
                          .type = (uint8_t)type,
                          .op = (uint8_t)op,
                          .peer = peer,
                          .to = out,
                          .operand = operand,
                          .bytes = count * rt_type_bytes(type)});
    return 0;
}

/* ---- waiting ---- */

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A piece of each: 1 something moved, 0 nothing, or a negative errno. */
static int advance_all(struct rt_transport_shm *t, struct rt_request *requests, unsigned n,
                       unsigned *ret_pending)
{
    int any = 0;
    *ret_pending = 0;
    for (unsigned i = 0; i < n; i++) {
        struct message *m = (struct message *)requests[i].word;
        int moved = advance(t, m);
        if (moved < 0)
            return moved;
        any |= moved;
        *ret_pending += !m->complete;
    }
    return any;
}

static bool is_aborted(const struct rt_transport_shm *t)
{
    return __atomic_load_n(&t->aborted, __ATOMIC_ACQUIRE) != 0;
}

int rt_shm_peer_alive(const struct rt_transport_shm *t, int rank)
{
    const struct place *p = place_of(t, rank);
    switch (__atomic_load_n(&p->state, __ATOMIC_ACQUIRE)) {
    case PLACE_LEFT:
        return 0;
    case PLACE_TAKEN:
        return p->pid == place_of(t, t->base.rank)->pid || rt_process_alive(p->pid, p->start);
    default:
        return 1;
    }
}

/* Has anybody gone who still owes something? Its last words may lie in the queue: the caller looks
 * once more before it believes this. */
static bool is_hopeless(struct rt_transport_shm *t, struct rt_request *requests, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct message *m = (struct message *)requests[i].word;
        if (!m->complete && !rt_shm_peer_alive(t, m->peer))
            return true;
    }
    return false;
}

static int advance_or_give_up(struct rt_transport_shm *t, struct rt_request *requests, unsigned n,
                              unsigned *ret_pending)
{
    if (is_aborted(t))
        return -ECANCELED;
    bool hopeless = is_hopeless(t, requests, n);
    int moved = advance_all(t, requests, n, ret_pending);
    return moved == 0 && hopeless && *ret_pending > 0 ? -ECONNRESET : moved;
}

/* Sleeps until the bell rings, unless there is something to do. As `advance_all`. */
static int sleep_once(struct rt_transport_shm *t, struct rt_request *requests, unsigned n,
                      unsigned *ret_pending)
{
    struct place *self = place_of(t, t->base.rank);
    const struct timespec limit = {.tv_nsec = LOOK_AT_PEERS_NS};
    uint32_t bell = __atomic_load_n(&self->bell, __ATOMIC_SEQ_CST);
    __atomic_store_n(&self->sleeping, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    int moved = is_aborted(t) ? -ECANCELED : advance_all(t, requests, n, ret_pending);
    if (moved == 0 && *ret_pending > 0) {
        syscall(SYS_futex, &self->bell, FUTEX_WAIT, bell, &limit, NULL, 0);
        moved = advance_all(t, requests, n, ret_pending);
        /* woken for nothing, or not at all: has somebody gone? */
        if (moved == 0 && *ret_pending > 0)
            moved = advance_or_give_up(t, requests, n, ret_pending);
    }
    __atomic_store_n(&self->sleeping, 0, __ATOMIC_SEQ_CST);
    return moved;
}

/* Something to do soon is better awaited awake; the clock is looked at now and then only. */
static int spin(struct rt_transport_shm *t, struct rt_request *requests, unsigned n,
                unsigned *ret_pending)
{
    const unsigned rounds = t->is_crowded ? ROUNDS_CROWDED : ROUNDS;
    uint64_t end = rt_now_ns() + (t->is_crowded ? SPIN_CROWDED_NS : SPIN_NS);
    for (unsigned i = 1;; i++) {
        int moved = advance_all(t, requests, n, ret_pending);
        if (moved != 0 || *ret_pending == 0)
            return moved;
        pause_briefly();
        if (i % rounds == 0) {
            if (rt_now_ns() >= end)
                return 0;
            sched_yield();
        }
    }
}

/* Others that wait for this rank will see that it doesn't take part any more. */
static void leave(struct rt_transport_shm *t)
{
    __atomic_store_n(&place_of(t, t->base.rank)->state, PLACE_LEFT, __ATOMIC_SEQ_CST);
    for (int i = 0; i < t->base.size; i++)
        ring_bell(place_of(t, i));
}

static int shm_wait(struct rt_transport *base, struct rt_request *requests, unsigned n)
{
    struct rt_transport_shm *t = shm_of(base);
    unsigned pending;
    int saved_errno = errno;
    for (;;) {
        int moved = advance_all(t, requests, n, &pending);
        if (moved == 0 && pending > 0)
            moved = spin(t, requests, n, &pending);
        if (moved == 0 && pending > 0)
            moved = sleep_once(t, requests, n, &pending);
        if (moved < 0)
            leave(t);
        if (moved < 0 || pending == 0) {
            errno = saved_errno;
            return moved < 0 ? moved : 0;
        }
    }
}

/* ---- posts ---- */

void rt_shm_advance_post(struct rt_transport_shm *t, uint64_t number)
{
    __atomic_store_n(&rt_shm_post_of(t, t->base.rank)->number, number, __ATOMIC_RELEASE);
    for (int i = 0; i < t->base.size; i++)
        if (i != t->base.rank)
            notify(t, i);
}

int rt_shm_await_posts(struct rt_transport_shm *t, uint64_t number)
{
    unsigned n = 0;
    for (int i = 0; i < t->base.size; i++) {
        struct message m = {.kind = KIND_AWAIT, .peer = i, .bytes = number};
        if (i != t->base.rank && !has_come_so_far(t, &m))
            memcpy(t->awaits[n++].word, &m, sizeof m);
    }
    return n > 0 ? shm_wait(&t->base, t->awaits, n) : 0;
}

static const struct rt_transport_ops shm_ops = {
    .send = shm_send,
    .recv = shm_recv,
    .recv_reduce = shm_recv_reduce,
    .wait = shm_wait,
    .meet = rt_shm_meet,
    .part = rt_shm_part,
};

/* ---- coming and going ---- */

static bool is_crowded(int size)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || size > CPU_COUNT(&set);
}

static void free_tables(struct rt_transport_shm *t)
{
    for (int i = 0; i < t->base.size && t->heaps; i++)
        rt_heap_unmap(t->heaps[i].base);
    free(t->pairs);
    free(t->heaps);
    free(t->awaits);
}

static bool make_tables(struct rt_transport_shm *t)
{
    const size_t size = (size_t)t->base.size;
    t->pairs = calloc(size, sizeof *t->pairs);
    t->heaps = calloc(size, sizeof *t->heaps);
    t->awaits = calloc(size, sizeof *t->awaits);
    if (t->pairs && t->heaps && t->awaits)
        return true;
    free_tables(t);
    return false;
}

int rt_transport_shm_init(struct rt_transport_shm *t, void *region, int rank, int size)
{
    if (size < 1 || rank < 0 || rank >= size)
        return -EINVAL;
    struct place *p = (struct place *)region + rank;
    uint32_t expected = PLACE_FREE;
    if (!__atomic_compare_exchange_n(&p->state, &expected, PLACE_CLAIMED, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return -EBUSY;
    *t = (struct rt_transport_shm){
        .base = {.ops = &shm_ops, .rank = rank, .size = size, .block_bytes = BLOCK_BYTES},
        .region = region,
        .is_crowded = is_crowded(size)};
    bool made = make_tables(t);
    p->pid = getpid();
    p->start = rt_process_start(p->pid);
    __atomic_store_n(&p->state, made ? PLACE_TAKEN : PLACE_FREE, __ATOMIC_RELEASE);
    if (!made)
        *t = (struct rt_transport_shm){0}; /* for release, which finds nothing */
    return made ? 0 : -ENOMEM;
}

void rt_transport_shm_release(struct rt_transport_shm *t)
{
    if (!t->region)
        return;
    leave(t);
    rt_transport_release(&t->base);
    free_tables(t);
    *t = (struct rt_transport_shm){0};
}

void rt_transport_shm_abort(struct rt_transport_shm *t)
{
    __atomic_store_n(&t->aborted, 1, __ATOMIC_SEQ_CST);
    ring_bell(place_of(t, t->base.rank));
}

void rt_transport_shm_leave(struct rt_transport_shm *t)
{
    leave(t);
}
