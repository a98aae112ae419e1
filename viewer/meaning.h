/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meaning.h - what a slice stands for, and the colour that says so.
 *
 * Colours follow meaning, not names: communication is blue (collectives), green (messages) or
 * purple (on the device), waiting inside any of them is orange, what the program does itself is
 * pale. The strong ones are of the Okabe-Ito set, which colour-blind people tell apart.
 */
#ifndef RS_VIEWER_MEANING_H
#define RS_VIEWER_MEANING_H

#include "model.h"

G_BEGIN_DECLS

typedef enum {
    RS_MEANS_STEP,  /* a range that is a training step */
    RS_MEANS_RANGE, /* the program's own ranges */
    RS_MEANS_SPAN,  /* phases that overlap: the runtime's tensors */
    RS_MEANS_AGREE, /* of them: until all ranks have the tensor */
    RS_MEANS_WAIT,  /* for others, inside a collective or message */
    RS_MEANS_COLLECTIVE,
    RS_MEANS_MESSAGE,
    RS_MEANS_DEVICE,
    RS_MEANS_CALL, /* other calls: init, communicators, groups */
    RS_MEANS_IO,
    RS_MEANS_MARK,
    RS_MEANS_HOLE, /* events were lost here */
    RS_MEANS_COUNT,
} RsMeaning;

RsMeaning rs_meaning_of(const RsModel *model, guint32 event);
const gchar *rs_meaning_name(RsMeaning meaning); /* for legend and details */
guint32 rs_meaning_rgb(RsMeaning meaning);       /* 0xRRGGBB */
/* Ranges of different names get shades of their colour, so that neighbours are told apart. */
guint32 rs_meaning_event_rgb(const RsModel *model, guint32 event, RsMeaning meaning);
/* White or near black, whichever reads better on `rgb`. */
guint32 rs_meaning_ink(guint32 rgb);

G_END_DECLS
#endif
