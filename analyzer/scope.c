/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include <math.h>

#include "plural.h"

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

/* gint32: a guint32 that is never above G_MAXINT32 looks the same. */
GArray *rs_scope_parse_list(const gchar *text, const gchar *option, GError **error)
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

static void set_no_step(const gchar *steps, const RsModel *m, GError **error)
{
    guint32 least = G_MAXUINT32, most = 0;
    for (guint i = 0; i < m->steps->len; i++) {
        guint32 number = g_array_index(m->steps, RsStep, i).number;
        least = MIN(least, number);
        most = MAX(most, number);
    }
    if (m->steps->len)
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--steps %s: the run has %u step%s, numbered %u to %u", steps, m->steps->len,
                    rs_plural(m->steps->len), least, most);
    else
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--steps %s: no steps were found in the run; --from and --to work without",
                    steps);
}

static gboolean parse_seconds(const gchar *text, const gchar *option, gdouble *ret, GError **error)
{
    gchar *end = NULL;
    *ret = text ? g_ascii_strtod(text, &end) : 0;
    if (!text || (end != text && !*end && isfinite(*ret) && *ret >= 0))
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                "--%s %s: not a number of seconds from the run's begin, such as 1.5", option, text);
    return FALSE;
}

static gboolean parse_times(const RsScopeOptions *o, RsScope *scope, GError **error)
{
    if (!parse_seconds(o->from, "from", &scope->from_s, error) ||
        !parse_seconds(o->to, "to", &scope->to_s, error))
        return FALSE;
    if (!o->to || scope->to_s > scope->from_s)
        return TRUE;
    if (o->from)
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--to %s: not after --from %s", o->to,
                    o->from);
    else
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--to %s: nothing of a run is before it",
                    o->to);
    return FALSE;
}

gboolean rs_scope_check_times(const RsScopeOptions *o, GError **error)
{
    RsScope scope;
    return parse_times(o, &scope, error);
}

static gboolean check_begin(const RsScopeOptions *o, gdouble from_s, const RsModel *m,
                            GError **error)
{
    gdouble end_s = (gdouble)m->duration_ns / 1e9;
    if (from_s == 0 || from_s < end_s)
        return TRUE;
    g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--from %s: not in the run, which lasts %.6f s",
                o->from, end_s);
    return FALSE;
}

gboolean rs_scope_init(RsScope *scope, const RsScopeOptions *o, const RsModel *m, GError **error)
{
    *scope = (RsScope){0};
    if (!parse_times(o, scope, error) || !check_begin(o, scope->from_s, m, error))
        return FALSE;
    if (o->ranks && !(scope->ranks = rs_scope_parse_list(o->ranks, "ranks", error)))
        return FALSE;
    if (o->steps && !(scope->steps = rs_scope_parse_list(o->steps, "steps", error)))
        return FALSE;
    if (scope->ranks && !any_rank(m, scope->ranks)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "--ranks %s: the run has %d rank%s, from 0",
                    o->ranks, m->world_size, rs_plural(m->world_size));
        return FALSE;
    }
    if (scope->steps && !any_step(m, scope->steps)) {
        set_no_step(o->steps, m, error);
        return FALSE;
    }
    return TRUE;
}

void rs_scope_release(RsScope *scope)
{
    g_clear_pointer(&scope->ranks, g_array_unref);
    g_clear_pointer(&scope->steps, g_array_unref);
}
