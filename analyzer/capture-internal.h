/* SPDX-License-Identifier: Apache-2.0 */
/* capture-internal.h - a capture being read: its definitions, threads and losses. */
#ifndef RS_ANALYZER_CAPTURE_INTERNAL_H
#define RS_ANALYZER_CAPTURE_INTERNAL_H

#include "capture.h"

G_BEGIN_DECLS

typedef struct {
    guint32 comm; /* RsComm index */
    gint32 rank;  /* own rank in it */
    gint32 size;
    guint64 identity;
    gint32 device;   /* NCCL: CUDA's number of it, else -1 */
    gboolean shared; /* another communicator of this process has the same identity */
} RsCaptureComm;

typedef struct {
    RsStr name;
    guint64 size_bytes;
} RsCaptureType;

typedef struct {
    RsStr name;
    guint16 klass, api;
} RsCaptureOp;

typedef struct {
    guint32 track, device_track; /* builder's, RS_NONE until its first event */
    guint64 tid;
    RsStr name;
    guint64 dropped;   /* as its last block says */
    gboolean has_open; /* `open` is the last OPEN block, still true as far as we know */
    struct rs_open open;
} RsCaptureThread;

typedef struct RsCaptureDevices RsCaptureDevices; /* capture-device.c */

#define RS_SIG_CACHE 512 /* direct-mapped */

/* What a signature is made of, as recorded. */
typedef struct {
    guint16 op, flags;
    gint32 peer;
    guint64 count;
    guint32 comm, dtype, tag, redop;
    guint64 second_count; /* G_MAXUINT64 none */
    guint32 second_dtype;
    guint32 spare;
} RsSigKey;

typedef struct {
    RsBuilder *b;
    RsProcess *p;
    const gchar *path;
    guint32 process;
    RsCaptureDevices *devices; /* NULL: nothing of devices so far */
    GHashTable *identities;    /* of communicators: -> the first RsCaptureComm */
    GHashTable *strings, *comms, *dtypes, *redops, *ops, *threads; /* by id or number */
    struct {
        RsSigKey key;
        guint32 sig;
        gboolean used;
    } cache[RS_SIG_CACHE];
    guint64 last_tick;
    guint64 unknown_blocks, stray_slots, unknown_ops, unknown_defs, bad_times, holes, left_out;
    gboolean has_end;
    struct rs_end end;
    GArray *switches; /* struct rs_switch */
} RsCapture;

/* capture-defs.c */
void rs_capture_read_defs(RsCapture *c, const guint8 *payload, gsize bytes, guint64 offset);
RsCaptureThread *rs_capture_thread(RsCapture *c, guint32 number);
/* NULL where the definition was lost. */
const RsCaptureComm *rs_capture_comm(const RsCapture *c, guint32 id);
RsStr rs_capture_string(const RsCapture *c, guint32 id);
RsCaptureType rs_capture_type(const RsCapture *c, guint32 id);
void rs_capture_init_tables(RsCapture *c);
void rs_capture_clear_tables(RsCapture *c);

/* capture-events.c */
void rs_capture_read_events(RsCapture *c, const struct rs_block *head, const guint8 *payload);
void rs_capture_read_open(RsCapture *c, const struct rs_block *head, const guint8 *payload);
void rs_capture_add_open(RsCapture *c);
/* The thread's track, or that of what it told of devices; made at first use. */
guint32 rs_capture_track(RsCapture *c, RsCaptureThread *t, guint32 number, gboolean device);
/* Adds a call; returns the builder's event. */
guint32 rs_capture_add_call(RsCapture *c, guint32 track, const struct rs_event *e,
                            guint16 more_flags);
/* A mark where the process was last seen alive: the rank goes on up to there. */
void rs_capture_mark_end(RsCapture *c, guint64 tick);

/* capture-device.c */
/* Keeps what CUPTI told; FALSE: it lacks its extension. */
gboolean rs_capture_keep_activity(RsCapture *c, const struct rs_range_event *e, const guint8 *ext,
                                  guint n_ext, guint16 more_flags);
/* Notes a call that may have made a device do something; `event` is the builder's. */
void rs_capture_keep_call(RsCapture *c, const RsCaptureThread *t, const struct rs_event *e,
                          const guint8 *ext, guint n_ext, guint32 event, guint16 more_flags);
/* Once all is read: makes events of it. */
void rs_capture_place_activities(RsCapture *c);
void rs_capture_devices_free(RsCaptureDevices *d); /* NULL-safe */

/* capture-switches.c */
void rs_capture_read_switches(RsCapture *c, const guint8 *payload, gsize bytes);
void rs_capture_add_off(RsCapture *c); /* once all is read */

/* capture-sig.c: signature of a call; `second` may be NULL. */
guint32 rs_capture_call_sig(RsCapture *c, const struct rs_event *e,
                            const struct rs_ext_second *second);

G_END_DECLS
#endif
