/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <math.h>
#include <string.h>

#include "analyses/endings.h"
#include "pick.h"
#include "plural.h"
#include "run.h"

/* ---- making ---- */

static gint by_event(gconstpointer a, gconstpointer b)
{
    const RsEventMessage *x = a, *y = b;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->message < y->message ? -1 : x->message > y->message;
}

static void add_message(RsScene *s, guint32 event, guint32 message)
{
    RsEventMessage pair = {event, message};
    if (event == RS_NONE)
        return;
    g_array_append_val(s->messages, pair);
    guint8 klass = rs_model_sig(s->model, event)->klass;
    pair.event = s->model->events.link[event];
    if ((klass == RS_CLASS_RECV_START || klass == RS_CLASS_SEND_START) && pair.event != RS_NONE)
        g_array_append_val(s->messages, pair);
}

static void index_messages(RsScene *s)
{
    s->messages = g_array_new(FALSE, FALSE, sizeof(RsEventMessage));
    for (guint32 i = 0; i < s->model->messages->len; i++) {
        const RsMessage *m = &g_array_index(s->model->messages, RsMessage, i);
        add_message(s, m->send, i);
        add_message(s, m->recv, i);
    }
    g_array_sort(s->messages, by_event);
}

RsScene *rs_scene_new(RsModel *model, const gchar *title)
{
    RsScene *s = g_new0(RsScene, 1);
    s->model = model;
    s->title = g_strdup(title);
    s->results = rs_analyze(model, NULL);
    rs_rows_init(&s->rows, model);
    rs_layout_init(&s->layout, &s->rows);
    rs_axis_init(&s->axis, 0, model->duration_ns, 1);
    s->rank_marked = g_new0(guint8, model->ranks->len + 1);
    s->selected = s->hover = RS_NONE;
    s->finding = s->finding_step = s->pointer_x = -1;
    index_messages(s);
    return s;
}

RsScene *rs_scene_open(const gchar *const *paths, const RsRunOptions *options,
                       void (*progress)(gdouble, const gchar *, gpointer), gpointer data,
                       GError **error)
{
    RsModel *model = rs_run_open_as(paths, options, progress, data, error);
    if (!model)
        return NULL;
    if (progress)
        progress(1, "looking for causes", data);
    g_autofree gchar *name = g_path_get_basename(paths[0]);
    g_autofree gchar *all = paths[1] ? g_strdup_printf("%s and more", name) : g_strdup(name);
    return rs_scene_new(model, all);
}

void rs_scene_free(RsScene *s)
{
    if (!s)
        return;
    rs_layout_release(&s->layout);
    rs_rows_release(&s->rows);
    rs_results_free(s->results);
    rs_model_free(s->model);
    g_array_unref(s->messages);
    g_free(s->rank_marked);
    g_free(s->title);
    g_free(s);
}

/* ---- view ---- */

void rs_scene_resize(RsScene *s, gint width, gint height)
{
    gboolean first = s->width == 0;
    s->width = width;
    s->height = height;
    rs_axis_resize(&s->axis, MAX(width - RS_SCENE_GUTTER_PX, 1));
    if (first)
        rs_axis_fit(&s->axis);
    rs_scene_scroll_to(s, s->scroll_px);
}

gint rs_scene_body_px(const RsScene *s)
{
    return MAX(s->height - RS_SCENE_RULER_PX, 1);
}

gint rs_scene_scroll_max(const RsScene *s)
{
    return MAX(s->layout.height - rs_scene_body_px(s), 0);
}

void rs_scene_scroll_to(RsScene *s, gint scroll_px)
{
    s->scroll_px = CLAMP(scroll_px, 0, rs_scene_scroll_max(s));
}

void rs_scene_zoom(RsScene *s, gdouble factor, gdouble x)
{
    gdouble px = x - RS_SCENE_GUTTER_PX;
    rs_axis_zoom(&s->axis, factor, CLAMP(px, 0, s->axis.width_px));
}

guint32 rs_scene_event_at(const RsScene *s, gdouble x, gdouble y)
{
    if (y < RS_SCENE_RULER_PX || y >= s->height)
        return RS_NONE;
    return rs_pick_event(&s->layout, &s->axis, x - RS_SCENE_GUTTER_PX,
                         (gint)y - RS_SCENE_RULER_PX + s->scroll_px);
}

