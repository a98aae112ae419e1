/* SPDX-License-Identifier: Apache-2.0 */
#include "run-reading.h"

#define READ_SHARE 0.8 /* of the time that opening a run takes */

void rs_run_reading_init(RsRunReading *r, RsProgress progress, gpointer data)
{
    *r = (RsRunReading){.progress = progress, .data = data};
    r->b = rs_builder_new();
    r->left_out = rs_left_out_new();
}

void rs_run_reading_clear(RsRunReading *r)
{
    g_ptr_array_unref(r->left_out);
    g_clear_pointer(&r->b, rs_builder_free);
}

static void pass_progress(gdouble share, const gchar *what, gpointer data)
{
    RsRunReading *r = data;
    gdouble done = (gdouble)r->bytes_done + share * (gdouble)r->current_bytes;
    r->progress(done / (gdouble)MAX(r->bytes, 1) * READ_SHARE, what, r->data);
}

RsProgress rs_run_reading_progress(const RsRunReading *r)
{
    return r->progress ? pass_progress : NULL;
}

gboolean rs_run_reading_all(RsRunReading *r, const GPtrArray *files, RsRunFileRead read,
                            gpointer reader, GError **error)
{
    guint good = 0;
    g_autoptr(GError) first = NULL;
    for (guint i = 0; i < files->len; i++)
        r->bytes += ((const RsRunFile *)g_ptr_array_index(files, i))->bytes;
    for (guint i = 0; i < files->len; i++) {
        const RsRunFile *f = g_ptr_array_index(files, i);
        g_autoptr(GError) cause = NULL;
        r->current_bytes = f->bytes;
        if (read(reader, i, &cause))
            good++;
        else
            rs_left_out_add(r->left_out, f->path, rs_left_out_reason(cause, f->path));
        if (cause && !first)
            first = g_steal_pointer(&cause);
        r->bytes_done += f->bytes;
    }
    if (good == 0)
        g_propagate_error(error, g_steal_pointer(&first));
    return good > 0;
}

RsModel *rs_run_reading_finish(RsRunReading *r, gboolean alone)
{
    if (r->progress)
        r->progress(READ_SHARE, "matching", r->data);
    return rs_builder_finish(g_steal_pointer(&r->b), alone ? RS_FINISH_NO_MISSING : RS_FINISH_ALL);
}
