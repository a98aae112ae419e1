/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.h - what lies under the pointer.
 *
 * Slices thinner than a pixel are drawn a pixel wide, so they are found there too; where several
 * share the pixels around the pointer, the one that covers it wins, then the longest.
 */
#ifndef RS_VIEWER_PICK_H
#define RS_VIEWER_PICK_H

#include "axis.h"
#include "layout.h"

G_BEGIN_DECLS

/* x from the first pixel of the axis, y from the top of the layout. Returns an event, RS_NONE. */
guint32 rs_pick_event(const RsLayout *layout, const RsAxis *axis, gdouble x, gint y);
/* The same within one row. */
guint32 rs_pick_in_row(const RsRows *rows, const RsRow *row, const RsAxis *axis, gdouble x);

G_END_DECLS
#endif
