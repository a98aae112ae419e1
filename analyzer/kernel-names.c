/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-names.h"

#include <string.h>

/* One identifier: its length in decimal, then it. NULL where none stands here. */
static const gchar *add_identifier(GString *name, const gchar *at)
{
    gsize n = 0;
    if (*at < '1' || *at > '9')
        return NULL;
    for (; g_ascii_isdigit(*at); at++) {
        n = n * 10 + (gsize)(*at - '0');
        if (n > 4096)
            return NULL;
    }
    if (memchr(at, 0, n))
        return NULL;
    if (name->len)
        g_string_append(name, "::");
    if (g_str_has_prefix(at, "_GLOBAL__N_"))
        g_string_append(name, "(anonymous)");
    else
        g_string_append_len(name, at, (gssize)n);
    return at + n;
}

/* The names of a scope, up to its end or the first template arguments; NULL: not to be read. */
static const gchar *add_scope(GString *name, const gchar *at)
{
    while (*at == 'r' || *at == 'V' || *at == 'K') /* qualifiers of a method */
        at++;
    if (g_str_has_prefix(at, "St")) {
        g_string_append(name, "std");
        at += 2;
    }
    do
        at = add_identifier(name, at);
    while (at && *at != 'E' && *at != 'I');
    return at;
}

gchar *rs_kernel_dup_name(const gchar *mangled)
{
    g_autoptr(GString) name = g_string_new(NULL);
    const gchar *at = mangled + 2;
    if (!g_str_has_prefix(mangled, "_Z"))
        return g_strdup(mangled);
    if (*at == 'L') /* static */
        at++;
    at = *at == 'N' ? add_scope(name, at + 1) : add_identifier(name, at);
    if (!at)
        return g_strdup(mangled);
    if (*at == 'I')
        g_string_append(name, "<...>");
    return g_strdup(name->str);
}
