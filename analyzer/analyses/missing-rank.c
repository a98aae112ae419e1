/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing-rank.c - who never came, in a run that was killed, aborted or left by some of its ranks.
 *
 * Rule: others waited for it when they were last seen alive (endings.h), while it waited for nobody
 * itself; or it called MPI_Abort; or it exited, and others were killed then; or it alone was
 * killed, and several others exited then; or it was seen dead before all others, by more than a
 * death and the clocks are uncertain. Ranks that were killed together, each in the same call, are
 * nobody's fault: integrity tells what they were in. A rank that polls may wait for anybody, so it
 * is not named unless it died first; nor is one in a call of its own for which others waited no
 * longer than deaths are uncertain, as ranks that go on do that all the time. Outside of calls it
 * may have crashed, as some launchers end all within milliseconds: it is named with half the
 * confidence. Cost: how long the longest of those that waited for it did.
 */
#include "analyses.h"
#include "endings.h"

#define SAID_MAX 8

typedef struct {
    const RsContext *ctx;
    RsWait *waits;
    gboolean *named; /* by RsRank index */
    guint n_named;
    guint32 first;     /* seen dead before all others, RS_NONE */
    gint64 ahead_ns;   /* by so much */
    guint noticed;     /* ranks that exited as one was killed */
    gint64 noticed_ns; /* the first of them, after that one was last seen alive */
} Search;

/* ---- who ---- */

/* A rank whose end is not known may have died before all others. */
static gboolean all_ends_known(const RsModel *m)
{
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->missing || rs_model_rank(m, i)->ending == RS_ENDING_UNKNOWN)
            return FALSE;
    return TRUE;
}

static void find_first(Search *s)
{
    const RsModel *m = s->ctx->model;
    gint64 first = G_MAXINT64, next = G_MAXINT64;
    s->first = RS_NONE;
    if (!all_ends_known(m))
        return;
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        if (!rs_ending_is_early(r))
            continue;
        if (r->last_ns < first) {
            next = first;
            first = r->last_ns;
            s->first = i;
        } else {
            next = MIN(next, r->last_ns);
        }
    }
    s->ahead_ns = next == G_MAXINT64 ? G_MAXINT64 : next - first;
    if (s->ahead_ns <= RS_ALIVE_SEEN_NS + m->clock_uncertainty_ns)
        s->first = RS_NONE;
}

static void name_rank(Search *s, guint32 rank)
{
    s->n_named += !s->named[rank];
    s->named[rank] = TRUE;
}

static gboolean any(const RsModel *m, RsEnding ending)
{
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->ending == ending)
            return TRUE;
    return FALSE;
}

static void name_all(Search *s, RsEnding ending)
{
    for (guint32 i = 0; i < s->ctx->model->ranks->len; i++)
        if (rs_model_rank(s->ctx->model, i)->ending == ending)
            name_rank(s, i);
}

/* One that exits has its launcher kill the others. Where several exit they had one reason: the one
 * rank that was killed, if it wasn't seen alive any more when the first exited. */
static void name_exited(Search *s)
{
    const RsModel *m = s->ctx->model;
    guint exited = 0, killed = 0;
    guint32 victim = RS_NONE;
    gint64 exit_ns = G_MAXINT64;
    for (guint i = 0; i < m->ranks->len; i++)
        if (rs_model_rank(m, i)->ending == RS_ENDING_EXITED) {
            exit_ns = MIN(exit_ns, rs_model_rank(m, i)->last_ns);
            exited++;
        }
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        if (r->ending != RS_ENDING_KILLED || r->last_ns >= exit_ns)
            continue;
        victim = i;
        killed++;
    }
    if (exited < 2 || killed == 0) {
        name_all(s, RS_ENDING_EXITED);
    } else if (killed == 1) {
        name_rank(s, victim);
        s->noticed = exited;
        s->noticed_ns = exit_ns - rs_model_rank(m, victim)->last_ns;
    }
}

static gint64 waited_ns(const Search *s, guint32 rank)
{
    const RsModel *m = s->ctx->model;
    return rs_model_rank(m, rank)->last_ns - m->events.start_ns[s->waits[rank].event];
}