guint32 rs_scene_line_at(const RsScene *s, gdouble x, gdouble y)
{
    gint inside = (gint)y - RS_SCENE_RULER_PX + s->scroll_px;
    guint32 line = y < RS_SCENE_RULER_PX ? RS_NONE : rs_layout_line_at(&s->layout, inside);
    if (line == RS_NONE)
        return RS_NONE;
    const RsLine *l = rs_layout_line(&s->layout, line);
    return inside < l->y + l->height ? line : RS_NONE;
}

gboolean rs_scene_event_box(const RsScene *s, guint32 event, gdouble *x, gdouble *y, gdouble *width,
                            gdouble *height)
{
    guint32 slot = event == RS_NONE ? RS_NONE : s->rows.slot_of[event];
    gint top, high;
    if (slot == RS_NONE ||
        !rs_layout_row_box(&s->layout, rs_rows_row_of(&s->rows, slot), &top, &high))
        return FALSE;
    gdouble from = rs_axis_px(&s->axis, s->rows.start_ns[slot]);
    gdouble to = rs_axis_px(&s->axis, s->rows.end_ns[slot]);
    *x = from + RS_SCENE_GUTTER_PX;
    *width = MAX(to - from, 1);
    *y = top - s->scroll_px + RS_SCENE_RULER_PX;
    *height = high;
    return TRUE;
}

/* ---- selection ---- */

void rs_scene_select(RsScene *s, guint32 event)
{
    s->selected = event;
}

static void scroll_to_y(RsScene *s, gint y, gint height)
{
    gint body = rs_scene_body_px(s);
    if (y < s->scroll_px || y + height > s->scroll_px + body)
        rs_scene_scroll_to(s, y - body / 3);
}

void rs_scene_reveal(RsScene *s, guint32 event)
{
    guint32 slot = event == RS_NONE ? RS_NONE : s->rows.slot_of[event];
    if (slot == RS_NONE)
        return;
    rs_layout_open_rank(&s->layout, rs_model_rank_of(s->model, event));
    gdouble length = (gdouble)(s->rows.end_ns[slot] - s->rows.start_ns[slot]);
    gdouble middle = (gdouble)s->rows.start_ns[slot] + length / 2;
    gdouble span = s->axis.ns_per_px * s->axis.width_px;
    gboolean seen = middle - length / 2 >= s->axis.from_ns &&
                    middle + length / 2 <= rs_axis_to_ns(&s->axis) &&
                    length >= 3 * s->axis.ns_per_px;
    if (!seen) {
        span = length < 3 * s->axis.ns_per_px || length > span ? MAX(length * 8, 1000) : span;
        rs_axis_show(&s->axis, middle - span / 2, middle + span / 2);
    }
    gint y, height;
    if (rs_layout_row_box(&s->layout, rs_rows_row_of(&s->rows, slot), &y, &height))
        scroll_to_y(s, y, height);
}

void rs_scene_focus(RsScene *s)
{
    guint32 slot = s->selected == RS_NONE ? RS_NONE : s->rows.slot_of[s->selected];
    if (slot != RS_NONE) {
        gdouble from = (gdouble)s->rows.start_ns[slot], to = (gdouble)s->rows.end_ns[slot];
        gdouble margin = MAX((to - from) * 0.1, 10);
        rs_axis_show(&s->axis, from - margin, to + margin);
    } else if (s->finding >= 0) {
        rs_scene_show_finding(s, s->finding);
    }
}

/* ---- findings ---- */

gboolean rs_scene_finding_has_rank(const RsScene *s, const RsFinding *f, guint32 rank)
{
    const RsRank *r = rs_model_rank(s->model, rank);
    for (guint i = 0; i < f->ranks->len; i++)
        if (g_array_index(f->ranks, gint32, i) == r->rank)
            return TRUE;
    const gchar *host = r->missing ? "" : rs_model_host_name(s->model, r->host);
    for (guint i = 0; f->ranks->len == 0 && i < f->hosts->len; i++)
        if (g_str_equal(host, g_ptr_array_index(f->hosts, i)))
            return TRUE;
    return FALSE;
}

