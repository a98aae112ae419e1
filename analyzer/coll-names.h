/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll-names.h - what a collective is, by its name: MPI_Iallgatherv, ncclAllReduce, allreduce_.
 *
 * Captures name their operations, so that one written by a later tracer, or by another tool, can be
 * understood without its table.
 */
#ifndef RS_ANALYZER_COLL_NAMES_H
#define RS_ANALYZER_COLL_NAMES_H

#include <glib.h>

#include "ops.h"

G_BEGIN_DECLS

/* RS_COLL_NONE where the name is none of a collective. *ret_vector (may be NULL): every rank may
 * pass a size of its own (-v and -w forms, MPI_Reduce_scatter). */
enum rs_coll rs_coll_of_name(const gchar *name, gboolean *ret_vector);

G_END_DECLS
#endif