static void find_named(Search *s)
{
    const RsModel *m = s->ctx->model;
    name_all(s, RS_ENDING_ABORTED);
    if (s->n_named == 0 && any(m, RS_ENDING_KILLED))
        name_exited(s);
    find_first(s);
    if (s->n_named == 0 && s->first != RS_NONE)
        name_rank(s, s->first);
    if (s->n_named == 0)
        s->n_named = rs_waits_find_roots(m, s->waits, s->first, s->named);
}

/* ---- what it did to others ---- */

static gboolean died_first(const Search *s)
{
    return s->first != RS_NONE && s->named[s->first];
}

static gboolean waits_for_named(const Search *s, guint32 rank)
{
    const GArray *targets = s->waits[rank].targets;
    for (guint i = 0; i < targets->len; i++)
        if (s->named[g_array_index(targets, guint32, i)])
            return TRUE;
    return FALSE;
}

/* The longest waits first; ties by rank. */
static gint compare_waits(gconstpointer a, gconstpointer b, gpointer data)
{
    guint32 i = *(const guint32 *)a, j = *(const guint32 *)b;
    gint64 x = waited_ns(data, i), y = waited_ns(data, j);
    return x != y ? (x > y ? -1 : 1) : i < j ? -1 : i > j;
}

static GArray *find_waiting(Search *s)
{
    GArray *waiting = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = 0; i < s->ctx->model->ranks->len; i++)
        if (!s->named[i] && waits_for_named(s, i))
            g_array_append_val(waiting, i);
    g_array_sort_with_data(waiting, compare_waits, s);
    return waiting;
}

/* ---- in words ---- */

static guint32 first_named(const Search *s)
{
    for (guint32 i = 0; i < s->ctx->model->ranks->len; i++)
        if (s->named[i])
            return i;
    return RS_NONE;
}

static gchar *dup_title(const Search *s, const GArray *waiting)
{
    const RsModel *m = s->ctx->model;
    guint32 rank = first_named(s);
    g_autofree gchar *end = rs_ending_dup_text(m, rank);
    g_autofree gchar *who =
        s->n_named > 1 ? g_strdup_printf("%u ranks that went missing", s->n_named)
        : waiting->len ? g_strdup_printf("rank %d, which %s,", rs_model_rank(m, rank)->rank, end)
                       : g_strdup_printf("rank %d %s", rs_model_rank(m, rank)->rank, end);
    if (waiting->len == 0)
        return g_steal_pointer(&who);
    guint32 longest = g_array_index(waiting, guint32, 0);
    g_autofree gchar *kept = waiting->len == 1
                                 ? g_strdup_printf("rank %d", rs_model_rank(m, longest)->rank)
                                 : g_strdup_printf("%u ranks", waiting->len);
    const RsSig *sig = rs_model_sig(m, s->waits[longest].event);
    return g_strdup_printf("%s kept %s waiting in %s", who, kept, rs_model_str(m, sig->name));
}

static void add_comm(const RsModel *m, RsFinding *f, guint32 event)
{
    const RsSig *sig = rs_model_sig(m, event);
    if (sig->comm == RS_NONE)
        return;
    guint64 identity = g_array_index(m->comms, RsComm, sig->comm).identity;
    for (guint i = 0; i < f->communicators->len; i++)
        if (g_array_index(f->communicators, guint64, i) == identity)
            return;
    g_array_append_val(f->communicators, identity);
}

/* What it came out of last: a call, in a trace anything; RS_NONE. */
static guint32 last_done(const RsModel *m, guint32 rank)
{
    const RsRank *r = rs_model_rank(m, rank);
    guint32 last = RS_NONE;
    for (guint32 t = r->first_track; t < r->first_track + r->n_tracks; t++) {
        const RsTrack *track = &g_array_index(m->tracks, RsTrack, t);
        for (guint32 i = track->first + track->n; i-- > track->first;) {
            if (rs_model_sig(m, i)->kind != RS_KIND_CALL && !rs_ending_is_of_trace(m, r))
                continue;
            if (last == RS_NONE || m->events.end_ns[i] > m->events.end_ns[last])
                last = i;
            break;
        }
    }
    return last;
}