static void scroll_to_marked(RsScene *s)
{
    for (guint32 i = 0; i < s->model->ranks->len; i++) {
        guint32 rank = s->layout.order[i];
        guint32 line = s->rank_marked[rank] ? s->layout.rank_line[rank] : RS_NONE;
        if (line == RS_NONE)
            continue;
        const RsLine *l = rs_layout_line(&s->layout, line);
        scroll_to_y(s, l->y, l->height);
        return;
    }
}

void rs_scene_show_finding(RsScene *s, gint index)
{
    gboolean none = index < 0 || index >= (gint)s->results->findings->len;
    s->finding = none ? -1 : index;
    s->finding_step = -1;
    memset(s->rank_marked, 0, s->model->ranks->len);
    if (none)
        return;
    const RsFinding *f = g_ptr_array_index(s->results->findings, (guint)index);
    for (guint32 i = 0; i < s->model->ranks->len; i++) {
        s->rank_marked[i] = rs_scene_finding_has_rank(s, f, i);
        const RsRank *r = rs_model_rank(s->model, i);
        if (s->rank_marked[i] && !r->missing && s->layout.host_closed[r->host])
            rs_layout_open_rank(&s->layout, i);
    }
    gdouble from = f->t_start_s * 1e9, to = f->t_end_s * 1e9;
    if (to > from) {
        gdouble margin = (to - from) * 0.05;
        rs_axis_show(&s->axis, from - margin, to + margin);
    }
    scroll_to_marked(s);
}

static const RsStep *step_numbered(const RsModel *m, guint32 number)
{
    for (guint i = 0; i < m->steps->len; i++)
        if (g_array_index(m->steps, RsStep, i).number == number)
            return &g_array_index(m->steps, RsStep, i);
    return NULL;
}

void rs_scene_next_step(RsScene *s)
{
    if (s->finding < 0)
        return;
    const RsFinding *f = g_ptr_array_index(s->results->findings, (guint)s->finding);
    gint next = s->finding_step + 1;
    const RsStep *step = next < (gint)f->steps->len
                             ? step_numbered(s->model, g_array_index(f->steps, guint32, next))
                             : NULL;
    if (!step) {
        rs_scene_show_finding(s, s->finding);
        return;
    }
    gdouble margin = (gdouble)(step->end_ns - step->start_ns) * 0.1;
    s->finding_step = next;
    rs_axis_show(&s->axis, (gdouble)step->start_ns - margin, (gdouble)step->end_ns + margin);
    scroll_to_marked(s);
}

/* ---- search ---- */

static gboolean contains(const gchar *text, const gchar *folded)
{
    g_autofree gchar *other = g_utf8_casefold(text, -1);
    return strstr(other, folded) != NULL;
}

/* By signature: names are interned, so a run has few of them. */
static guint8 *matching_sigs(const RsModel *m, const gchar *text)
{
    guint8 *match = g_new0(guint8, m->sigs->len + 1);
    g_autofree gchar *folded = g_utf8_casefold(text, -1);
    for (guint i = 0; i < m->sigs->len; i++) {
        const RsSig *sig = &g_array_index(m->sigs, RsSig, i);
        match[i] =
            contains(rs_model_str(m, sig->name), folded) ||
            contains(rs_model_str(m, sig->category), folded) ||
            (sig->comm != RS_NONE &&
             contains(rs_model_str(m, g_array_index(m->comms, RsComm, sig->comm).name), folded));
    }
    return match;
}

/* Whether event a comes before b: time, then number. */
static gboolean before(const RsModel *m, guint32 a, guint32 b)
{
    gint64 x = m->events.start_ns[a], y = m->events.start_ns[b];
    return x != y ? x < y : a < b;
}

guint32 rs_scene_find(const RsScene *s, const gchar *text, gboolean backwards)
{
    const RsModel *m = s->model;
    if (!*text)
        return RS_NONE;
    g_autofree guint8 *match = matching_sigs(m, text);
    guint32 next = RS_NONE, first = RS_NONE; /* after the selected one; of all */
    for (guint32 e = 0; e < m->events.n; e++) {
        if (!match[m->events.sig[e]] || s->rows.slot_of[e] == RS_NONE)
            continue;
#define EARLIER(a, b) (backwards ? before(m, b, a) : before(m, a, b))
        if (first == RS_NONE || EARLIER(e, first))
            first = e;
        if (s->selected != RS_NONE && EARLIER(s->selected, e) &&
            (next == RS_NONE || EARLIER(e, next)))
            next = e;
#undef EARLIER
    }
    return next != RS_NONE ? next : first;
}

