/* SPDX-License-Identifier: Apache-2.0 */
#include "clock-probe.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flavour.h"

#define ROUNDS        24
#define KEPT          4            /* shortest round trips told to the capture */
#define FIRST_WAIT_NS 2000000000ll /* until the other side comes at all */
#define ROUND_WAIT_NS 250000000ll
#define JOIN_WAIT_NS  5000000000ll /* until all ranks have come out of the real MPI_Init */
#define TAG_ASK       1
#define TAG_ANSWER    2

struct stamps { /* what goes over the wire; ticks of the answering side */
    uint64_t round, received, sent;
};

/* One speaker as world rank 0 serves it, or world rank 0 as a speaker asks it. What was given up
 * may still read and write the stamps: they are never freed. */
struct peer {
    int32_t rank;
    int rounds_left;
    MPI_Request receive;
    struct stamps in, out;
};

static struct {
    MPI_Comm comm; /* ours alone */
    int rank;
    struct peer *peers; /* rank 0: all other speakers; a speaker: rank 0 */
    int peer_count;     /* 0: nothing to do */
    uint64_t round;     /* of all exchanges: a late answer is known by it */
} probe;

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- who speaks ---- */

static uint64_t domain_hash(void)
{
    uint64_t h = 1;
    for (const char *p = rs_core->domain(); p && *p; p++)
        h = rs_hash_mix(h, (uint8_t)*p);
    return h;
}

struct domain {
    uint64_t hash;
    int32_t rank;
};

static int by_hash(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The lowest rank of each domain speaks for it; every rank finds the same ones. */
static void choose_peers(struct domain *d, int n)
{
    bool speaks = false;
    qsort(d, (size_t)n, sizeof *d, by_hash);
    probe.peers = calloc((size_t)n, sizeof *probe.peers);
    for (int i = 0; probe.peers && i < n; i++) {
        if (i > 0 && d[i].hash == d[i - 1].hash)
            continue;
        speaks |= d[i].rank == probe.rank;
        if (d[i].rank != 0)
            probe.peers[probe.peer_count++].rank = d[i].rank;
    }
    if (probe.rank == 0)
        return;
    probe.peer_count = speaks;
    if (speaks)
        probe.peers[0].rank = 0;
}

/* The launcher says that all ranks are its children on this host: they share the clock. */
static bool is_one_host(int size)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
#ifdef RS_TEST_CLOCK /* set for every rank, or for none: each may have a clock of its own */
    if (getenv("RINGSCOPE_TEST_CLOCK"))
        return size < 2;
#endif
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) == size)
            return true;
    }
    return size < 2;
}

/* ---- waits that end ---- */

static bool is_done(MPI_Request *request)
{
    int done = 0;
    return rs_mpi_real.Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done;
}

/* false: not done in time. */
static bool wait_for(MPI_Request *request, int64_t deadline)
{
    while (!is_done(request)) {
        if (now_ns() > deadline)
            return false;
        sched_yield();
    }
    return true;
}

/* ---- all ranks, or none ---- */

/* What the ranks tell each other. Never freed: a collective that was given up may still write it.
 */
struct join {
    MPI_Request request;
    struct domain own;
    char run_id[RS_RUN_ID_MAX];
    struct domain all[];
};

/* A rank without the tracer never joins, so nothing here blocks. */
static bool join_all(struct join *j, int size)
{
    const MPI_Datatype byte = rs_mpi_predefined.byte;
    int64_t deadline = now_ns() + JOIN_WAIT_NS;
    if (rs_mpi_real.Comm_idup(rs_mpi_predefined.world, &probe.comm, &j->request) != MPI_SUCCESS ||
        !wait_for(&j->request, deadline))
        return false;
    rs_mpi_real.Comm_set_errhandler(probe.comm, rs_mpi_predefined.errors_return);
    return rs_mpi_real.Iallgather(&j->own, sizeof j->own, byte, j->all, sizeof *j->all, byte,
                                  probe.comm, &j->request) == MPI_SUCCESS &&
           wait_for(&j->request, deadline) &&
           rs_mpi_real.Ibcast(j->run_id, sizeof j->run_id, byte, 0, probe.comm, &j->request) ==
               MPI_SUCCESS &&
           wait_for(&j->request, deadline);
}

void rs_mpi_probe_begin(void)
{
    int size = 0;
    rs_mpi_real.Comm_rank(rs_mpi_predefined.world, &probe.rank);
    rs_mpi_real.Comm_size(rs_mpi_predefined.world, &size);
    if (is_one_host(size))
        return;
    struct join *j = calloc(1, sizeof *j + (size_t)size * sizeof *j->all);
    if (!j)
        return;
    j->own = (struct domain){domain_hash(), probe.rank};
    snprintf(j->run_id, sizeof j->run_id, "%s", rs_core->run_id());
    if (!join_all(j, size)) {
        rs_core->meta("off.clock", "not all ranks of MPI_COMM_WORLD are traced");
        return;
    }
    rs_core->set_run_id(j->run_id);
    choose_peers(j->all, size);
    free(j);
}

