/* SPDX-License-Identifier: Apache-2.0 */
#include "identity.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

/* World ranks of `group`, appended; the group is freed. */
static int append_ranks(struct rs_mpi_members *m, MPI_Group group, MPI_Group world)
{
    int n, r = -EIO;
    int32_t *ranks = NULL;
    int *numbers = NULL;
    if (rs_mpi_real.Group_size(group, &n) != MPI_SUCCESS)
        goto out;
    ranks = realloc(m->ranks, (size_t)(m->size + n + 1) * sizeof *ranks);
    numbers = malloc((size_t)(n + 1) * sizeof *numbers);
    if (ranks)
        m->ranks = ranks;
    if (!ranks || !numbers)
        goto out;
    for (int i = 0; i < n; i++)
        numbers[i] = i;
    int *world_ranks = m->ranks + m->size;
    if (rs_mpi_real.Group_translate_ranks(group, n, numbers, world, world_ranks) != MPI_SUCCESS)
        goto out;
    for (int i = 0; i < n; i++)
        world_ranks[i] = world_ranks[i] == MPI_UNDEFINED ? -1 : world_ranks[i];
    m->size += n;
    r = 0;
out:
    free(numbers);
    rs_mpi_real.Group_free(&group);
    return r;
}

static int append_group(struct rs_mpi_members *m, MPI_Comm comm, bool remote, MPI_Group world)
{
    MPI_Group group;
    int r =
        remote ? rs_mpi_real.Comm_remote_group(comm, &group) : rs_mpi_real.Comm_group(comm, &group);
    return r == MPI_SUCCESS ? append_ranks(m, group, world) : -EIO;
}

static int32_t lowest(const int32_t *ranks, int32_t n)
{
    int32_t low = INT32_MAX;
    for (int32_t i = 0; i < n; i++)
        low = ranks[i] < low ? ranks[i] : low;
    return low;
}

static void swap_groups(struct rs_mpi_members *m, int32_t local)
{
    int32_t *turned = malloc((size_t)m->size * sizeof *turned);
    if (!turned)
        return;
    int32_t remote = m->size - local;
    memcpy(turned, m->ranks + local, (size_t)remote * sizeof *turned);
    memcpy(turned + remote, m->ranks, (size_t)local * sizeof *turned);
    free(m->ranks);
    m->ranks = turned;
    m->own += remote;
    m->local_first = false;
}

static int find_members(MPI_Comm comm, MPI_Group world, struct rs_mpi_members *m)
{
    int inter = 0;
    if (rs_mpi_real.Comm_rank(comm, &m->own) || rs_mpi_real.Comm_test_inter(comm, &inter) ||
        append_group(m, comm, false, world))
        return -EIO;
    m->inter = inter;
    m->local_first = true;
    int32_t local = m->size;
    if (inter && append_group(m, comm, true, world))
        return -EIO;
    if (inter && lowest(m->ranks + local, m->size - local) < lowest(m->ranks, local))
        swap_groups(m, local);
    return 0;
}

static int find_world(MPI_Group *ret)
{
    if (!rs_mpi_has_world())
        return rs_mpi_session_world(ret);
    return rs_mpi_real.Comm_group(rs_mpi_predefined.world, ret) == MPI_SUCCESS ? 0 : -EIO;
}

int rs_mpi_members_of(MPI_Comm comm, struct rs_mpi_members *ret)
{
    struct rs_mpi_members m = {0};
    MPI_Group world;
    if (find_world(&world))
        return -EIO;
    int r = find_members(comm, world, &m);
    rs_mpi_real.Group_free(&world);
    if (r)
        rs_mpi_members_clear(&m);
    else
        *ret = m;
    return r;
}

void rs_mpi_members_clear(struct rs_mpi_members *m)
{
    free(m->ranks);
    *m = (struct rs_mpi_members){0};
}

static int compare_ranks(const void *a, const void *b)
{
    int32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static uint64_t mix_members(uint64_t h, const struct rs_mpi_members *m)
{
    int32_t *sorted = malloc((size_t)(m->size + 1) * sizeof *sorted);
    if (!sorted)
        return h;
    memcpy(sorted, m->ranks, (size_t)m->size * sizeof *sorted);
    qsort(sorted, (size_t)m->size, sizeof *sorted, compare_ranks);
    h = rs_hash_mix(h, (uint64_t)m->size);
    for (int32_t i = 0; i < m->size; i++)
        h = rs_hash_mix(h, (uint64_t)(int64_t)sorted[i]);
    free(sorted);
    return h;
}

uint64_t rs_mpi_identity_of_world(void)
{
    MPI_Comm parent = rs_mpi_predefined.comm_null;
    if (rs_mpi_has_world())
        rs_mpi_real.Comm_get_parent(&parent);
    bool spawned = rs_mpi_handle(parent) != rs_mpi_handle(rs_mpi_predefined.comm_null);
    return rs_hash_mix(rs_core->run_hash(), spawned);
}

uint64_t rs_mpi_identity_of_child(uint64_t parent, uint32_t child, int colour,
                                  const struct rs_mpi_members *m)
{
    uint64_t h = rs_hash_mix(parent, child);
    return mix_members(rs_hash_mix(h, (uint64_t)(int64_t)colour), m);
}

/* How often each group identity was given. A list: programs make few such communicators. */
static uint64_t times_given(uint64_t h)
{
    static struct given {
        struct given *next;
        uint64_t hash, times;
    } * all;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint64_t times = 0;
    pthread_mutex_lock(&lock);
    struct given *g = all;
    while (g && g->hash != h)
        g = g->next;
    if (!g && (g = malloc(sizeof *g))) {
        *g = (struct given){.next = all, .hash = h};
        all = g;
    }
    if (g)
        times = g->times++;
    pthread_mutex_unlock(&lock);
    return times;
}

uint64_t rs_mpi_identity_of_group(uint64_t seed, int colour, const struct rs_mpi_members *m)
{
    uint64_t h = rs_hash_mix(rs_hash_mix(seed, 0x67726f7570), (uint64_t)(int64_t)colour);
    h = mix_members(h, m);
    return rs_hash_mix(h, times_given(h));
}
