/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command-control.c - `ringscope control DIR start|stop|mark NAME`: asks the processes of a live
 * run, by a line in the file "control" of their run folder (tracer/control.c reads it).
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "command.h"
#include "recover.h"

#define NAME_MAX_BYTES 900

/* The line, NULL where the words make none. */
static gchar *dup_line(int argc, char **argv)
{
    gboolean mark = argc == 4 && strcmp(argv[2], "mark") == 0;
    if (mark && argv[3][0] && strlen(argv[3]) <= NAME_MAX_BYTES && !strpbrk(argv[3], "\n\r"))
        return g_strdup_printf("mark %s\n", argv[3]);
    if (argc == 3 && (strcmp(argv[2], "start") == 0 || strcmp(argv[2], "stop") == 0))
        return g_strdup_printf("%s\n", argv[2]);
    return NULL;
}

typedef struct {
    guint captures, here, living, others; /* those of another user, who is `owner` */
    uid_t owner;
} Run;

static void look_at_capture(Run *run, const gchar *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && st.st_uid != geteuid()) {
        run->others++;
        run->owner = st.st_uid;
        return;
    }
    g_autoptr(RsBlocks) blocks = rs_blocks_open(path, 1 << 20, NULL);
    if (!blocks)
        return;
    g_autoptr(GHashTable) meta = rs_capture_meta(blocks);
    const gchar *machine = g_hash_table_lookup(meta, "machine");
    const gchar *pid = g_hash_table_lookup(meta, "pid");
    const gchar *start = g_hash_table_lookup(meta, "pid.start");
    gboolean here = machine && pid && start && g_str_equal(machine, g_get_host_name());
    run->captures++;
    run->here += here;
    run->living +=
        here && rs_process_lives(g_ascii_strtoll(pid, NULL, 10), g_ascii_strtoull(start, NULL, 10));
}

/* The program's user reads the requests, and nobody else's. */
static void say_whose(GError **error, const gchar *folder, uid_t owner)
{
    const struct passwd *p = getpwuid(owner);
    g_autofree gchar *name =
        p ? g_strdup(p->pw_name) : g_strdup_printf("number %u", (unsigned)owner);
    g_set_error(error, RS_ERROR, RS_ERROR_IO,
                "%s: a run of user %s, who alone can control it: do it as that user", folder, name);
}

static GDir *open_folder(const gchar *folder, GError **error)
{
    struct stat st;
    if (stat(folder, &st) != 0 && errno != EACCES)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: %s: name the folder that the run records into (RINGSCOPE_DIR, or -o of "
                    "`ringscope run`)",
                    folder, g_strerror(errno));
    else if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: no folder: name the one that the run records into", folder);
    else if (stat(folder, &st) == 0 && st.st_uid != geteuid() && access(folder, R_OK | X_OK) != 0)
        say_whose(error, folder, st.st_uid);
    else
        return g_dir_open(folder, 0, error);
    return NULL;
}

static gboolean look_at_folder(Run *run, const gchar *folder, GError **error)
{
    GDir *dir = open_folder(folder, error);
    if (!dir)
        return FALSE;
    for (const gchar *name; (name = g_dir_read_name(dir));) {
        g_autofree gchar *path = g_build_filename(folder, name, NULL);
        if (rs_capture_is_named(name))
            look_at_capture(run, path);
    }
    g_dir_close(dir);
    if (run->captures == 0 && run->others)
        say_whose(error, folder, run->owner);
    else if (run->captures == 0)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: no capture in it: name the run folder (RINGSCOPE_DIR) of a run that has "
                    "called MPI or NCCL",
                    folder);
    else if (run->here == run->captures && run->living == 0)
        g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE,
                    "%s: its run is over: none of the %u processes that recorded there lives",
                    folder, run->captures);
    return run->captures > 0 && (run->living || run->here < run->captures);
}

/* One write, so that lines of several who ask do not mix. */
static gboolean append_line(const gchar *folder, const gchar *line, GError **error)
{
    g_autofree gchar *path = g_build_filename(folder, "control", NULL);
    struct stat st;
    errno = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    gboolean own = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    gssize bytes = (gssize)strlen(line);
    gboolean done = own && write(fd, line, (gsize)bytes) == bytes;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (!done)
        g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't add a line: %s", path,
                    fd >= 0 && !own ? "not a regular file of this user; only who runs the program "
                                      "can control it"
                                    : g_strerror(saved));
    return done;
}

int rs_command_control(const RsCommand *self, int argc, char **argv)
{
    int status;
    if (!rs_command_parse(self, NULL, FALSE, &argc, &argv, &status))
        return status;
    if (argc < 3)
        return rs_command_usage(self, "which run, and what? DIR start, DIR stop, or DIR mark NAME");
    g_autofree gchar *line = dup_line(argc, argv);
    if (!line)
        return rs_command_usage(self,
                                "'%s'%s: start, stop, or mark and a NAME of one line, up to %d "
                                "bytes",
                                argv[2], argc > 3 ? " with what follows it" : "", NAME_MAX_BYTES);
    g_autoptr(GError) error = NULL;
    Run run = {0};
    if (!look_at_folder(&run, argv[1], &error) || !append_line(argv[1], line, &error))
        return rs_command_fail(error);
    if (!rs_command_quiet)
        fprintf(stderr, "ringscope: %s is asked of %u process%s on this host%s\n", argv[2],
                run.living, run.living == 1 ? "" : "es",
                run.here < run.captures
                    ? ", and of those on other hosts where they share the folder"
                    : "");
    return 0;
}
