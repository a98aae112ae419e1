/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - the words for kinds of events and for libraries: the same in options, reports, exports
 * and the tables enum_*. Collectives' are in ops.h, endings' in analyses/endings.h. */
#ifndef RS_ANALYZER_NAMES_H
#define RS_ANALYZER_NAMES_H

#include "model.h"

G_BEGIN_DECLS

const gchar *rs_kind_name(guint8 kind); /* RsKind: "call", "device", ...; a hole's is "lost" */
const gchar *rs_api_name(guint8 api);   /* enum rs_op_api: "MPI", "NCCL", ...; "none" */
/* RsKind of such a word, -1 where it is none. */
gint rs_kind_of_name(const gchar *name);

G_END_DECLS
#endif
