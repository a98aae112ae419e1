/* SPDX-License-Identifier: Apache-2.0 */
/* capture-switches.c - when a process's capture was off: holes of its own kind on its first track.
 */
#include "capture-internal.h"

#include <string.h>

void rs_capture_read_switches(RsCapture *c, const guint8 *payload, gsize bytes)
{
    for (gsize at = 0; at + sizeof(struct rs_switch) <= bytes; at += sizeof(struct rs_switch)) {
        struct rs_switch s;
        memcpy(&s, payload + at, sizeof s);
        g_array_append_val(c->switches, s);
    }
}

/* One may stand there twice, where its process died as it was written. */
static gint compare_switches(gconstpointer a, gconstpointer b)
{
    const struct rs_switch *x = a, *y = b;
    if (x->tick != y->tick)
        return x->tick < y->tick ? -1 : 1;
    return (gint)x->on - (gint)y->on;
}

static void add_off(RsCapture *c, guint64 from, guint64 to)
{
    RsSig s = rs_builder_sig_init(c->b, RS_KIND_HOLE, RS_HOLE_OFF);
    guint32 track = rs_capture_track(c, rs_capture_thread(c, 0), 0, FALSE);
    rs_builder_event(c->b, track, rs_builder_sig(c->b, &s), (gint64)from, (gint64)to, 0, 0, 0);
}

void rs_capture_add_off(RsCapture *c)
{
    guint64 off = 0;
    g_array_sort(c->switches, compare_switches);
    for (guint i = 0; i < c->switches->len; i++) {
        const struct rs_switch *s = &g_array_index(c->switches, struct rs_switch, i);
        if (s->on && off)
            add_off(c, off, s->tick);
        off = s->on ? 0 : off ? off : s->tick;
    }
    if (off)
        add_off(c, off, MAX(off, c->last_tick));
}
