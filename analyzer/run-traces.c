/* SPDX-License-Identifier: Apache-2.0 */
#include "run-traces.h"

#include "model-internal.h"
#include "plural.h"
#include "run-reading.h"
#include "trace-ranks.h"

/* A process that was read: of one rank there may be several, but not over the same time. */
typedef struct {
    gint32 rank;
    const gchar *path;
    gint64 first, last; /* by its wall clock, or its own */
    guint older;        /* of `readings`, the one of this rank before it + 1; 0 none */
} Reading;

typedef struct {
    const RsRunFiles *files;
    gint32 *ranks; /* of each, -1 unknown */
    gboolean ranks_given;
    GArray *readings;   /* Reading, of known ranks */
    GHashTable *newest; /* rank -> its last of `readings` + 1 */
    RsRunReading reading;
} Opening;

static void opening_clear(Opening *o)
{
    rs_run_reading_clear(&o->reading);
    g_array_unref(o->readings);
    g_hash_table_unref(o->newest);
    g_free(o->ranks);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opening, opening_clear)

gboolean rs_run_traces_check(const RsRunFiles *files, const RsRunOptions *options, GError **error)
{
    if (!options || options->n_ranks == 0)
        return TRUE;
    if (files->traces->len == 0)
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--rank: for traces of other tools; what Ringscope recorded knows its ranks");
    else if (options->n_ranks != files->traces->len)
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--rank: %u rank%s given for %u file%s: one for each, in their order",
                    options->n_ranks, rs_plural(options->n_ranks), files->traces->len,
                    rs_plural(files->traces->len));
    else
        return TRUE;
    return FALSE;
}

/* ---- ranks that two files claim ---- */

static gint64 wall_offset(const RsProcess *p)
{
    if (p->anchors->len == 0)
        return 0;
    const struct rs_anchor *a = &g_array_index(p->anchors, struct rs_anchor, 0);
    return (gint64)a->realtime_ns - (gint64)a->monotonic_ns;
}

/* What was added since `mark`. */
static GArray *readings_since(const Opening *o, const RsBuilderMark *mark, const gchar *path)
{
    GArray *found = g_array_new(FALSE, TRUE, sizeof(Reading));
    RsBuilder *b = o->reading.b;
    for (guint i = mark->processes; i < b->processes->len; i++) {
        Reading r = {rs_builder_process(b, i)->rank, path, G_MAXINT64, G_MININT64, 0};
        g_array_append_val(found, r);
    }
    for (guint i = mark->events; i < b->events->len; i++) {
        const RsRawEvent *e = &g_array_index(b->events, RsRawEvent, i);
        guint32 process = g_array_index(b->tracks, RsRawTrack, e->track).process;
        Reading *r = &g_array_index(found, Reading, process - mark->processes);
        r->first = MIN(r->first, e->start);
        r->last = MAX(r->last, e->end);
    }
    for (guint i = 0; i < found->len; i++) {
        Reading *r = &g_array_index(found, Reading, i);
        gint64 wall = wall_offset(rs_builder_process(b, mark->processes + i));
        if (r->first > r->last) /* no events */
            continue;
        r->first += wall;
        r->last += wall;
    }
    return found;
}

static guint newest_of(const Opening *o, gint32 rank)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(o->newest, GINT_TO_POINTER(rank)));
}

/* The file that holds the same rank over the same time; NULL. */
static const Reading *find_double(const Opening *o, const GArray *found)
{
    const Reading *twin = NULL, *known;
    for (guint i = 0; i < found->len && !twin; i++) {
        const Reading *r = &g_array_index(found, Reading, i);
        for (guint k = newest_of(o, r->rank); k; k = known->older) {
            known = &g_array_index(o->readings, Reading, k - 1);
            if (r->first < known->last && known->first < r->last)
                twin = known;
        }
    }
    return twin;
}

static void keep_readings(Opening *o, const GArray *found)
{
    for (guint i = 0; i < found->len; i++) {
        Reading r = g_array_index(found, Reading, i);
        if (r.rank < 0)
            continue;
        r.older = newest_of(o, r.rank);
        g_array_append_val(o->readings, r);
        g_hash_table_insert(o->newest, GINT_TO_POINTER(r.rank), GUINT_TO_POINTER(o->readings->len));
    }
}

