/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture-writer.h - writes small captures by hand, after schemas/rsc.h and nothing else: what the
 * reader is tested against must not come from the tracer or from the reader's own code.
 */
#ifndef RS_TESTS_CAPTURE_WRITER_H
#define RS_TESTS_CAPTURE_WRITER_H

#include <glib.h>

#include "rsc.h"

G_BEGIN_DECLS

/* Operations that cw_standard_defs defines; numbers of the tests' own. */
enum cw_op {
    CW_ALLREDUCE = 200,
    CW_IALLREDUCE,
    CW_BCAST,
    CW_SEND,
    CW_ISEND,
    CW_RECV,
    CW_IRECV,
    CW_SENDRECV,
    CW_WAIT,
    CW_BARRIER,
    CW_ALLGATHER,
    CW_REDUCE_SCATTER,
    CW_NCCL_ALLREDUCE,
};

typedef struct {
    GByteArray *bytes;   /* the file so far */
    GByteArray *payload; /* of the block being made */
    guint32 sequence;
    guint32 strings; /* ids given */
} CwFile;

CwFile *cw_new(void);
void cw_free(CwFile *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CwFile, cw_free)

/* A block of what was put since the last one. */
void cw_block(CwFile *f, guint16 kind, guint32 thread, guint32 flags);
/* META: key, value, ..., NULL; makes the block. */
void cw_meta(CwFile *f, ...) G_GNUC_NULL_TERMINATED;
/* META that every capture of a test run has: rank, world size, host, domain, ticks of `hz`. */
void cw_process(CwFile *f, gint32 rank, gint32 world_size, const gchar *host, const gchar *domain,
                gint64 pid, const gchar *hz);

/* Into the payload, before cw_block. */
guint32 cw_string(CwFile *f, const gchar *text); /* a DEFS record; returns its id */
void cw_comm(CwFile *f, guint32 id, guint64 identity, gint32 rank, gint32 size,
             const gint32 *members, guint32 api);
void cw_dtype(CwFile *f, guint32 id, const gchar *name, guint64 size);
void cw_op(CwFile *f, guint16 op, const gchar *name, guint16 klass, guint16 api);
/* All of enum cw_op, dtype 1 = MPI_FLOAT, 2 = MPI_BYTE, redop 1 = MPI_SUM, comm 1 = the world of
 * `size` (identity 0xabc) with this rank; makes the block. */
void cw_standard_defs(CwFile *f, gint32 rank, gint32 size);
void cw_anchor(CwFile *f, guint64 tick, guint64 monotonic_ns, guint64 realtime_ns, guint32 spread);
void cw_probe(CwFile *f, gint32 peer, guint64 sent, guint64 peer_received, guint64 peer_sent,
              guint64 received);
void cw_event(CwFile *f, struct rs_event e);
void cw_request(CwFile *f, guint64 request);
void cw_done(CwFile *f, guint64 request, gint32 source, gint32 tag);
void cw_status(CwFile *f, gint32 source, gint32 tag, guint64 bytes);
void cw_second(CwFile *f, gint32 source, gint32 tag, guint64 count, guint32 dtype);
void cw_put(CwFile *f, const void *record, gsize bytes);
void cw_end(CwFile *f, enum rs_end_reason reason, guint64 tick, guint64 events, guint64 dropped);

/* Writes the file into `folder`. Returned: its path, free it. */
gchar *cw_save(const CwFile *f, const gchar *folder, const gchar *name);

/* A folder for a test, and its end. */
gchar *cw_make_folder(void);
void cw_remove_folder(const gchar *folder);
/* The same as cmocka's setup and teardown of one test, whose state is the folder. */
int cw_setup(void **state);
int cw_teardown(void **state);

G_END_DECLS
#endif