guint32 rs_scene_find_in_view(const RsScene *s, const gchar *text)
{
    const RsModel *m = s->model;
    g_autofree guint8 *match = matching_sigs(m, text);
    guint32 seen = RS_NONE, first = RS_NONE; /* of those in view; of all */
    for (guint32 e = 0; e < m->events.n; e++) {
        if (!match[m->events.sig[e]] || s->rows.slot_of[e] == RS_NONE)
            continue;
        gdouble start = (gdouble)m->events.start_ns[e];
        gboolean in_view = start >= s->axis.from_ns && start < rs_axis_to_ns(&s->axis);
        if (in_view && (seen == RS_NONE || before(m, e, seen)))
            seen = e;
        if (first == RS_NONE || before(m, e, first))
            first = e;
    }
    return seen != RS_NONE ? seen : first;
}

guint32 rs_scene_neighbour(const RsScene *s, gint dx)
{
    guint32 slot = s->selected == RS_NONE ? RS_NONE : s->rows.slot_of[s->selected];
    if (slot == RS_NONE)
        return RS_NONE;
    const RsRow *row = rs_rows_row(&s->rows, rs_rows_row_of(&s->rows, slot));
    gint64 to = (gint64)slot + dx;
    return to < row->first || to >= (gint64)row->first + row->n ? s->selected : s->rows.event[to];
}

void rs_scene_messages_of(const RsScene *s, guint32 event, guint *first, guint *last)
{
    guint low = 0, high = s->messages->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(s->messages, RsEventMessage, middle).event < event)
            low = middle + 1;
        else
            high = middle;
    }
    *first = *last = low;
    while (*last < s->messages->len &&
           g_array_index(s->messages, RsEventMessage, *last).event == event)
        ++*last;
}

/* ---- status ---- */

static guint captured_ranks(const RsModel *m)
{
    guint n = 0;
    for (guint32 i = 0; i < m->ranks->len; i++)
        n += !rs_model_rank(m, i)->missing;
    return n;
}

static guint early_endings(const RsModel *m)
{
    guint n = 0;
    for (guint32 i = 0; i < m->ranks->len; i++)
        n += rs_ending_is_early(rs_model_rank(m, i));
    return n;
}

gchar *rs_scene_dup_status(const RsScene *s)
{
    const RsModel *m = s->model;
    GString *out = g_string_new(NULL);
    g_autofree gchar *length = rs_axis_dup_duration(m->duration_ns);
    g_autofree gchar *clock = rs_axis_dup_duration(m->clock_uncertainty_ns);
    gint ranks = MAX(m->world_size, (gint)m->ranks->len);
    gboolean known = rs_model_hosts_are_known(m);
    g_autofree gchar *hosts =
        known ? g_strdup_printf(" on %u host%s", m->hosts->len, rs_plural(m->hosts->len))
              : g_strdup("");
    g_string_append_printf(out, "%u of %d rank%s%s, %s, %u event%s  \u00b7  ", captured_ranks(m),
                           ranks, rs_plural(ranks), hosts, length, m->events.n,
                           rs_plural(m->events.n));
    if (m->domains->len < 2)
        g_string_append(out, "one clock for all ranks");
    else if (m->clock_trusted)
        g_string_append_printf(out, "clocks: %s, \u00b1%s", m->clock_method, clock);
    else
        g_string_append_printf(out, "clocks%s NOT aligned: compare times within a %s only",
                               known ? " of the hosts" : "", known ? "host" : "file");
    if (m->dropped)
        g_string_append_printf(out, "  \u00b7  %" G_GUINT64_FORMAT " event%s lost", m->dropped,
                               rs_plural(m->dropped));
    guint early = early_endings(m);
    if (early)
        g_string_append_printf(out, "  \u00b7  %u rank%s ended early", early, rs_plural(early));
    else if (m->incomplete)
        g_string_append(out, "  \u00b7  incomplete: see the warnings");
    return g_string_free(out, FALSE);
}
