/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the commands of `ringscope`: a table of rows, and what every command needs.
 *
 * A command is one file, command-<name>.c, with one function; main.c lists it. The function parses
 * its own options with rs_command_parse, does its work, and returns the exit status: 0, or 2 for
 * wrong usage or unreadable input (rs_command_fail), or what its help says.
 * Only this layer prints: messages and progress on stderr, results on stdout.
 */
#ifndef RS_ANALYZER_COMMAND_H
#define RS_ANALYZER_COMMAND_H

#include <glib.h>

#include "run.h"

G_BEGIN_DECLS

#define RS_EXIT_FAILED 2 /* wrong usage or unreadable input */

typedef struct RsCommand RsCommand;
struct RsCommand {
    const gchar *name;
    const gchar *arguments; /* "DIR": what follows the options */
    const gchar *help;      /* one line */
    const gchar *example;   /* a command line and what it does */
    int (*run)(const RsCommand *self, int argc, char **argv);
};

/* True after --quiet: no progress, no notes. */
extern gboolean rs_command_quiet;

/* --rank of commands that open a run, NULL not given: a row for their GOptionEntry array. */
extern gchar *rs_command_rank;
#define RS_COMMAND_RUN_ENTRIES                                                                     \
    {                                                                                              \
        "rank", 0, 0, G_OPTION_ARG_STRING, &rs_command_rank,                                       \
            "of traces of other tools: each file's rank, in their order", "LIST"                   \
    }

/*
 * Parses the options of `self` (`entries` may be NULL), and --help and --quiet. argv[0] is the
 * command's name. What is left of argv are its arguments, from 1. FALSE: the command is over and
 * returns *ret_status (0 after --help, 2 after a wrong option, which was printed).
 * `strict`: options end at the first argument, as `run` needs.
 */
gboolean rs_command_parse(const RsCommand *self, const GOptionEntry *entries, gboolean strict,
                          int *argc, char ***argv, int *ret_status);

/* Prints "ringscope: what" and returns RS_EXIT_FAILED. */
int rs_command_usage(const RsCommand *self, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
int rs_command_fail(const GError *error);

/* An RsProgress: a line on a terminal's stderr for work over a second; share >= 1 wipes it. */
void rs_command_progress(gdouble share, const gchar *what, gpointer data);

/* What --rank says: ranks to free with g_array_unref, NULL where it isn't given; FALSE and `error`.
 */
gboolean rs_command_run_options(RsRunOptions *options, GArray **ret_ranks, GError **error);
/* Whether two names are of one file. */
gboolean rs_command_is_same_file(const gchar *a, const gchar *b);
/* Opens the run that argv[1..argc) name; prints the failure and returns NULL. */
RsModel *rs_command_open(int argc, char **argv);
/* Prints what was lost while reading, at most a screenful. */
void rs_command_warn(const RsModel *model);

int rs_command_clean(const RsCommand *self, int argc, char **argv);
int rs_command_control(const RsCommand *self, int argc, char **argv);
int rs_command_export(const RsCommand *self, int argc, char **argv);
int rs_command_query(const RsCommand *self, int argc, char **argv);
int rs_command_report(const RsCommand *self, int argc, char **argv);
int rs_command_run(const RsCommand *self, int argc, char **argv);
int rs_command_status(const RsCommand *self, int argc, char **argv);
int rs_command_merge(const RsCommand *self, int argc, char **argv);
int rs_command_view(const RsCommand *self, int argc, char **argv);
int rs_command_version(const RsCommand *self, int argc, char **argv);

G_END_DECLS
#endif
