/* SPDX-License-Identifier: Apache-2.0 */
/*
 * details.h - what is known of an event, of a finding and of what is missing, in words.
 *
 * Names come from traced programs: everything here is escaped, fit for a label.
 */
#ifndef RS_VIEWER_DETAILS_H
#define RS_VIEWER_DETAILS_H

#include "scene.h"

G_BEGIN_DECLS

typedef struct {
    gchar *key, *value;
} RsDetail;

/* RsDetail, first the name. Returned: unref it. */
GPtrArray *rs_details_of_event(const RsScene *scene, guint32 event);
/* "MPI_Allreduce, 1.2 ms" and what matters beside it, some short lines. Returned: free it. */
gchar *rs_details_dup_tooltip(const RsScene *scene, guint32 event);
/* Returned: free it. */
gchar *rs_details_dup_finding_cost(const RsFinding *finding);
/* Why the picture is not whole, a line each: warnings and ranks' notes. Returned: unref it. */
GPtrArray *rs_details_warnings(const RsScene *scene);

G_END_DECLS
#endif