static void say_end(const Search *s, RsFinding *f, guint32 rank)
{
    const RsModel *m = s->ctx->model;
    const gint32 number = rs_model_rank(m, rank)->rank;
    g_autofree gchar *end = rs_ending_dup_text(m, rank);
    guint32 open = s->waits[rank].event, last = last_done(m, rank);
    if (open != RS_NONE && rs_model_rank(m, rank)->ending != RS_ENDING_ABORTED)
        rs_finding_say(f, "rank %d %s, since %.3f s", number, end,
                       (gdouble)m->events.start_ns[open] / 1e9);
    else if (rs_model_rank(m, rank)->ending == RS_ENDING_KILLED && last != RS_NONE)
        rs_finding_say(f, "rank %d %s; the last, %s, had ended at %.3f s", number, end,
                       rs_model_str(m, rs_model_sig(m, last)->name),
                       (gdouble)m->events.end_ns[last] / 1e9);
    else if (rs_ending_is_of_trace(m, rs_model_rank(m, rank)) && last != RS_NONE)
        rs_finding_say(f,
                       "the trace of rank %d ends at %.6f s; the last that it did was %s, until "
                       "%.6f s",
                       number, (gdouble)rs_model_rank(m, rank)->last_ns / 1e9,
                       rs_model_str(m, rs_model_sig(m, last)->name),
                       (gdouble)m->events.end_ns[last] / 1e9);
    else
        rs_finding_say(f, "rank %d %s", number, end);
}

static void say_named(const Search *s, RsFinding *f)
{
    const RsModel *m = s->ctx->model;
    guint n = 0;
    for (guint32 i = 0; i < m->ranks->len; i++) {
        if (!s->named[i])
            continue;
        rs_finding_place(f, m, i);
        if (++n <= SAID_MAX)
            say_end(s, f, i);
    }
    if (n > SAID_MAX)
        rs_finding_say(f, "and %u further ranks", n - SAID_MAX);
}

static const gchar *then(RsEnding ending)
{
    return ending == RS_ENDING_KILLED   ? "was killed"
           : ending == RS_ENDING_EXITED ? "exited"
                                        : "ended";
}

static void say_waiting(const Search *s, RsFinding *f, const GArray *waiting)
{
    const RsModel *m = s->ctx->model;
    for (guint i = 0; i < waiting->len; i++) {
        guint32 rank = g_array_index(waiting, guint32, i);
        add_comm(m, f, s->waits[rank].event);
        if (i >= SAID_MAX)
            continue;
        g_autofree gchar *call = rs_ending_dup_call(m, s->waits[rank].event);
        const gint32 number = rs_model_rank(m, rank)->rank;
        if (rs_ending_is_of_trace(m, rs_model_rank(m, rank)))
            rs_finding_say(f, "rank %d came to %s, at %.6f s, and its trace ends in it", number,
                           call, (gdouble)m->events.start_ns[s->waits[rank].event] / 1e9);
        else
            rs_finding_say(f, "rank %d waited %.3f s in %s, then %s", number,
                           (gdouble)waited_ns(s, rank) / 1e9, call,
                           then(rs_model_rank(m, rank)->ending));
    }
    if (waiting->len > SAID_MAX)
        rs_finding_say(f, "and %u further ranks waited", waiting->len - SAID_MAX);
}

static void say_order(const Search *s, RsFinding *f)
{
    if (s->noticed)
        rs_finding_say(f,
                       "%u other ranks exited by themselves, the first %.3f s after it was last "
                       "seen alive",
                       s->noticed, (gdouble)s->noticed_ns / 1e9);
    if (!died_first(s))
        return;
    const gint32 rank = rs_model_rank(s->ctx->model, s->first)->rank;
    if (s->ahead_ns == G_MAXINT64)
        rs_finding_say(f, "rank %d is the only one that did not come to its own end", rank);
    else
        rs_finding_say(f, "rank %d %s %.3f s before the next", rank,
                       then(rs_model_rank(s->ctx->model, s->first)->ending),
                       (gdouble)s->ahead_ns / 1e9);
}

/* Others waited for longer than deaths are uncertain, so it did not die when that began. */
static gboolean lived_on(const Search *s, const GArray *waiting)
{
    return !died_first(s) && waiting->len &&
           waited_ns(s, g_array_index(waiting, guint32, 0)) > RS_ALIVE_SEEN_NS;
}

