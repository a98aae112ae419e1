/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace-ranks.h - which rank a file is of, by its name: "rank-0.json.gz", "trace_rank12.json",
 * "worker3.pt.trace.json"; by its folder's, "rank0/trace.json"; or the one number in which the
 * names of several files differ.
 *
 * What a file says of itself goes before its name; this is for those that say nothing.
 */
#ifndef RS_ANALYZER_TRACE_RANKS_H
#define RS_ANALYZER_TRACE_RANKS_H

#include <glib.h>

G_BEGIN_DECLS

/* The rank that the name itself tells; -1 none. */
gint32 rs_trace_rank_of_name(const gchar *path);
/* The same of any text: "rank 2 (host1:4242)". */
gint32 rs_trace_rank_of_text(const gchar *text);
/* Of `n` files that are read together: the rank of each, -1 unknown. Two may get the same, as
 * "a/t0" and "b/t0" do: a rank may have files of different times. Returned: free it. */
gint32 *rs_trace_ranks_new(const gchar *const *paths, guint n);

G_END_DECLS
#endif
