/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome-open.h - the slices that have begun and not ended, found by the name of their end.
 *
 * Model: a stack. An end without a name, or with that of the innermost, is the innermost's; any
 * other is that of the innermost of its name. Each costs the same, however many are open: names are
 * looked up only from the first end on that is not the innermost's.
 */
#ifndef RS_READERS_CHROME_OPEN_H
#define RS_READERS_CHROME_OPEN_H

#include "../model.h"

G_BEGIN_DECLS

typedef struct {
    RsStr name;
    guint32 row;   /* the caller's */
    guint32 older; /* the next of this name below it + 1, 0 none; where it is in `names` */
    gboolean ended;
} RsChromeOpenSlice;

typedef struct {
    GArray *slices;    /* RsChromeOpenSlice; the last one is open */
    GHashTable *names; /* RsStr -> the innermost of this name + 1, of the first n_named slices */
    guint n_named;
} RsChromeOpen;

void rs_chrome_open_init(RsChromeOpen *o);
void rs_chrome_open_release(RsChromeOpen *o);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(RsChromeOpen, rs_chrome_open_release)

void rs_chrome_open_push(RsChromeOpen *o, RsStr name, guint32 row);
/* Takes the slice that ends, `name` 0: has none. *ret_inside: others that began in it are open.
 * FALSE: there is none. */
gboolean rs_chrome_open_take(RsChromeOpen *o, RsStr name, guint32 *ret_row, gboolean *ret_inside);
/* Those that are open, one after the other, the innermost last: `*at` is 0 at first. FALSE: no
 * more.
 */
gboolean rs_chrome_open_next(RsChromeOpen *o, guint *at, guint32 *ret_row);
void rs_chrome_open_clear(RsChromeOpen *o);

G_END_DECLS
#endif
