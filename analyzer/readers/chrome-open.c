/* SPDX-License-Identifier: Apache-2.0 */
#include "chrome-open.h"

void rs_chrome_open_init(RsChromeOpen *o)
{
    *o = (RsChromeOpen){0};
    o->slices = g_array_new(FALSE, FALSE, sizeof(RsChromeOpenSlice));
    o->names = g_hash_table_new(NULL, NULL);
}

void rs_chrome_open_release(RsChromeOpen *o)
{
    g_array_unref(o->slices);
    g_hash_table_unref(o->names);
}

static RsChromeOpenSlice *slice(const RsChromeOpen *o, guint i)
{
    return &g_array_index(o->slices, RsChromeOpenSlice, i);
}

static guint innermost_of(const RsChromeOpen *o, RsStr name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(o->names, GUINT_TO_POINTER(name)));
}

static void set_innermost_of(RsChromeOpen *o, RsStr name, guint place)
{
    if (place)
        g_hash_table_insert(o->names, GUINT_TO_POINTER(name), GUINT_TO_POINTER(place));
    else
        g_hash_table_remove(o->names, GUINT_TO_POINTER(name));
}

static void name_all(RsChromeOpen *o)
{
    for (; o->n_named < o->slices->len; o->n_named++) {
        RsChromeOpenSlice *s = slice(o, o->n_named);
        s->older = innermost_of(o, s->name);
        set_innermost_of(o, s->name, o->n_named + 1);
    }
}

void rs_chrome_open_push(RsChromeOpen *o, RsStr name, guint32 row)
{
    RsChromeOpenSlice s = {.name = name, .row = row};
    g_array_append_val(o->slices, s);
}

/* It is the innermost of its name. */
static void end(RsChromeOpen *o, guint at)
{
    RsChromeOpenSlice *s = slice(o, at);
    s->ended = TRUE;
    if (at < o->n_named)
        set_innermost_of(o, s->name, s->older);
    guint n = o->slices->len;
    while (n > 0 && slice(o, n - 1)->ended)
        n--;
    g_array_set_size(o->slices, n);
    o->n_named = MIN(o->n_named, n);
}

gboolean rs_chrome_open_take(RsChromeOpen *o, RsStr name, guint32 *ret_row, gboolean *ret_inside)
{
    guint last = o->slices->len;
    if (last == 0)
        return FALSE;
    guint place = last;
    if (name && slice(o, last - 1)->name != name) {
        name_all(o);
        place = innermost_of(o, name);
    }
    if (!place)
        return FALSE;
    *ret_row = slice(o, place - 1)->row;
    *ret_inside = place < last;
    end(o, place - 1);
    return TRUE;
}

gboolean rs_chrome_open_next(RsChromeOpen *o, guint *at, guint32 *ret_row)
{
    while (*at < o->slices->len && slice(o, *at)->ended)
        ++*at;
    if (*at >= o->slices->len)
        return FALSE;
    *ret_row = slice(o, (*at)++)->row;
    return TRUE;
}

void rs_chrome_open_clear(RsChromeOpen *o)
{
    g_array_set_size(o->slices, 0);
    g_hash_table_remove_all(o->names);
    o->n_named = 0;
}