static gboolean may_be_chance(const Search *s, const GArray *waiting)
{
    guint32 rank = first_named(s);
    return !died_first(s) && !lived_on(s, waiting) && !s->noticed && rank != RS_NONE &&
           rs_model_rank(s->ctx->model, rank)->ending == RS_ENDING_KILLED;
}

static gdouble confidence_of(const Search *s, const GArray *waiting)
{
    return died_first(s) ? 0.95 : may_be_chance(s, waiting) ? 0.5 : 0.9;
}

static const gchar *remedy_of(const Search *s, const GArray *waiting)
{
    gboolean aborted = FALSE, killed = FALSE, exited = FALSE;
    for (guint32 i = 0; i < s->ctx->model->ranks->len; i++) {
        aborted |= s->named[i] && rs_model_rank(s->ctx->model, i)->ending == RS_ENDING_ABORTED;
        killed |= s->named[i] && rs_model_rank(s->ctx->model, i)->ending == RS_ENDING_KILLED;
        exited |= s->named[i] && rs_model_rank(s->ctx->model, i)->ending == RS_ENDING_EXITED;
    }
    if (aborted)
        return "read what that rank printed before it called MPI_Abort; ranks killed after it were "
               "ended by the launcher";
    if (exited)
        return "read what that rank printed before it exited: MPI ends a process so when one of "
               "its "
               "calls fails; ranks killed after it were ended by the launcher";
    if (killed && lived_on(s, waiting))
        return "see what that process did while others waited: its own output (an error, a long "
               "computation, a crash at last), its host's kernel log (out of memory); where it "
               "hung, take its stack (gdb -p PID, py-spy dump -p PID) before the run is ended";
    if (killed && may_be_chance(s, waiting))
        return "look for a crash in that process's output; all ranks ended at the same time, as "
               "they do where the launcher ends the others at once, but also where a run is ended "
               "as a whole, and then this rank was only the last to come";
    if (killed)
        return "look for what ended that process: its own output (a crash), its host's kernel log "
               "(out of memory), the scheduler's log (a limit); ranks killed after it were ended "
               "by the launcher";
    return "look for why that rank left: a loop over fewer batches than the others have, an early "
           "return, or an exit on an error that only it saw";
}

static void add_finding(Search *s, RsResults *results)
{
    const RsModel *m = s->ctx->model;
    g_autoptr(GArray) waiting = find_waiting(s);
    RsFinding *f = rs_finding_new("missing-rank");
    f->title = dup_title(s, waiting);
    f->fatal = TRUE;
    f->severity = "high";
    f->confidence = confidence_of(s, waiting);
    f->t_end_s = (gdouble)m->duration_ns / 1e9;
    f->t_start_s = (gdouble)rs_model_rank(m, first_named(s))->last_ns / 1e9;
    say_named(s, f);
    say_order(s, f);
    say_waiting(s, f, waiting);
    if (waiting->len) {
        guint32 longest = g_array_index(waiting, guint32, 0);
        f->t_start_s = (gdouble)m->events.start_ns[s->waits[longest].event] / 1e9;
        rs_finding_cost(f, s->ctx, waited_ns(s, longest));
    }
    f->remedy = g_strdup(remedy_of(s, waiting));
    g_ptr_array_add(results->findings, f);
}

static void finish(gpointer state, const RsContext *ctx, RsResults *results)
{
    const RsModel *m = ctx->model;
    if (!ctx->whole || !rs_ending_any_early(m) || rs_results_have_fatal(results))
        return;
    Search s = {.ctx = ctx, .waits = rs_waits_new(m)};
    s.named = g_new0(gboolean, m->ranks->len + 1);
    find_named(&s);
    if (s.n_named)
        add_finding(&s, results);
    g_free(s.named);
    rs_waits_free(s.waits, m->ranks->len);
}

static const gchar *const kinds[] = {"missing-rank", NULL};

const RsAnalysis rs_analysis_missing_rank = {
    .name = "missing-rank",
    .help = "ranks that died or left while others waited for them",
    .kinds = kinds,
    .finish = finish,
};
