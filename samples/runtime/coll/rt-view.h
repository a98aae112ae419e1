/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-view.h - some ranks of a transport as a transport of their own, numbered anew.
 *
 * Within rt_coll only. A view has the transport's messages, block and scratch: between begin and
 * end the transport itself is not used. Costs nothing to make.
 */
#ifndef RT_VIEW_H
#define RT_VIEW_H

#include "rt-coll.h"

struct rt_view {
    struct rt_transport base;
    struct rt_transport *whole;
    const int *ranks; /* borrowed: of `whole`, by number in the view */
};

/* `rank` is this rank's number among the `size` ranks. */
void rt_view_begin(struct rt_view *v, struct rt_transport *whole, const int *ranks, int size,
                   int rank);
void rt_view_end(struct rt_view *v);

#endif
