/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-place-names.h - the launchers' variables for a rank and the number of ranks, as the tracer and
 * on-hosts look for them: the first row that is set counts.
 */
#ifndef RT_PLACE_NAMES_H
#define RT_PLACE_NAMES_H

static const struct rt_place_names {
    const char *mark; /* the row counts only where this is set; NULL always */
    const char *rank, *size;
    const char *old_size; /* in place of `size` from a launcher that hasn't that one; NULL none */
} rt_place_names[] = {
    {.rank = "RT_RANK", .size = "RT_SIZE"},
    /* a task of another launcher's on each host, it has set both for its workers */
    {.mark = "TORCHELASTIC_RUN_ID", .rank = "RANK", .size = "WORLD_SIZE"},
    {.rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE"},
    {.rank = "PMI_RANK", .size = "PMI_SIZE"},
    {.rank = "SLURM_PROCID", .size = "SLURM_NTASKS", .old_size = "SLURM_NPROCS"},
    {.rank = "RANK", .size = "WORLD_SIZE"},
};
enum { RT_PLACE_NAMES = sizeof rt_place_names / sizeof *rt_place_names };

#endif
