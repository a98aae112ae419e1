/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - the beginning and the end of MPI in this process. */
#include <errno.h>
#include <pthread.h>

#include "clock-probe.h"
#include "record.h"

enum life { UNSEEN, LIVE, OVER };
static uint32_t life;                /* atomic */
static bool world_begun, world_over; /* the second one atomic */

bool rs_mpi_has_world(void)
{
    int begun = 0, over = 0;
    rs_mpi_real.Initialized(&begun);
    rs_mpi_real.Finalized(&over);
    return begun && !over && !__atomic_load_n(&world_over, __ATOMIC_ACQUIRE);
}

void rs_mpi_life_begins_again(void)
{
    uint32_t was = OVER;
    __atomic_compare_exchange_n(&life, &was, UNSEEN, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Where MPI_COMM_WORLD and sessions are both in use the last of them ends it. */
void rs_mpi_life_ends(void)
{
    if (rs_mpi_has_world() || rs_mpi_sessions_open() > 0)
        return;
    __atomic_and_fetch(rs_core->end_flags, ~(uint32_t)RS_END_MPI_LIVE, __ATOMIC_RELAXED);
    __atomic_store_n(&life, OVER, __ATOMIC_RELEASE);
}

/* Attributes are deleted first thing in MPI_Finalize, whoever calls it and from wherever, while MPI
 * still works. */
static int end_of_mpi(MPI_Comm self, int keyval, void *value, void *extra)
{
    (void)self, (void)keyval, (void)value, (void)extra;
    int saved = errno;
    struct rs_thread *t = rs_self;
    if (t)
        t->depth++;
    rs_mpi_probe_clocks();
    rs_core->flush(RS_END_FINALIZE); /* anchors the clock; the process and its capture go on */
    __atomic_store_n(&world_over, true, __ATOMIC_RELEASE);
    rs_mpi_life_ends();
    if (t)
        t->depth--;
    errno = saved;
    return MPI_SUCCESS;
}

static int copy_nothing(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static void watch_the_end(void)
{
    int keyval;
    if (rs_mpi_real.Comm_create_keyval(copy_nothing, end_of_mpi, &keyval, NULL) == MPI_SUCCESS)
        rs_mpi_real.Comm_set_attr(rs_mpi_predefined.self, keyval, NULL);
}

static void tell_rank_in_world(void)
{
    int rank = -1, size = 0;
    rs_mpi_real.Comm_rank(rs_mpi_predefined.world, &rank);
    rs_mpi_real.Comm_size(rs_mpi_predefined.world, &size);
    rs_core->set_rank(rank, size);
}

static void tell_rank_in_session(void)
{
    MPI_Group all;
    int rank, size;
    if (rs_mpi_session_world(&all))
        return;
    if (rs_mpi_real.Group_rank(all, &rank) == MPI_SUCCESS &&
        rs_mpi_real.Group_size(all, &size) == MPI_SUCCESS && rank >= 0)
        rs_core->set_rank(rank, size);
    rs_mpi_real.Group_free(&all);
}

/* Once each for MPI_COMM_WORLD and, before that, for sessions: what each process can do for itself.
 * Returns whether MPI_COMM_WORLD is new. */
static bool begin(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool world = !world_begun && rs_mpi_has_world();
    bool session = !world && life == UNSEEN && rs_mpi_sessions_open() > 0;
    if (world) {
        world_begun = true;
        tell_rank_in_world();
        watch_the_end();
    } else if (session && !world_begun) {
        tell_rank_in_session();
    }
    if (world || session) {
        __atomic_or_fetch(rs_core->end_flags, RS_END_MPI_LIVE, __ATOMIC_RELAXED);
        __atomic_store_n(&life, LIVE, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return world;
}

bool rs_mpi_is_live(struct rs_thread *t)
{
    (void)t;
    uint32_t now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
    if (RS_UNLIKELY(now == UNSEEN)) {
        begin();
        now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
    }
    return now == LIVE;
}

void rs_mpi_after_init(struct rs_thread *t)
{
    int saved = errno;
    t->depth++;
    if (begin()) {
        rs_mpi_probe_begin();
        rs_mpi_comm(t, rs_mpi_predefined.world);
        rs_mpi_probe_clocks();
    }
    t->depth--;
    errno = saved;
}

void rs_mpi_after_session(struct rs_thread *t)
{
    int saved = errno;
    t->depth++;
    begin();
    t->depth--;
    errno = saved;
}

void rs_mpi_after_last_session(struct rs_thread *t)
{
    int saved = errno;
    t->depth++;
    rs_core->flush(RS_END_FINALIZE);
    t->depth--;
    errno = saved;
}

void rs_mpi_before_abort(void)
{
    int saved = errno;
    rs_core->flush(RS_END_ABORT);
    errno = saved;
}
