/* SPDX-License-Identifier: Apache-2.0 */
#include "orphans.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recover.h"
#include "ring.h"

static void orphan_free(gpointer data)
{
    RsOrphan *o = data;
    g_free(o->capture);
    g_ptr_array_unref(o->files);
    g_free(o);
}

/* "ringscope-<uid>-<pid>-<start, hex>[-<image>].<number>", as tracer/life.c names them. */
static gboolean parse_name(const gchar *name, gint64 *ret_pid, guint64 *ret_start,
                           guint *ret_number)
{
    guint uid, image, number;
    gint64 pid;
    guint64 start;
    int n = 0;
    if (sscanf(name, "ringscope-%u-%" G_GINT64_FORMAT "-%" G_GINT64_MODIFIER "x%n", &uid, &pid,
               &start, &n) != 3)
        return FALSE;
    name += n;
    if (sscanf(name, "-%u%n", &image, &n) == 1)
        name += n;
    n = 0;
    if (sscanf(name, ".%u%n", &number, &n) != 1 || name[n])
        return FALSE;
    *ret_pid = pid;
    *ret_start = start;
    *ret_number = number;
    return uid == geteuid();
}

static gint64 seconds_since(const struct stat *st)
{
    return MAX((gint64)time(NULL) - st->st_mtim.tv_sec, 0);
}

/* Where a process keeps its capture; NULL where the file is no control file of that process. */
static gchar *read_capture_path(int fd, gint64 pid, guint64 start)
{
    struct rs_ring_process p;
    if (pread(fd, &p, sizeof p, 0) != sizeof p || p.magic != RS_RING_MAGIC ||
        p.version != RS_RING_VERSION || p.pid != pid || p.pid_start != start)
        return NULL;
    p.capture[sizeof p.capture - 1] = 0;
    return g_strdup(p.capture);
}

static void look_for_capture(RsOrphan *o)
{
    struct stat st;
    o->there = o->capture[0] && lstat(o->capture, &st) == 0 && S_ISREG(st.st_mode);
    if (o->there)
        o->quiet_s = MIN(o->quiet_s, seconds_since(&st));
}

/* The images of one process, before and after an exec, are apart: each has its capture. */
static RsOrphan *orphan_of(GHashTable *by_prefix, const gchar *path, gint64 pid, guint64 start)
{
    g_autofree gchar *prefix = g_strndup(path, (gsize)(strrchr(path, '.') - path));
    RsOrphan *o = g_hash_table_lookup(by_prefix, prefix);
    if (o)
        return o;
    o = g_new0(RsOrphan, 1);
    *o = (RsOrphan){.pid = pid, .start = start, .quiet_s = G_MAXINT64};
    o->capture = g_strdup("");
    o->files = g_ptr_array_new_with_free_func(g_free);
    g_hash_table_insert(by_prefix, g_steal_pointer(&prefix), o);
    return o;
}

static void take(GHashTable *by_prefix, const gchar *folder, const gchar *name)
{
    gint64 pid;
    guint64 start;
    guint number;
    struct stat st;
    if (!parse_name(name, &pid, &start, &number) || rs_process_lives(pid, start))
        return;
    g_autofree gchar *path = g_build_filename(folder, name, NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
        RsOrphan *o = orphan_of(by_prefix, path, pid, start);
        gchar *capture = number == 0 ? read_capture_path(fd, pid, start) : NULL;
        if (capture) {
            g_free(o->capture);
            o->capture = capture;
        }
        o->bytes += (guint64)st.st_blocks * 512;
        o->quiet_s = MIN(o->quiet_s, seconds_since(&st));
        g_ptr_array_insert(o->files, number == 0 ? -1 : 0, g_steal_pointer(&path));
    }
    if (fd >= 0)
        close(fd);
}

static gint by_capture(gconstpointer a, gconstpointer b)
{
    const RsOrphan *x = *(RsOrphan *const *)a, *y = *(RsOrphan *const *)b;
    gint order = strcmp(x->capture, y->capture);
    return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

GPtrArray *rs_orphans_list(const gchar *folder)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(orphan_free);
    g_autoptr(GHashTable) by_prefix = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const gchar *name;
    while (dir && (name = g_dir_read_name(dir)))
        take(by_prefix, folder, name);
    GHashTableIter i;
    gpointer orphan;
    g_hash_table_iter_init(&i, by_prefix);
    while (g_hash_table_iter_next(&i, NULL, &orphan)) {
        look_for_capture(orphan);
        g_ptr_array_add(list, orphan);
    }
    g_ptr_array_sort(list, by_capture);
    return list;
}

void rs_orphan_remove(const RsOrphan *o)
{
    for (guint i = 0; i < o->files->len; i++)
        g_unlink(g_ptr_array_index(o->files, i));
}
