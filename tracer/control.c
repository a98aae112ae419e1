/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - who asks from outside: `ringscope control`, which adds lines to the file "control" in
 * the run folder, and RINGSCOPE_SIGNAL, each of which switches capture over.
 *
 * The drain thread looks for new lines every 0.1 to 0.2 s. What stood there when the capture began
 * is an earlier run's. A line is "start", "stop" or "mark NAME"; others are passed over. The file
 * counts only where it is this user's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state.h"

#define LOOK_NS   100000000u
#define LINE_MAX_ 1024

static char path[RS_RING_PATH_MAX];
static off_t seen;
static ino_t inode;
static uint64_t looked_ns;
static uint32_t signals; /* atomic: that nobody has obeyed yet */

static bool find(struct stat *ret)
{
    return lstat(path, ret) == 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid();
}

/* ---- the signal ---- */

static void on_signal(int sig)
{
    int saved = errno;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
    rs_drain_wake();
    errno = saved;
}

static void install(int sig)
{
    struct sigaction now, own = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(sig, &own, NULL);
    else if (now.sa_handler != on_signal)
        rs_meta_set_locked("setting.RINGSCOPE_SIGNAL",
                           "RINGSCOPE_SIGNAL: the program handles that signal itself: it keeps it");
}

void rs_control_start(void)
{
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/control", rs_env.dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        path[0] = 0;
    bool there = find(&st);
    seen = there ? st.st_size : 0;
    inode = there ? st.st_ino : 0;
    if (rs_env.signal)
        install(rs_env.signal);
}

/* ---- the file ---- */

static void put_mark(const char *name)
{
    uint32_t text = rs_defs_string(name, strlen(name)), domain = rs_defs_string("control", 7);
    if (*rs_state.on && !rs_self)
        rs_thread_name((uint32_t)syscall(SYS_gettid), "control");
    struct rs_thread *t = rs_thread_if_recording();
    if (!t || !rs_room(t, 1))
        return;
    struct rs_range_event *e = rs_slot(t, 0);
    *e = (struct rs_range_event){.op = RS_OP_MARK, .name = text, .domain = domain};
    e->start = e->end = rs_tick();
    rs_commit(t, 1);
}

static void obey(const char *line)
{
    if (strcmp(line, "start") == 0)
        rs_window_ask(true, RS_SWITCH_CONTROL);
    else if (strcmp(line, "stop") == 0)
        rs_window_ask(false, RS_SWITCH_CONTROL);
    else if (strncmp(line, "mark ", 5) == 0)
        put_mark(line + 5);
}

/* Whole lines alone: one without its end is still being written. A line too long for the buffer is
 * none of ours. */
static void read_lines(int fd)
{
    char text[LINE_MAX_ + 1], *end;
    ssize_t n;
    while ((n = pread(fd, text, LINE_MAX_, seen)) > 0) {
        text[n] = 0;
        char *line = text;
        for (; (end = memchr(line, '\n', (size_t)(text + n - line))); line = end + 1) {
            *end = 0;
            obey(line);
        }
        if (line == text && n < LINE_MAX_)
            return;
        seen += line == text ? n : line - text;
    }
}

static void look_at_file(void)
{
    struct stat st;
    if (!path[0] || !find(&st) || (st.st_ino == inode && st.st_size == seen))
        return;
    seen = st.st_ino == inode && st.st_size > seen ? seen : 0;
    inode = st.st_ino;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    read_lines(fd);
    close(fd);
}

void rs_control_look(uint64_t now_ns)
{
    if (!rs_state.started)
        return;
    if (__atomic_exchange_n(&signals, 0, __ATOMIC_RELAXED) % 2)
        rs_window_ask(rs_window_is_off(), RS_SWITCH_SIGNAL);
    if (now_ns - looked_ns < LOOK_NS)
        return;
    looked_ns = now_ns;
    look_at_file();
}