/* ---- reading ---- */

static gboolean read_trace(gpointer opening, guint i, GError **error)
{
    Opening *o = opening;
    const RsRunFile *f = g_ptr_array_index(o->files->traces, i);
    g_autoptr(RsInput) input = rs_input_open(f->path, error);
    if (!input)
        return FALSE;
    RsBuilderMark mark = rs_builder_mark(o->reading.b);
    const RsReadOptions options = {o->ranks[i], o->ranks_given,
                                   rs_run_reading_progress(&o->reading), &o->reading};
    if (!f->reader->read(o->reading.b, input, &options, error)) {
        rs_builder_take_back(o->reading.b, &mark);
        return FALSE;
    }
    if (rs_input_note(input))
        rs_builder_warn(o->reading.b, f->path, 0, "%s: read as far as it goes",
                        rs_input_note(input));
    g_autoptr(GArray) found = readings_since(o, &mark, f->path);
    const Reading *twin = find_double(o, found);
    if (twin) {
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: holds rank %d over the same time as %s", f->path, twin->rank, twin->path);
        rs_builder_take_back(o->reading.b, &mark);
        return FALSE;
    }
    keep_readings(o, found);
    return TRUE;
}

static gint32 *find_ranks(const RsRunFiles *files, const RsRunOptions *options, gboolean *ret_given)
{
    guint n = files->traces->len;
    *ret_given = options && options->n_ranks == n;
    if (*ret_given)
        return g_memdup2(options->ranks, n * sizeof(gint32));
    g_autofree const gchar **paths = g_new(const gchar *, n + 1);
    for (guint i = 0; i < n; i++)
        paths[i] = ((const RsRunFile *)g_ptr_array_index(files->traces, i))->path;
    return rs_trace_ranks_new(paths, n);
}

static gboolean communicates(const RsBuilder *b)
{
    const GArray *sigs = b->model->sigs;
    for (guint i = 0; i < sigs->len; i++) {
        const RsSig *s = &g_array_index(sigs, RsSig, i);
        if (s->coll != RS_COLL_NONE || s->klass == RS_CLASS_COLL || s->klass == RS_CLASS_SEND ||
            s->klass == RS_CLASS_RECV ||
            g_str_has_prefix(rs_builder_text(b, s->name), "NEGOTIATE_"))
            return TRUE;
    }
    return FALSE;
}

/* What is alone on purpose is no incomplete run, but it can't say who is late either. */
static void warn_alone(RsBuilder *b)
{
    gint32 size = 0;
    for (guint i = 0; i < b->processes->len; i++)
        size = MAX(size, rs_builder_process(b, i)->world_size);
    if (size > (gint32)b->processes->len)
        rs_builder_warn(b, "", 0,
                        "one file of a run of %d ranks: name the others' files, too, or the folder "
                        "that holds them, to see who waits for whom",
                        size);
}

RsModel *rs_run_traces_open(const RsRunFiles *files, const RsRunOptions *options,
                            RsProgress progress, gpointer data, GError **error)
{
    g_auto(Opening) o = {.files = files};
    o.ranks = find_ranks(files, options, &o.ranks_given);
    o.readings = g_array_new(FALSE, TRUE, sizeof(Reading));
    o.newest = g_hash_table_new(NULL, NULL);
    rs_run_reading_init(&o.reading, progress, data);
    if (!rs_run_reading_all(&o.reading, files->traces, read_trace, &o, error))
        return NULL;
    RsBuilder *b = o.reading.b;
    rs_left_out_warn(o.reading.left_out, b, "files");
    rs_left_out_warn(files->others, b, "files");
    if (b->processes->len > 1 && !communicates(b))
        rs_builder_warn(b, "", 0,
                        "NO COMMUNICATION is recognised in the traces of %u ranks: nothing can be "
                        "said about who waits for whom",
                        b->processes->len);
    gboolean alone = files->traces->len == 1 && !files->from_folder;
    if (alone)
        warn_alone(b);
    return rs_run_reading_finish(&o.reading, alone);
}
