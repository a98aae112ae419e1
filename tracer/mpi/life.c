/* SPDX-License-Identifier: Apache-2.0 */
/* life.c - the beginning and the end of MPI in this process. */
#include <errno.h>
#include <pthread.h>

#include "clock-probe.h"
#include "record.h"

enum life { UNSEEN, LIVE, OVER };
static enum life life; /* atomic */

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
    __atomic_and_fetch(rs_core->end_flags, ~(uint32_t)RS_END_MPI_LIVE, __ATOMIC_RELAXED);
    __atomic_store_n(&life, OVER, __ATOMIC_RELEASE);
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

static bool mpi_works(void)
{
    int begun = 0, over = 0;
    rs_mpi_real.Initialized(&begun);
    rs_mpi_real.Finalized(&over);
    return begun && !over;
}

/* Once: what each process can do for itself. */
static bool begin(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    bool first = life == UNSEEN && mpi_works();
    if (first) {
        int rank = -1, size = 0;
        rs_mpi_real.Comm_rank(rs_mpi_predefined.world, &rank);
        rs_mpi_real.Comm_size(rs_mpi_predefined.world, &size);
        rs_core->set_rank(rank, size);
        watch_the_end();
        __atomic_or_fetch(rs_core->end_flags, RS_END_MPI_LIVE, __ATOMIC_RELAXED);
        __atomic_store_n(&life, LIVE, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return first;
}

bool rs_mpi_is_live(struct rs_thread *t)
{
    (void)t;
    enum life now = __atomic_load_n(&life, __ATOMIC_ACQUIRE);
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

void rs_mpi_before_abort(void)
{
    int saved = errno;
    rs_core->flush(RS_END_ABORT);
    errno = saved;
}
