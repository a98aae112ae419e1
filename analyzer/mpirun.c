/* SPDX-License-Identifier: Apache-2.0 */
#include "mpirun.h"

#include <string.h>
#include <unistd.h>

#include "run.h"

/* A path with a space in it is a program, too. */
static gchar **split(const gchar *launcher, GError **error)
{
    g_autofree gchar *path = g_find_program_in_path(launcher);
    gchar **words = NULL;
    if (!path) {
        g_shell_parse_argv(launcher, NULL, &words, error);
        return words;
    }
    words = g_new0(gchar *, 2);
    words[0] = g_strdup(launcher);
    return words;
}

static gboolean ask_version(const gchar *program, gchar **ret_said, GError **error)
{
    gchar *argv[] = {(gchar *)program, (gchar *)"--version", NULL};
    return g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                        NULL, ret_said, NULL, NULL, error);
}

static RsMpirunKind kind_of(const gchar *said)
{
    static const struct {
        const gchar *word;
        RsMpirunKind kind;
    } kinds[] = {{"Open MPI", RS_MPIRUN_OPEN_MPI},
                 {"OpenRTE", RS_MPIRUN_OPEN_MPI},
                 {"PRTE", RS_MPIRUN_OPEN_MPI},
                 {"rt-run (Ringscope)", RS_MPIRUN_RT_RUN}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strstr(said, kinds[i].word))
            return kinds[i].kind;
    return RS_MPIRUN_HYDRA;
}

gboolean rs_mpirun_init(RsMpirun *self, const gchar *launcher, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree gchar *said = NULL;
    g_auto(GStrv) words = split(launcher, &cause);
    if (!words || !ask_version(words[0], &said, &cause)) {
        g_set_error(error, RS_ERROR, RS_ERROR_USAGE,
                    "--np needs an mpirun: %s (name it with --mpirun)", cause->message);
        return FALSE;
    }
    self->words = g_steal_pointer(&words);
    self->kind = kind_of(said);
    return TRUE;
}

void rs_mpirun_release(RsMpirun *self)
{
    g_clear_pointer(&self->words, g_strfreev);
}

static void add(GPtrArray *line, const gchar *word)
{
    g_ptr_array_add(line, g_strdup(word));
}

static void add_environment(GPtrArray *line, const GPtrArray *settings, RsMpirunKind kind)
{
    for (guint i = 0; i + 1 < settings->len; i += 2) {
        const gchar *name = g_ptr_array_index(settings, i);
        const gchar *value = g_ptr_array_index(settings, i + 1);
        if (kind == RS_MPIRUN_HYDRA) {
            add(line, "-genv");
            add(line, name);
            add(line, value);
        } else {
            add(line, "-x");
            g_ptr_array_add(line, g_strconcat(name, "=", value, NULL));
        }
    }
}

gchar **rs_mpirun_line(const RsMpirun *self, guint ranks, const gchar *hosts,
                       const GPtrArray *settings, char **program)
{
    GPtrArray *line = g_ptr_array_new();
    for (guint i = 0; self->words[i]; i++)
        add(line, self->words[i]);
    add(line, "-np");
    g_ptr_array_add(line, g_strdup_printf("%u", ranks));
    if (hosts) {
        add(line, self->kind == RS_MPIRUN_HYDRA ? "-hosts" : "-H");
        add(line, hosts);
    }
    add_environment(line, settings, self->kind);
    for (guint i = 0; program[i]; i++)
        add(line, program[i]);
    g_ptr_array_add(line, NULL);
    return (gchar **)g_ptr_array_free(line, FALSE);
}

gchar *rs_mpirun_advice(const RsMpirun *self, guint ranks)
{
    g_autoptr(GString) needs = g_string_new(NULL), options = g_string_new(NULL);
    if (self->kind == RS_MPIRUN_OPEN_MPI && geteuid() == 0 && !g_getenv("OMPI_ALLOW_RUN_AS_ROOT") &&
        !g_strv_contains((const gchar *const *)self->words, "--allow-run-as-root")) {
        g_string_append(needs, "; as root Open MPI wants --allow-run-as-root");
        g_string_append(options, " --allow-run-as-root");
    }
    if (self->kind == RS_MPIRUN_OPEN_MPI && ranks > 1 &&
        !g_strv_contains((const gchar *const *)self->words, "--oversubscribe")) {
        g_string_append(needs, "; for more ranks than cores, --oversubscribe");
        g_string_append(options, " --oversubscribe");
    }
    g_autofree gchar *now = g_strjoinv(" ", self->words);
    return g_strdup_printf("options for the launcher go beside its name%s: ringscope run -np %u "
                           "--mpirun \"%s%s\" -- ...",
                           needs->str, ranks, now, options->len ? options->str : " OPTIONS");
}
