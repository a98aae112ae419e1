/* SPDX-License-Identifier: Apache-2.0 */
#include "coll-names.h"

#include <string.h>

/* Longer names before those they begin with. */
static const struct {
    const gchar *name; /* lower case, without underscores */
    guint8 coll;
    guint8 vector;
} stems[] = {
    {"allreduce", RS_COLL_ALLREDUCE, 0},
    {"allgatherv", RS_COLL_ALLGATHER, 1},
    {"allgather", RS_COLL_ALLGATHER, 0},
    {"alltoallv", RS_COLL_ALLTOALL, 1},
    {"alltoallw", RS_COLL_ALLTOALL, 1},
    {"alltoall", RS_COLL_ALLTOALL, 0},
    {"reducescatterblock", RS_COLL_REDUCE_SCATTER, 0},
    {"reducescatter", RS_COLL_REDUCE_SCATTER, 1},
    {"reduce", RS_COLL_REDUCE, 0},
    {"broadcast", RS_COLL_BROADCAST, 0},
    {"bcast", RS_COLL_BROADCAST, 0},
    {"barrier", RS_COLL_BARRIER, 0},
    {"gatherv", RS_COLL_GATHER, 1},
    {"gather", RS_COLL_GATHER, 0},
    {"scatterv", RS_COLL_SCATTER, 1},
    {"scatter", RS_COLL_SCATTER, 0},
    {"exscan", RS_COLL_SCAN, 0},
    {"scan", RS_COLL_SCAN, 0},
};

/* Lower case, without underscores and without the library's prefix. */
static void reduce_name(const gchar *name, gchar *out, gsize size, gboolean *ret_mpi)
{
    *ret_mpi = g_ascii_strncasecmp(name, "MPI_", 4) == 0;
    gboolean other = g_ascii_strncasecmp(name, "nccl", 4) == 0 || g_str_has_prefix(name, "gloo");
    name += *ret_mpi || other ? 4 : 0;
    gsize n = 0;
    for (; *name && n + 1 < size; name++)
        if (*name != '_')
            out[n++] = g_ascii_tolower(*name);
    out[n] = '\0';
}

static gint find_stem(const gchar *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(stems); i++)
        if (strcmp(name, stems[i].name) == 0)
            return (gint)i;
    return -1;
}

enum rs_coll rs_coll_of_name(const gchar *name, gboolean *ret_vector)
{
    gchar plain[64];
    gboolean mpi;
    reduce_name(name, plain, sizeof plain, &mpi);
    gint stem = find_stem(plain);
    if (stem < 0 && mpi && plain[0] == 'i')
        stem = find_stem(plain + 1);
    if (stem < 0 && mpi && g_str_has_prefix(plain, "start"))
        stem = find_stem(plain + strlen("start"));
    if (ret_vector) /* ncclReduceScatter's ranks all get the same share, MPI's need not */
        *ret_vector =
            stem >= 0 && stems[stem].vector && (mpi || stems[stem].coll != RS_COLL_REDUCE_SCATTER);
    return stem >= 0 ? (enum rs_coll)stems[stem].coll : RS_COLL_NONE;
}
