/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h - "--from 1.5 --to 3 --ranks 0-3,8 --steps 10-20": the part of a run a command is about.
 */
#ifndef RS_ANALYZER_SCOPE_H
#define RS_ANALYZER_SCOPE_H

#include "analysis.h"
#include "run.h"

G_BEGIN_DECLS

/* As options give it, NULL where they don't; the strings are GOption's. */
typedef struct {
    gchar *from, *to, *ranks, *steps;
} RsScopeOptions;

/* Rows for a command's GOptionEntry array. */
#define RS_SCOPE_ENTRIES(options)                                                                  \
    {"from", 0, 0, G_OPTION_ARG_STRING, &(options).from, "from this second of the run", "S"},      \
        {"to", 0, 0, G_OPTION_ARG_STRING, &(options).to, "up to this second", "S"},                \
        {"ranks", 0, 0, G_OPTION_ARG_STRING, &(options).ranks, "only these ranks: 0-3,8", "LIST"}, \
    {                                                                                              \
        "steps", 0, 0, G_OPTION_ARG_STRING, &(options).steps, "only these steps: 10-20", "LIST"    \
    }

/* "0-3,8" of --OPTION to gint32, in that order; NULL and RS_ERROR_USAGE. */
GArray *rs_scope_parse_list(const gchar *text, const gchar *option, GError **error);
/* Whether from and to are a part of any run: what can be said before one is read. */
gboolean rs_scope_check_times(const RsScopeOptions *options, GError **error);
/* Checks the options against the model and fills the scope. Release it either way. */
gboolean rs_scope_init(RsScope *scope, const RsScopeOptions *options, const RsModel *model,
                       GError **error);
void rs_scope_release(RsScope *scope);

G_END_DECLS
#endif
