/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export.h"
#include "run.h"

static char unfinished[PATH_MAX]; /* the temporary file of now, for a signal handler */

void rs_export_abandon(void)
{
    if (unfinished[0])
        unlink(unfinished);
}

gchar *rs_export_dup_temporary(const gchar *path)
{
    return g_strdup_printf("%s.part-%ld", path, (long)getpid());
}

static void set_error(GError **error, const gchar *path, int number)
{
    g_autofree gchar *folder = g_path_get_dirname(path);
    if (number == ENOENT && !g_file_test(folder, G_FILE_TEST_EXISTS))
        g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't be written: there is no folder %s",
                    path, folder);
    else
        g_set_error(error, RS_ERROR, RS_ERROR_IO, "%s: can't be written: %s", path,
                    g_strerror(number));
}

/* A device or a pipe would be gone with the rename, and a folder only refuses at the end. */
static gboolean may_be_replaced(const gchar *path, GError **error)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return TRUE;
    if (S_ISDIR(st.st_mode))
        set_error(error, path, EISDIR);
    else
        g_set_error(error, RS_ERROR, RS_ERROR_IO,
                    "%s: can't be written: a device or a pipe; name a file", path);
    return FALSE;
}

static int open_private(const gchar *temporary, const gchar *path, GError **error)
{
    if (!may_be_replaced(path, error))
        return -1;
    g_strlcpy(unfinished, temporary, sizeof unfinished); /* first: a signal may come at any time */
    unlink(temporary); /* of a process of the same number that died */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        set_error(error, path, errno);
    return fd;
}

gboolean rs_export_make_private(const gchar *temporary, const gchar *path, GError **error)
{
    int fd = open_private(temporary, path, error);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

RsStream *rs_stream_open(const gchar *path, GError **error)
{
    g_autofree gchar *temporary = rs_export_dup_temporary(path);
    int fd = open_private(temporary, path, error);
    if (fd < 0)
        return NULL;
    RsStream *s = g_malloc(sizeof *s);
    s->fd = fd;
    s->error = 0;
    s->used = 0;
    s->written = 0;
    s->path = g_strdup(path);
    s->temporary = g_steal_pointer(&temporary);
    return s;
}

void rs_stream_flush(RsStream *s)
{
    for (gsize at = 0; at < s->used && !s->error;) {
        ssize_t n = write(s->fd, s->buffer + at, s->used - at);
        if (n < 0 && errno != EINTR)
            s->error = errno;
        else if (n > 0)
            at += (gsize)n;
    }
    s->written += s->used;
    s->used = 0;
}

static void free_stream(RsStream *s)
{
    g_free(s->path);
    g_free(s->temporary);
    g_free(s);
}

void rs_stream_cancel(RsStream *s)
{
    close(s->fd);
    unlink(s->temporary);
    free_stream(s);
}

gboolean rs_stream_finish(RsStream *s, GError **error)
{
    rs_stream_flush(s);
    if (close(s->fd) < 0 && !s->error)
        s->error = errno;
    if (!s->error && rename(s->temporary, s->path) < 0)
        s->error = errno;
    int failed = s->error;
    if (failed) {
        set_error(error, s->path, failed);
        unlink(s->temporary);
    }
    free_stream(s);
    return !failed;
}

/* Two digits at a time, from the end. */
static gchar *digits(gchar *end, guint64 value)
{
    static const gchar pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    while (value >= 100) {
        end -= 2;
        memcpy(end, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        end -= 2;
        memcpy(end, pairs + value * 2, 2);
    } else {
        *--end = (gchar)('0' + value);
    }
    return end;
}

void rs_stream_put_u64(RsStream *s, guint64 value)
{
    gchar text[24], *begin = digits(text + sizeof text, value);
    rs_stream_put_len(s, begin, (gsize)(text + sizeof text - begin));
}

void rs_stream_put_i64(RsStream *s, gint64 value)
{
    if (value < 0)
        rs_stream_put_len(s, "-", 1);
    rs_stream_put_u64(s, value < 0 ? -(guint64)value : (guint64)value);
}

void rs_stream_put_us(RsStream *s, gint64 ns)
{
    gchar text[32], *end = text + sizeof text;
    guint64 value = ns < 0 ? -(guint64)ns : (guint64)ns;
    guint rest = (guint)(value % 1000);
    end[-1] = (gchar)('0' + rest % 10);
    end[-2] = (gchar)('0' + rest / 10 % 10);
    end[-3] = (gchar)('0' + rest / 100);
    end[-4] = '.';
    gchar *begin = digits(end - 4, value / 1000);
    if (ns < 0)
        *--begin = '-';
    rs_stream_put_len(s, begin, (gsize)(end - begin));
}
