/* SPDX-License-Identifier: Apache-2.0 */
#include "clock-probe.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "flavour.h"

#define ROUNDS        100
#define KEPT          4            /* shortest round trips told to the capture */
#define FIRST_WAIT_NS 2000000000ll /* until the other side comes at all */
#define ROUND_WAIT_NS 250000000ll
#define TAG_ASK       1
#define TAG_ANSWER    2

struct stamps { /* what goes over the wire; ticks of the answering side */
    uint64_t round, received, sent;
};

static struct {
    MPI_Comm comm;     /* ours alone */
    int32_t *speakers; /* world ranks that speak for a domain, ascending; [0] is world rank 0 */
    int speaker_count; /* < 2: nothing to do */
    int rank;
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

static int by_rank(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void choose_speakers(const uint64_t *hashes, int n)
{
    struct domain *d = malloc((size_t)n * sizeof *d);
    probe.speakers = malloc((size_t)n * sizeof *probe.speakers);
    if (d && probe.speakers) {
        for (int i = 0; i < n; i++)
            d[i] = (struct domain){hashes[i], i};
        qsort(d, (size_t)n, sizeof *d, by_hash);
        for (int i = 0; i < n; i++)
            if (i == 0 || d[i].hash != d[i - 1].hash)
                probe.speakers[probe.speaker_count++] = d[i].rank;
        qsort(probe.speakers, (size_t)probe.speaker_count, sizeof *probe.speakers, by_rank);
    }
    free(d);
}

void rs_mpi_probe_begin(void)
{
    int size = 0;
    rs_mpi_real.Comm_rank(rs_mpi_predefined.world, &probe.rank);
    rs_mpi_real.Comm_size(rs_mpi_predefined.world, &size);
    if (size < 2 || rs_mpi_real.Comm_dup(rs_mpi_predefined.world, &probe.comm) != MPI_SUCCESS)
        return;
    rs_mpi_real.Comm_set_errhandler(probe.comm, rs_mpi_predefined.errors_return);
    uint64_t own = domain_hash(), *all = malloc((size_t)size * sizeof *all);
    /* Every rank has to take part, memory or none. */
    if (!all || rs_mpi_real.Allgather(&own, sizeof own, rs_mpi_predefined.byte, all, sizeof own,
                                      rs_mpi_predefined.byte, probe.comm) != MPI_SUCCESS)
        size = 0;
    if (size > 0)
        choose_speakers(all, size);
    free(all);
}

/* ---- round trips ---- */

/* false: not done in time; the request is given up. */
static bool wait_for(MPI_Request *request, int64_t deadline)
{
    int done = 0;
    for (;;) {
        if (rs_mpi_real.Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done)
            return true;
        if (now_ns() > deadline)
            break;
        sched_yield();
    }
    rs_mpi_real.Cancel(request);
    rs_mpi_real.Request_free(request);
    return false;
}

/* The answering stamps are static: a send that was given up may still read or write them. */
static struct stamps out, in;

static bool receive(int peer, int tag, int64_t deadline)
{
    MPI_Request request;
    return rs_mpi_real.Irecv(&in, sizeof in, rs_mpi_predefined.byte, peer, tag, probe.comm,
                             &request) == MPI_SUCCESS &&
           wait_for(&request, deadline);
}

static bool send(int peer, int tag, int64_t deadline)
{
    MPI_Request request;
    return rs_mpi_real.Isend(&out, sizeof out, rs_mpi_predefined.byte, peer, tag, probe.comm,
                             &request) == MPI_SUCCESS &&
           wait_for(&request, deadline);
}

static void answer(int peer)
{
    int64_t deadline = now_ns() + FIRST_WAIT_NS;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (!receive(peer, TAG_ASK, deadline))
            return;
        out.received = rs_tick();
        out.round = in.round;
        out.sent = rs_tick();
        deadline = now_ns() + ROUND_WAIT_NS;
        if (!send(peer, TAG_ANSWER, deadline))
            return;
    }
}

static int by_round_trip(const void *a, const void *b)
{
    const struct rs_clock_probe *x = a, *y = b;
    uint64_t dx = x->received - x->sent, dy = y->received - y->sent;
    return dx < dy ? -1 : dx > dy;
}

static void ask(int peer)
{
    struct rs_clock_probe trips[ROUNDS];
    int n = 0;
    int64_t deadline = now_ns() + FIRST_WAIT_NS;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct rs_clock_probe *p = &trips[n];
        *p = (struct rs_clock_probe){.kind = RS_CLOCK_PROBE, .peer = peer};
        out.round = round;
        p->sent = rs_tick();
        if (!send(peer, TAG_ASK, deadline) || !receive(peer, TAG_ANSWER, deadline))
            break;
        p->received = rs_tick();
        p->peer_received = in.received;
        p->peer_sent = in.sent;
        n += in.round == round;
        deadline = now_ns() + ROUND_WAIT_NS;
    }
    qsort(trips, (size_t)n, sizeof *trips, by_round_trip);
    for (int i = 0; i < n && i < KEPT; i++)
        rs_core->probe(&trips[i]);
}

void rs_mpi_probe_clocks(void)
{
    if (probe.speaker_count < 2)
        return;
    for (int i = 1; i < probe.speaker_count; i++) {
        if (probe.rank == 0)
            answer(probe.speakers[i]);
        else if (probe.rank == probe.speakers[i])
            ask(0);
    }
}
