/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-groups.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt-transport-mpi.h"

#define TAG_ALL    1
#define TAG_ACROSS 2

struct comms {
    MPI_Comm all, local, across, control;
};

static int begin_mpi(struct rt_groups *g, char *message, size_t message_bytes)
{
    int initialized = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialized);
    g->owns_mpi = !initialized;
    if (initialized)
        MPI_Query_thread(&provided);
    else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        provided = MPI_THREAD_SINGLE;
    if (provided >= (initialized ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED))
        return 0;
    snprintf(message, message_bytes, "%s",
             initialized ? "the program has initialised MPI without MPI_THREAD_MULTIPLE"
                         : "MPI_Init_thread failed or gives no MPI_THREAD_FUNNELED");
    return -ENOTSUP;
}

static void host_name(char name[RT_HOST_MAX])
{
    const char *given = getenv("RT_HOST");
    memset(name, 0, RT_HOST_MAX);
    if (given && *given)
        snprintf(name, RT_HOST_MAX, "%s", given);
    else
        gethostname(name, RT_HOST_MAX - 1);
}

static int find_topology(struct rt_groups *g)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char mine[RT_HOST_MAX], (*hosts)[RT_HOST_MAX] = calloc((size_t)size, RT_HOST_MAX);
    if (!hosts)
        return -ENOMEM;
    host_name(mine);
    int error = MPI_Allgather(mine, RT_HOST_MAX, MPI_CHAR, hosts, RT_HOST_MAX, MPI_CHAR,
                              MPI_COMM_WORLD) == MPI_SUCCESS
                    ? 0
                    : -EIO;
    if (!error)
        g->topology = rt_topology_of((const char(*)[RT_HOST_MAX])hosts, rank, size);
    free(hosts);
    return error;
}

static int make_comms(struct rt_groups *g, struct comms *c)
{
    const struct rt_topology *t = &g->topology;
    int leader = t->local_rank == 0 ? 0 : MPI_UNDEFINED;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &c->all) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &c->control) != MPI_SUCCESS ||
        MPI_Comm_split(MPI_COMM_WORLD, t->host, t->rank, &c->local) != MPI_SUCCESS ||
        MPI_Comm_split(MPI_COMM_WORLD, t->even ? t->local_rank : leader, t->host, &c->across) !=
            MPI_SUCCESS)
        return -EIO;
    MPI_Comm_set_errhandler(c->all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(c->control, MPI_ERRORS_RETURN);
    if (c->across != MPI_COMM_NULL)
        MPI_Comm_set_errhandler(c->across, MPI_ERRORS_RETURN);
    return 0;
}

static int make_transports(struct rt_groups *g, const struct comms *c)
{
    g->control = rt_control_new(&c->control);
    g->all = rt_transport_mpi_new(&c->all, TAG_ALL);
    if (c->across != MPI_COMM_NULL)
        g->across = rt_transport_mpi_new(&c->across, TAG_ACROSS);
    return g->control && g->all && (g->across || c->across == MPI_COMM_NULL) ? 0 : -ENOMEM;
}

/* The id, or that there is none, from local rank 0: all ranks of the host agree. */
static int make_inside(struct rt_groups *g, const struct comms *c)
{
    const struct rt_topology *t = &g->topology;
    struct {
        int error;
        struct rt_inside_id id;
    } told = {0};
    if (t->local_size == 1)
        return 0;
    if (t->local_rank == 0)
        told.error = rt_inside_make_id(&told.id);
    MPI_Bcast(&told, sizeof told, MPI_BYTE, 0, c->local);
    if (told.error)
        return told.error;
    g->inside = rt_inside_new(&told.id, t->local_rank, t->local_size);
    return g->inside ? 0 : -EIO;
}

int rt_groups_init(struct rt_groups *g, bool hierarchical, char *message, size_t message_bytes)
{
    memset(g, 0, sizeof *g);
    int error = begin_mpi(g, message, message_bytes);
    struct comms *c = error ? NULL : malloc(sizeof *c);
    if (error || !c)
        return error ? error : -ENOMEM;
    *c = (struct comms){MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    g->comms = c;
    error = find_topology(g);
    if (!error)
        error = make_comms(g, c);
    if (!error)
        error = make_transports(g, c);
    if (error) {
        snprintf(message, message_bytes, "can't set up MPI's communicators: %s", strerror(-error));
        return error;
    }
    error = hierarchical ? make_inside(g, c) : 0;
    if (error)
        snprintf(message, message_bytes, "can't set up NCCL inside the host: %s",
                 rt_inside_error());
    return error;
}

static void free_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

void rt_groups_release(struct rt_groups *g)
{
    struct comms *c = g->comms;
    rt_inside_free(g->inside);
    rt_transport_mpi_free(g->across);
    rt_transport_mpi_free(g->all);
    rt_control_free(g->control);
    if (c) {
        free_comm(&c->across);
        free_comm(&c->local);
        free_comm(&c->control);
        free_comm(&c->all);
        free(c);
    }
    if (g->owns_mpi)
        MPI_Finalize();
    memset(g, 0, sizeof *g);
}
