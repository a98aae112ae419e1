/* SPDX-License-Identifier: Apache-2.0 */
#include "wanted.h"

#include "escape.h"
#include "plural.h"

#define NAMED_MAX 8 /* of what exists, in a message */

/* The finding's number, from 1; 0 where `text` is none. */
static guint64 parse_finding(const gchar *text)
{
    guint64 number;
    return g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT32, &number, NULL) ? number : 0;
}

gboolean rs_wanted_check(const RsWanted *w, GError **error)
{
    if (!rs_scope_check_times(&w->time, error))
        return FALSE;
    if (w->finding && parse_finding(w->finding) == 0) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--finding %s: not the number of a finding, from 1", w->finding);
        return FALSE;
    }
    if (w->select && !*w->select) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--select: no text given; it selects a slice whose name contains the text");
        return FALSE;
    }
    return TRUE;
}

static gboolean check_finding(const RsWanted *w, const RsScene *s, GError **error)
{
    const GPtrArray *findings = s->results->findings;
    if (!w->finding || parse_finding(w->finding) <= findings->len)
        return TRUE;
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < MIN(findings->len, NAMED_MAX); i++)
        g_string_append_printf(known, "%s%u %s", i ? ", " : ": ", i + 1,
                               ((const RsFinding *)g_ptr_array_index(findings, i))->kind);
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--finding %s: the run has %u finding%s%s%s",
                w->finding, findings->len, rs_plural(findings->len), known->str,
                findings->len > NAMED_MAX ? ", ..." : "");
    return FALSE;
}

typedef struct {
    guint32 name, slices;
} Name;

static gint by_slices(gconstpointer a, gconstpointer b)
{
    const Name *x = a, *y = b;
    if (x->slices != y->slices)
        return x->slices > y->slices ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* The names of what is drawn, most frequent first. */
static GArray *count_names(const RsScene *s)
{
    const RsModel *m = s->model;
    GArray *names = g_array_new(FALSE, FALSE, sizeof(Name));
    g_autofree guint32 *slices = g_new0(guint32, m->strings->len + 1);
    for (guint32 e = 0; e < m->events.n; e++)
        if (s->rows.slot_of[e] != RS_NONE)
            slices[rs_model_sig(m, e)->name]++;
    for (guint32 i = 0; i < m->strings->len; i++) {
        Name n = {i, slices[i]};
        if (n.slices && *rs_model_str(m, i))
            g_array_append_val(names, n);
    }
    g_array_sort(names, by_slices);
    return names;
}

static gboolean check_select(const RsWanted *w, const RsScene *s, GError **error)
{
    if (!w->select || rs_scene_find(s, w->select, FALSE) != RS_NONE)
        return TRUE;
    g_autoptr(GArray) names = count_names(s);
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < MIN(names->len, NAMED_MAX); i++) {
        g_string_append(known, i ? ", " : "; the most frequent names are ");
        rs_escape_text(known, rs_model_str(s->model, g_array_index(names, Name, i).name));
    }
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--select %s: no slice of the run is named so%s%s",
                w->select, known->str, names->len > NAMED_MAX ? ", ..." : "");
    return FALSE;
}

gboolean rs_wanted_show(const RsWanted *w, RsScene *s, GError **error)
{
    RsScope scope;
    gboolean good = rs_scope_init(&scope, &w->time, s->model, error) &&
                    check_finding(w, s, error) && check_select(w, s, error);
    rs_scope_release(&scope);
    if (!good)
        return FALSE;
    if (w->finding)
        rs_scene_show_finding(s, (gint)parse_finding(w->finding) - 1);
    if (w->time.from || w->time.to)
        rs_axis_show(&s->axis, scope.from_s * 1e9,
                     w->time.to ? scope.to_s * 1e9 : (gdouble)s->model->duration_ns);
    if (w->select)
        rs_scene_select(s, rs_scene_find_in_view(s, w->select));
    return TRUE;
}