/* ---- round trips ---- */

static void give_up(MPI_Request *request)
{
    rs_mpi_real.Cancel(request);
    rs_mpi_real.Request_free(request);
}

static bool is_passed(MPI_Request *request, int64_t deadline)
{
    bool done = wait_for(request, deadline);
    if (!done)
        give_up(request);
    return done;
}

static bool start_receive(struct peer *p, int tag)
{
    return rs_mpi_real.Irecv(&p->in, sizeof p->in, rs_mpi_predefined.byte, p->rank, tag, probe.comm,
                             &p->receive) == MPI_SUCCESS;
}

static bool send(struct peer *p, int tag, int64_t deadline)
{
    MPI_Request request;
    return rs_mpi_real.Isend(&p->out, sizeof p->out, rs_mpi_predefined.byte, p->rank, tag,
                             probe.comm, &request) == MPI_SUCCESS &&
           is_passed(&request, deadline);
}

/* ---- world rank 0: answers whoever asks ---- */

/* true: still served. */
static bool serve(struct peer *p, bool *ret_moved)
{
    if (!is_done(&p->receive))
        return true;
    p->out = (struct stamps){.round = p->in.round, .received = rs_tick()};
    p->out.sent = rs_tick();
    *ret_moved = true;
    bool sent = send(p, TAG_ANSWER, now_ns() + ROUND_WAIT_NS);
    return sent && --p->rounds_left > 0 && start_receive(p, TAG_ASK);
}

static int begin_service(void)
{
    int open = 0;
    for (int i = 0; i < probe.peer_count; i++) {
        probe.peers[i].rounds_left = start_receive(&probe.peers[i], TAG_ASK) ? ROUNDS : 0;
        open += probe.peers[i].rounds_left > 0;
    }
    return open;
}

/* One wait for all that are lost, however many they are. */
static void answer_all(void)
{
    int open = begin_service();
    int64_t deadline = now_ns() + FIRST_WAIT_NS;
    while (open > 0 && now_ns() < deadline) {
        bool moved = false;
        for (int i = 0; i < probe.peer_count; i++) {
            struct peer *p = &probe.peers[i];
            if (p->rounds_left > 0 && !serve(p, &moved)) {
                p->rounds_left = 0;
                open--;
            }
        }
        if (moved)
            deadline = now_ns() + FIRST_WAIT_NS;
        else
            sched_yield();
    }
    for (int i = 0; i < probe.peer_count; i++)
        if (probe.peers[i].rounds_left > 0)
            give_up(&probe.peers[i].receive);
}

/* ---- a speaker: asks world rank 0 ---- */

static bool make_trip(struct peer *p, int64_t deadline, struct rs_clock_probe *ret)
{
    p->out = (struct stamps){.round = ++probe.round};
    *ret = (struct rs_clock_probe){.kind = RS_CLOCK_PROBE, .peer = p->rank};
    ret->sent = rs_tick();
    if (!send(p, TAG_ASK, deadline))
        return false;
    do { /* an answer to what was given up may come first */
        if (!start_receive(p, TAG_ANSWER) || !is_passed(&p->receive, deadline))
            return false;
        ret->received = rs_tick();
    } while (p->in.round != probe.round);
    ret->peer_received = p->in.received;
    ret->peer_sent = p->in.sent;
    return true;
}

static int by_round_trip(const void *a, const void *b)
{
    const struct rs_clock_probe *x = a, *y = b;
    uint64_t dx = x->received - x->sent, dy = y->received - y->sent;
    return dx < dy ? -1 : dx > dy;
}

static void ask(struct peer *p)
{
    struct rs_clock_probe trips[ROUNDS];
    int n = 0;
    int64_t deadline = now_ns() + FIRST_WAIT_NS;
    while (n < ROUNDS && make_trip(p, deadline, &trips[n])) {
        n++;
        deadline = now_ns() + ROUND_WAIT_NS;
    }
    qsort(trips, (size_t)n, sizeof *trips, by_round_trip);
    for (int i = 0; i < n && i < KEPT; i++)
        rs_core->probe(&trips[i]);
}

void rs_mpi_probe_clocks(void)
{
    if (probe.peer_count == 0)
        return;
    if (probe.rank == 0)
        answer_all();
    else
        ask(&probe.peers[0]);
}
