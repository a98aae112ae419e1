/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include <math.h>

#define LIST_MAX (1 << 20)

static gboolean parse_number(const gchar **p, gint64 *ret)
{
    gchar *end;
    if (!g_ascii_isdigit(**p))
        return FALSE;
    *ret = g_ascii_strtoll(*p, &end, 10);
    *p = end;
    return *ret >= 0 && *ret <= G_MAXINT32;
}

/* "0-3,8" to gint32 (a guint32 that is never above G_MAXINT32 looks the same). */
static GArray *parse_list(const gchar *text, const gchar *option, GError **error)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (const gchar *p = text;;) {
        gint64 from, to;
        gboolean good = parse_number(&p, &from);
        to = from;
        if (good && *p == '-') {
            p++;
            good = parse_number(&p, &to) && to >= from;
        }
        if (!good || (*p && *p != ',') || list->len + (to - from) > LIST_MAX) {
            g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                        "--%s %s: not a list of numbers and ranges like 0-3,8", option, text);
            g_array_unref(list);
            return NULL;
        }
        for (gint64 i = from; i <= to; i++) {
            gint32 v = (gint32)i;
            g_array_append_val(list, v);
        }
        if (!*p++)
            return list;
    }
}

static gboolean any_rank(const RsModel *m, const GArray *ranks)
{
    for (guint i = 0; i < m->ranks->len; i++)
        for (guint k = 0; k < ranks->len; k++)
            if (rs_model_rank(m, i)->rank == g_array_index(ranks, gint32, k))
                return TRUE;
    return FALSE;
}

static gboolean any_step(const RsModel *m, const GArray *steps)
{
    for (guint i = 0; i < m->steps->len; i++)
        for (guint k = 0; k < steps->len; k++)
            if (g_array_index(m->steps, RsStep, i).number == g_array_index(steps, guint32, k))
                return TRUE;
    return FALSE;
}

static gboolean check_time(const RsScopeOptions *o, const RsModel *m, GError **error)
{
    gdouble end = (gdouble)m->duration_ns / 1e9;
    if (isfinite(o->from_s) && isfinite(o->to_s) && o->from_s >= 0 && o->to_s >= 0 &&
        (o->from_s == 0 || o->from_s < end) && (o->to_s == 0 || o->to_s > o->from_s))
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                "--from %g --to %g: not a part of the run, which lasts %.6f s", o->from_s, o->to_s,
                end);
    return FALSE;
}

gboolean rs_scope_init(RsScope *scope, const RsScopeOptions *o, const RsModel *m, GError **error)
{
    *scope = (RsScope){.from_s = o->from_s, .to_s = o->to_s};
    if (!check_time(o, m, error))
        return FALSE;
    if (o->ranks && !(scope->ranks = parse_list(o->ranks, "ranks", error)))
        return FALSE;
    if (o->steps && !(scope->steps = parse_list(o->steps, "steps", error)))
        return FALSE;
    if (scope->ranks && !any_rank(m, scope->ranks)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--ranks %s: the run has %d ranks, from 0",
                    o->ranks, m->world_size);
        return FALSE;
    }
    if (scope->steps && !any_step(m, scope->steps)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--steps %s: %s", o->steps,
                    m->steps->len ? "the run has no such steps" : "no steps were found in the run");
        return FALSE;
    }
    return TRUE;
}

void rs_scope_release(RsScope *scope)
{
    g_clear_pointer(&scope->ranks, g_array_unref);
    g_clear_pointer(&scope->steps, g_array_unref);
}
