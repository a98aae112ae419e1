/* SPDX-License-Identifier: Apache-2.0 */
/* align.c - all times on one axis that begins at the first event. */
#include "model-internal.h"

void rs_align_ticks(RsBuilder *b)
{
}

void rs_align_domains(RsBuilder *b)
{
}

void rs_align_base(RsBuilder *b)
{
    RsEvents *e = &b->model->events;
    gint64 base = e->n ? e->start_ns[0] : 0;
    for (guint32 i = 0; i < e->n; i++)
        base = MIN(base, e->start_ns[i]);
    for (guint32 i = 0; i < e->n; i++) {
        e->start_ns[i] -= base;
        e->end_ns[i] -= base;
    }
}
