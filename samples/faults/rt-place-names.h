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
    {NULL, "RT_RANK", "RT_SIZE", NULL},
    /* a task of another launcher's on each host, it has set both for its workers */
    {"TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", NULL},
    {NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {NULL, "PMI_RANK", "PMI_SIZE", NULL},
    {NULL, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NPROCS"},
    {NULL, "RANK", "WORLD_SIZE", NULL},
};
enum { RT_PLACE_NAMES = sizeof rt_place_names / sizeof *rt_place_names };

#endif
