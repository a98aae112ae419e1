/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt-clock.h"
#include "rt-transport-mpi.h"

/* Long enough that a message's own cost doesn't count, short enough for an int of bytes and for
 * scratch. */
#define BLOCK_BYTES ((uint64_t)16 << 20)
#define WAIT_MAX    16

/* Open MPI's TCP sends up to 64 KiB with its header at once. Anything longer waits for the
 * receiver's word, and that stands in line behind all data that go the receiver's way. */
#define AT_ONCE_BYTES ((uint64_t)60 << 10)

/* A long message goes as some shorter ones: Open MPI over TCP sends one long message to its end
 * before it looks at what comes the other way. */
#define PIECE_BYTES ((uint64_t)1 << 20)
#define PIECES_MAX  8

/* Waiting: looks between two at the clock, then how long it only gives way, then naps. */
#define LOOKS      16u
#define AWAKE_NS   1000000u
#define NAP_PART   32u
#define NAP_MAX_NS 200000u

struct mpi_transport {
    struct rt_transport base;
    MPI_Comm comm;
    int tag;
    int *ranks; /* in comm, by rank here; NULL the same */
};

/* What an rt_request holds here. */
struct message {
    uint64_t n;
    MPI_Request pieces[PIECES_MAX];
};
_Static_assert(sizeof(struct message) <= sizeof(struct rt_request), "a request holds a message");

static struct mpi_transport *mpi_of(struct rt_transport *t)
{
    return (struct mpi_transport *)t;
}

static int rank_in_comm(const struct mpi_transport *m, int peer)
{
    return m->ranks ? m->ranks[peer] : peer;
}

static uint64_t piece_bytes(uint64_t bytes)
{
    uint64_t piece = (bytes + PIECES_MAX - 1) / PIECES_MAX;
    return piece < PIECE_BYTES ? PIECE_BYTES : piece;
}

static int post_send(struct rt_transport *t, const void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct mpi_transport *m = mpi_of(t);
    struct message *message = (struct message *)ret->word;
    const uint64_t piece = piece_bytes(bytes);
    message->n = 0;
    for (uint64_t at = 0; at < bytes; at += piece)
        if (MPI_Isend((const char *)data + at, (int)(bytes - at < piece ? bytes - at : piece),
                      MPI_BYTE, rank_in_comm(m, peer), m->tag, m->comm,
                      &message->pieces[message->n++]) != MPI_SUCCESS)
            return -EIO;
    return 0;
}

static int post_recv(struct rt_transport *t, void *data, uint64_t bytes, int peer,
                     struct rt_request *ret)
{
    struct mpi_transport *m = mpi_of(t);
    struct message *message = (struct message *)ret->word;
    const uint64_t piece = piece_bytes(bytes);
    message->n = 0;
    for (uint64_t at = 0; at < bytes; at += piece)
        if (MPI_Irecv((char *)data + at, (int)(bytes - at < piece ? bytes - at : piece), MPI_BYTE,
                      rank_in_comm(m, peer), m->tag, m->comm,
                      &message->pieces[message->n++]) != MPI_SUCCESS)
            return -EIO;
    return 0;
}

/* Naps are a small part of what was waited so far, and short beside what sockets hold. */
static void give_way(uint64_t waited_ns)
{
    struct timespec nap = {.tv_nsec = NAP_MAX_NS};
    if (waited_ns < AWAKE_NS) {
        sched_yield();
        return;
    }
    if (waited_ns / NAP_PART < NAP_MAX_NS)
        nap.tv_nsec = (long)(waited_ns / NAP_PART);
    nanosleep(&nap, NULL);
}

/* MPI's own waiting keeps the processor from whom it waits for. */
static int wait_some(MPI_Request *pending, unsigned n)
{
    MPI_Status statuses[WAIT_MAX]; /* MPICH's way of ignoring them makes gcc warn */
    uint64_t begin_ns = 0;
    for (unsigned looks = 1;; looks++) {
        int done = 0;
        if (MPI_Testall((int)n, pending, &done, statuses) != MPI_SUCCESS)
            return -EIO;
        if (done)
            return 0;
        if (looks % LOOKS != 0)
            continue;
        const uint64_t now = rt_now_ns();
        begin_ns = begin_ns ? begin_ns : now;
        give_way(now - begin_ns);
    }
}

/* All progress in any of MPI's calls, so waiting for a part of them first is no deadlock. */
static int wait_all(struct rt_transport *t, struct rt_request *requests, unsigned n)
{
    MPI_Request pending[WAIT_MAX];
    unsigned taken = 0;
    int error = 0;
    for (unsigned i = 0; i < n && !error; i++) {
        const struct message *m = (const struct message *)requests[i].word;
        if (taken + m->n > WAIT_MAX) {
            error = wait_some(pending, taken);
            taken = 0;
        }
        memcpy(pending + taken, m->pieces, m->n * sizeof *pending);
        taken += (unsigned)m->n;
    }
    return error || taken == 0 ? error : wait_some(pending, taken);
}

static const struct rt_transport_ops mpi_ops = {
    .send = post_send,
    .recv = post_recv,
    .wait = wait_all,
};

/* The place of `rank` among them. */
static int place_of(const int *ranks, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] == rank)
            return i;
    return -1;
}

static int set_ranks(struct mpi_transport *m, const int *ranks, int n)
{
    if (MPI_Comm_rank(m->comm, &m->base.rank) != MPI_SUCCESS ||
        MPI_Comm_size(m->comm, &m->base.size) != MPI_SUCCESS)
        return EIO;
    if (!ranks)
        return 0;
    m->base.rank = place_of(ranks, n, m->base.rank);
    m->base.size = n;
    m->ranks = malloc((size_t)n * sizeof *m->ranks);
    if (m->base.rank < 0 || !m->ranks)
        return m->ranks ? EINVAL : ENOMEM;
    memcpy(m->ranks, ranks, (size_t)n * sizeof *m->ranks);
    return 0;
}

struct rt_transport *rt_transport_mpi_new(const void *comm, int tag, const int *ranks, int n)
{
    struct mpi_transport *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->base.ops = &mpi_ops;
    m->base.block_bytes = BLOCK_BYTES;
    m->base.at_once_bytes = AT_ONCE_BYTES;
    m->tag = tag;
    memcpy(&m->comm, comm, sizeof m->comm);
    int error = set_ranks(m, ranks, n);
    if (!error)
        return &m->base;
    free(m->ranks);
    free(m);
    errno = error;
    return NULL;
}

void rt_transport_mpi_free(struct rt_transport *t)
{
    if (!t)
        return;
    rt_transport_release(t);
    free(mpi_of(t)->ranks);
    free(mpi_of(t));
}
