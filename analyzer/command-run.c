/* SPDX-License-Identifier: Apache-2.0 */
/* command-run.c - `ringscope run -- PROGRAM`: traces one program, then merges. */
#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"
#include "command.h"
#include "launch.h"
#include "merge.h"
#include "mpirun.h"
#include "program-file.h"
#include "settings.h"

typedef struct {
    gchar *folder, *trace, *ranks, *hosts, *mpirun;
} Options;

static void options_clear(Options *o)
{
    g_free(o->folder);
    g_free(o->trace);
    g_free(o->ranks);
    g_free(o->hosts);
    g_free(o->mpirun);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, options_clear)

static gboolean parse(const RsCommand *self, Options *o, int *argc, char ***argv, int *ret_status)
{
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o->folder, "the run folder", "DIR"},
        {"trace", 0, 0, G_OPTION_ARG_STRING, &o->trace,
         "what to record (default: " RS_TRACE_DEFAULT "; known besides: counters, cuda)", "LIST"},
        {"np", 'n', 0, G_OPTION_ARG_STRING, &o->ranks, "start N ranks through mpirun", "N"},
        {"host", 'H', 0, G_OPTION_ARG_STRING, &o->hosts, "on these hosts (with --np)",
         "host:slots,..."},
        {"mpirun", 0, 0, G_OPTION_ARG_FILENAME, &o->mpirun,
         "the mpirun of the program's MPI, with options of its own (default: mpirun)",
         "\"PROGRAM [OPTIONS]\""},
        G_OPTION_ENTRY_NULL};
    return rs_command_parse(self, entries, TRUE, argc, argv, ret_status);
}

/* mpirun's users write -np with one dash; GLib reads that as -n -p. Stops where the program begins.
 */
static void respell_np(int argc, char **argv)
{
    static const gchar *const with_value[] = {"-o", "--output", "--trace",  "-n", "--np",
                                              "-H", "--host",   "--mpirun", NULL};
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-np") == 0)
            argv[i] = (char *)"--np";
        if (g_strv_contains(with_value, argv[i]))
            i++;
    }
}

/* What is wrong with --trace; NULL nothing. */
static gchar *check_trace(const gchar *trace)
{
    const char *unknown = NULL;
    size_t n = 0;
    if (trace)
        rs_words_find(RS_TRACE_WORDS, trace, &unknown, &n);
    return unknown ? g_strdup_printf("--trace %s: unknown '%.*s'; known: " RS_TRACE_WORDS, trace,
                                     (int)n, unknown)
                   : NULL;
}

/* How many ranks to start; 0 where that is left to the program. */
static gboolean parse_ranks(const Options *o, guint *ret, GError **error)
{
    guint64 ranks = 0;
    if (o->ranks && !g_ascii_string_to_unsigned(o->ranks, 10, 1, G_MAXINT, &ranks, NULL)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "-np %s: expected a number of ranks, from 1",
                    o->ranks);
        return FALSE;
    }
    if (!ranks && (o->hosts || o->mpirun)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE, "%s goes with -np N",
                    o->hosts ? "-H" : "--mpirun");
        return FALSE;
    }
    *ret = (guint)ranks;
    return TRUE;
}

static gchar *make_run_id(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree gchar *when = g_date_time_format(now, "%Y%m%d-%H%M%S");
    return g_strdup_printf("%s-%d", when, (int)getpid());
}

/* The folder, absolute, made for this user alone. */
static gchar *make_folder(const gchar *wanted, const gchar *program, const gchar *run_id,
                          GError **error)
{
    g_autofree gchar *name = g_path_get_basename(program);
    g_autofree gchar *fallback = g_strdup_printf("ringscope-%s-%s", name, run_id);
    g_autofree gchar *path = g_canonicalize_filename(wanted ? wanted : fallback, NULL);
    if (g_mkdir_with_parents(path, 0700) == 0 && access(path, W_OK | X_OK) == 0)
        return g_steal_pointer(&path);
    g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't make or write the run folder: %s", path,
                g_strerror(errno));
    return NULL;
}

