/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients by MPI alone: blocking, one by one, after the backward pass; and messages. */
#include <mpi.h>
#include <stdlib.h>

#include "paced.h"

static MPI_Comm sharing; /* the ranks of this rank's stage: they have the same tensors */
static struct paced_tensor **handed_over;
static unsigned handed_over_count;

static void begin(struct paced *p, int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->size);
    if (p->stages > 1)
        MPI_Comm_split(MPI_COMM_WORLD, p->rank % p->stages, p->rank, &sharing);
    else
        sharing = MPI_COMM_WORLD;
}

static void hand_over(struct paced *p, struct paced_tensor *t)
{
    if (!handed_over && !(handed_over = calloc(p->n, sizeof(struct paced_tensor *))))
        paced_die(p, "allreduce", "no memory");
    handed_over[handed_over_count++] = t;
}

static void average(struct paced *p, struct paced_tensor *t, const struct rt_fault *wrong)
{
    int count = (int)t->count, size;
    MPI_Datatype type = MPI_FLOAT;
    MPI_Op op = MPI_SUM;
    if (wrong) {
        count -= wrong->what == RT_FAULT_COUNT;
        type = wrong->what == RT_FAULT_DTYPE ? MPI_INT : type;
        op = wrong->what == RT_FAULT_OP ? MPI_MAX : op;
    }
    MPI_Comm_size(sharing, &size);
    MPI_Allreduce(MPI_IN_PLACE, t->gradient, count, type, op, sharing);
    for (uint64_t i = 0; i < t->count; i++)
        t->gradient[i] /= (float)size;
}

static void finish(struct paced *p)
{
    const struct rt_fault *wrong = rt_faults_find(&p->faults, RT_FAULT_MISMATCH);
    for (unsigned i = 0; i < handed_over_count; i++)
        average(p, handed_over[i], i == 0 ? wrong : NULL);
    handed_over_count = 0;
}

static int differing(struct paced *p, uint64_t checksum)
{
    unsigned long long first = checksum;
    (void)p;
    MPI_Bcast(&first, 1, MPI_UNSIGNED_LONG_LONG, 0, sharing);
    int differs = checksum != first, sum;
    MPI_Allreduce(&differs, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static void end(struct paced *p)
{
    free(handed_over);
    if (p->stages > 1)
        MPI_Comm_free(&sharing);
    MPI_Finalize();
}

const struct paced_way paced_by_mpi = {
    .has_messages = true,
    .begin = begin,
    .hand_over = hand_over,
    .finish = finish,
    .differing = differing,
    .end = end,
};

/* ---- messages ---- */

void paced_send(struct paced *p, int to)
{
    if (to < 0)
        return;
    rt_faults_send(&p->faults);
    MPI_Send(p->message, (int)p->o.message_bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

void paced_receive(struct paced *p, int from)
{
    if (from >= 0)
        MPI_Recv(p->message, (int)p->o.message_bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Odd ranks receive first, so that it ends. */
void paced_exchange(struct paced *p)
{
    const int next = (p->rank + 1) % p->size, previous = (p->rank + p->size - 1) % p->size;
    if (rt_faults_find(&p->faults, RT_FAULT_DEADLOCK)) {
        MPI_Ssend(p->message, (int)p->o.message_bytes, MPI_BYTE, next, 0, MPI_COMM_WORLD);
        paced_receive(p, previous);
    } else if (p->rank % 2) {
        paced_receive(p, previous);
        paced_send(p, next);
    } else {
        paced_send(p, next);
        paced_receive(p, previous);
    }
}
