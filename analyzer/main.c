/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - `ringscope COMMAND`: the table of commands, and nothing else. */
#include "command.h"
#include "export/export.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const RsCommand commands[] = {
    {"run", "-- PROGRAM [ARGUMENTS]", "traces one program, then merges what it left",
     "ringscope run -- mpirun -n 4 --oversubscribe ./train   any launcher, with any options\n"
     "  ringscope run -np 4 -H a:2,b:2 -- ./train   starts mpirun itself: other hosts are told, "
     "too\n"
     "  ringscope run -np 4 --mpirun \"mpiexec.mpich -bind-to core\" -- ./train   another mpirun, "
     "with\n  options of its own\n\n-np N, as mpirun has it, is -n N.",
     rs_command_run},
    {"merge", "DIR|CAPTURE", "captures to run.json and run.sqlite",
     "ringscope merge ringscope-train-1   writes ringscope-train-1/run.json and run.sqlite",
     rs_command_merge},
    {"report", "RUN...", "says what costs time, and where",
     "ringscope report run --fail-on straggler,slow-link   names them; exit 1 where there is one",
     rs_command_report},
    {"export", "RUN... --format FORMAT -o FILE", "writes one file for other tools",
     "ringscope export run --format chrome -o run.json --from 1.5 --to 2   half a second for "
     "Perfetto",
     rs_command_export},
    {"query", "RUN SQL", "asks a run in read-only SQL (schemas/trace.sql)",
     "ringscope query run \"SELECT * FROM last_arrivals\"   who was last, and how long others "
     "waited",
     rs_command_query},
    {"view", "RUN...", "opens the window", "ringscope view ringscope-train-1", rs_command_view},
    {"status", "DIR", "says what each rank of a live, hung or killed run is in",
     "ringscope status ringscope-train-1   on the run's host: who is missing, who waits for whom",
     rs_command_status},
    {"control", "DIR start|stop|mark NAME",
     "switches recording in a live run on or off, or marks it",
     "ringscope control ringscope-train-1 stop   from now on calls leave no record\n"
     "  ringscope control ringscope-train-1 mark \"new data\"   a mark on every rank's timeline, "
     "while recording\n"
     "  ringscope control ringscope-train-1 start   they do again\n\n"
     "Each process obeys within 0.2 s, whatever RINGSCOPE_START and RINGSCOPE_STEPS say. Only the "
     "user who\nruns the program can ask. On hosts that don't share the folder, ask on each; or "
     "send the signal that\nRINGSCOPE_SIGNAL names.",
     rs_command_control},
    {"clean", "", "frees the memory that killed processes left on this host",
     "ringscope clean   saves what it holds into their captures, and says what it left",
     rs_command_clean},
    {"version", "", "prints the version", "ringscope version", rs_command_version},
};

static void print_help(FILE *out)
{
    fputs("usage: ringscope COMMAND [options] ...\n\n"
          "Says why distributed training does not scale, from a run it recorded.\n\nCommands:\n",
          out);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
    fputs("\nEach has --help with an example. RUN is a run folder, captures (.rsc) of one run,\n"
          "an exported .sqlite file, or traces of other tools (Chrome JSON, Horovod timelines).\n",
          out);
}

int rs_command_version(const RsCommand *self, int argc, char **argv)
{
    int status;
    if (!rs_command_parse(self, NULL, FALSE, &argc, &argv, &status))
        return status;
    if (argc != 1)
        return rs_command_usage(self, "takes no arguments");
    printf("ringscope %s (captures of format %d.%d)\n", RS_VERSION, RS_FORMAT_MAJOR,
           RS_FORMAT_MINOR);
    return 0;
}

static const RsCommand *find_command(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    fprintf(stderr, "ringscope: no command '%s' (try: ringscope --help)\n", name);
    return RS_EXIT_FAILED;
}

/* `ringscope help report` is `ringscope report --help`. */
static int help_with(const char *name)
{
    const RsCommand *c = name ? find_command(name) : NULL;
    char *argv[] = {(char *)name, (char *)"--help", NULL};
    if (c)
        return c->run(c, 2, argv);
    if (name)
        return refuse_command(name);
    print_help(stdout);
    return 0;
}

static void clean_up_and_die(int sig)
{
    rs_export_abandon();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Ctrl-C leaves no half of a file behind, nor does the alarm that a traced program's end sets. What
 * was ignored when we began stays ignored. */
static void catch_interrupts(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        if (signal(signals[i], clean_up_and_die) == SIG_IGN)
            signal(signals[i], SIG_IGN);
}

/* An answer that did not fit on its disk is no answer. */
static int check_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "ringscope: can't write the answer: %s\n", g_strerror(errno));
    return RS_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* numbers stay in the C locale: output is read by programs */
    if (argc < 2) {
        print_help(stderr);
        return RS_EXIT_FAILED;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return check_output(help_with(argv[2]));
    const RsCommand *c = find_command(strcmp(name, "--version") == 0 ? "version" : name);
    if (!c)
        return refuse_command(name);
    signal(SIGXFSZ, SIG_IGN); /* a file over its limit is an error that can be told */
    catch_interrupts();
    return check_output(c->run(c, argc - 1, argv + 1));
}