static gboolean is_sanitizer(const gchar *library)
{
    g_autofree gchar *base = g_path_get_basename(library);
    return g_str_has_prefix(base, "libasan.so");
}

/* The tracer, then what the user preloads. But the address sanitizer's library ends a program where
 * it isn't first: it goes before both, whether the user preloads it or the program asks for it. */
static gchar *make_preload(const gchar *tracer, const RsProgramFile *file)
{
    const gchar *preloaded = g_getenv("LD_PRELOAD");
    g_auto(GStrv) words = g_strsplit_set(preloaded ? preloaded : "", ": ", -1);
    g_autoptr(GString) first = g_string_new(NULL), rest = g_string_new(tracer);
    for (guint i = 0; words[i]; i++) {
        if (words[i][0] && is_sanitizer(words[i]))
            g_string_append_printf(first, "%s:", words[i]);
        else if (words[i][0])
            g_string_append_printf(rest, ":%s", words[i]);
    }
    if (file->asan && !first->len)
        g_string_append_printf(first, "%s:", file->asan);
    return g_strconcat(first->str, rest->str, NULL);
}

/* What a traced process is told, as NAME, VALUE pairs. */
static GPtrArray *make_settings(const Options *o, const gchar *folder, const gchar *run_id,
                                const gchar *tracer, const RsProgramFile *file)
{
    GPtrArray *s = g_ptr_array_new_with_free_func(g_free);
    const gchar *pairs[][2] = {
        {"RINGSCOPE_DIR", folder},
        {"RINGSCOPE_RUN_ID", run_id},
        {"RINGSCOPE_EXPORT", "none"}, /* merged at the end, all ranks at once */
        {"RINGSCOPE_TRACE", o->trace},
    };
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        if (!pairs[i][1])
            continue;
        g_ptr_array_add(s, g_strdup(pairs[i][0]));
        g_ptr_array_add(s, g_strdup(pairs[i][1]));
    }
    g_ptr_array_add(s, g_strdup("LD_PRELOAD"));
    g_ptr_array_add(s, make_preload(tracer, file));
    return s;
}

/* What is to be started, and how: through `mpirun` where `ranks` are asked for. */
typedef struct {
    guint ranks;
    RsMpirun mpirun;
} Launcher;

static void launcher_release(Launcher *l)
{
    rs_mpirun_release(&l->mpirun);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Launcher, launcher_release)

static gboolean launch(const Options *o, const Launcher *l, const GPtrArray *settings,
                       char **program, int *ret_status, GError **error)
{
    g_auto(GStrv) environment = g_get_environ();
    if (l->ranks > 0) {
        g_auto(GStrv) line = rs_mpirun_line(&l->mpirun, l->ranks, o->hosts, settings, program);
        return rs_launch(line, environment, ret_status, error);
    }
    for (guint i = 0; i + 1 < settings->len; i += 2)
        environment = g_environ_setenv(environment, g_ptr_array_index(settings, i),
                                       g_ptr_array_index(settings, i + 1), TRUE);
    return rs_launch(program, environment, ret_status, error);
}

/* Those of earlier runs stay in a folder that is named again. */
static guint count_captures(const gchar *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    guint count = 0;
    const gchar *name;
    while (dir && (name = g_dir_read_name(dir)))
        count += g_str_has_suffix(name, ".rsc");
    if (dir)
        g_dir_close(dir);
    return count;
}

/* Whose fault it is depends on how what we started ended. `trace`: what was to be recorded where
 * that is not the default. */
static void say_nothing_recorded(const gchar *folder, const Launcher *l, const gchar *program,
                                 const RsProgramFile *file, const gchar *trace, int status)
{
    if (file->is_static) {
        fprintf(stderr,
                "ringscope: %s: nothing was recorded: %s is statically linked, so that no loader "
                "puts the tracer before it: link it without -static\n",
                folder, program);
        return;
    }
    if (status == 0) {
        g_autofree gchar *left =
            trace ? g_strdup_printf("called nothing of what was to be recorded (%s)", trace)
                  : g_strdup("called no MPI, NCCL or Gloo");
        fprintf(stderr,
                "ringscope: %s: nothing was recorded: the program %s, started one that is "
                "statically linked, or could not write there (then it said so above)\n",
                folder, left);
        return;
    }
    g_autofree gchar *signal =
        status > 128 && status <= 128 + SIGRTMAX
            ? g_strdup_printf(" (128 + signal %d, %s)", status - 128, strsignal(status - 128))
            : g_strdup("");
    fprintf(stderr,
            "ringscope: %s: nothing was recorded: %s ended with status %d%s, perhaps before the "
            "first call of MPI, NCCL or Gloo: look at what it said above\n",
            folder, l->ranks > 0 ? l->mpirun.words[0] : program, status, signal);
    g_autofree gchar *advice = l->ranks > 0 ? rs_mpirun_advice(&l->mpirun, l->ranks) : NULL;
    if (advice)
        fprintf(stderr, "ringscope: %s\n", advice);
}

/* The program's status stands, whatever becomes of the merge: that is said on stderr. */
static void merge(const gchar *folder)
{
    const RsMerge what = {.path = folder, .progress = rs_command_progress};
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) written = NULL;
    g_autoptr(RsModel) m = rs_merge(&what, &written, &error);
    rs_command_progress(1, "", NULL);
    if (!m) {
        rs_command_fail(error);
        return;
    }
    rs_command_warn(m);
    for (guint i = 0; !rs_command_quiet && written[i]; i++)
        fprintf(stderr, "ringscope: wrote %s\n", written[i]);
    if (!rs_command_quiet)
        fprintf(stderr, "ringscope: next: ringscope report %s\n", folder);
}

int rs_command_run(const RsCommand *self, int argc, char **argv)
{
    g_auto(Options) o = {0};
    int status;
    respell_np(argc, argv);
    if (!parse(self, &o, &argc, &argv, &status))
        return status;
    char **program = argv + 1;
    if (program[0] && strcmp(program[0], "--") == 0)
        program++;
    if (!program[0])
        return rs_command_usage(self, "name a program to run");
    g_autoptr(GError) error = NULL;
    g_auto(Launcher) launcher = {0};
    g_autofree gchar *wrong = check_trace(o.trace);
    if (wrong || !parse_ranks(&o, &launcher.ranks, &error))
        return rs_command_usage(self, "%s", wrong ? wrong : error->message);
    if (launcher.ranks > 0 &&
        !rs_mpirun_init(&launcher.mpirun, o.mpirun ? o.mpirun : "mpirun", &error))
        return rs_command_fail(error);
    g_autofree gchar *tracer = rs_beside_find_tracer(&error);
    g_autofree gchar *run_id = make_run_id();
    g_autofree gchar *folder = tracer ? make_folder(o.folder, program[0], run_id, &error) : NULL;
    if (!folder)
        return rs_command_fail(error);
    g_auto(RsProgramFile) file = {0};
    rs_program_file_read(&file, program[0]);
    g_autoptr(GPtrArray) settings = make_settings(&o, folder, run_id, tracer, &file);
    guint before = count_captures(folder);
    if (!launch(&o, &launcher, settings, program, &status, &error)) {
        g_rmdir(folder); /* only an empty one goes */
        return rs_command_fail(error);
    }
    if (count_captures(folder) > before) {
        merge(folder);
    } else {
        const gchar *trace = o.trace ? o.trace : g_getenv("RINGSCOPE_TRACE");
        say_nothing_recorded(folder, &launcher, program[0], &file, trace, status);
        g_rmdir(folder);
    }
    return status;
}
