/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c - the program's calls on files that take long: they are what a step waits for.
 *
 * Each wrapper makes the real call as it is, cancellation point and errno included, and looks at
 * the clock before and after only while the process is a capture. Only then, and where the call
 * took SHORTEST_US or more, it asks what the descriptor is: files and block devices are recorded;
 * sockets, pipes, terminals, /proc and /sys are not. The record is made after the call, so a thread
 * that is cancelled in it leaves nothing half done. What the tracer does itself (rs_quiet), and
 * calls inside a recorded one (MPI's own files), are passed through.
 *
 * The C library's stdio doesn't go through its own read and write: fread and fwrite are wrapped,
 * but look at the clock only for as much as a buffer holds, as less costs about as much as the
 * look.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "parts.h"
#include "state.h"

#define SHORTEST_US 100
#define STDIO_LEAST 4096 /* bytes */
#define PATHS_MAX   4096 /* different ones that are named */

static bool enabled;

/* ---- the record ---- */

/* Programs that read millions of files would fill the definitions with their names. */
static bool may_name(const char *path)
{
    static uint64_t seen[2 * PATHS_MAX];
    static uint32_t count;
    uint64_t h = 1;
    for (const char *p = path; *p; p++)
        h = rs_hash_mix(h, (unsigned char)*p);
    h |= 1;
    for (size_t i = h % (2 * PATHS_MAX);; i = (i + 1) % (2 * PATHS_MAX)) {
        uint64_t there = __atomic_load_n(&seen[i], __ATOMIC_RELAXED);
        if (there == h)
            return true;
        if (there != 0)
            continue;
        if (__atomic_load_n(&count, __ATOMIC_RELAXED) >= PATHS_MAX)
            return false;
        if (__atomic_compare_exchange_n(&seen[i], &there, h, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
            return true;
        }
        if (there == h)
            return true;
    }
}

static bool is_kernels(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
}

/* What is open as `fd`, if it is a file. */
static bool path_of(int fd, char *ret, size_t size)
{
    struct stat st;
    char link[40];
    if (fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, size - 1);
    ret[n > 0 ? n : 0] = 0;
    return true;
}

/* As a program writes it: read, not __read_chk; pread, not pread64. */
static uint32_t plain_name(const char *call)
{
    call += strncmp(call, "__", 2) == 0 ? 2 : 0;
    return rs_core->string(call, strcspn(call, "6_"));
}

/* `path`: where there is no `fd`. `done`: bytes, negative where the call failed. */
static void record(uint64_t start, uint64_t end, const char *call, int fd, const char *path,
                   int64_t done)
{
    char text[PATH_MAX];
    if (fd >= 0 && !path_of(fd, text, sizeof(text)))
        return;
    if (fd >= 0)
        path = text;
    struct rs_thread *t = path && !is_kernels(path) ? rs_thread_if_recording() : NULL;
    if (!t)
        return;
    if (!may_name(path))
        path = "(other files)";
    uint32_t name = rs_core->string(path, strlen(path)), category = plain_name(call);
    if (!rs_room(t, 1))
        return;
    struct rs_range_event *e = rs_slot(t, 0);
    *e = (struct rs_range_event){.op = RS_OP_IO, .start = start, .end = end};
    e->flags = done < 0 ? RS_EVENT_FAILED : 0;
    e->name = name;
    e->category = category;
    e->payload = done > 0 ? (uint64_t)done : 0;
    e->payload_type = 1;
    rs_commit(t, 1);
}

static uint64_t begin(void)
{
    bool watched =
        enabled && *rs_core->started && *rs_core->on && !rs_quiet && !(rs_self && rs_self->depth);
    return watched ? rs_tick() : 0;
}

static void end_long(uint64_t start, const char *call, int fd, const char *path, int64_t done)
{
    uint64_t end = rs_tick();
    if (RS_LIKELY((end - start) * (1000000 / SHORTEST_US) < rs_state.ticks_per_s))
        return;
    int saved = errno;
    if (rs_life_is_own())
        record(start, end, call, fd, path, done);
    errno = saved;
}

static inline void finish(uint64_t start, const char *call, int fd, const char *path, int64_t done)
{
    if (start)
        end_long(start, call, fd, path, done);
}

/* ---- the real ones ---- */

static long missing(void)
{
    errno = ENOSYS;
    return -1;
}

/* Constructors of other libraries may call before ours has run. */
static void *find(void **real, const char *name)
{
    void *f = __atomic_load_n(real, __ATOMIC_RELAXED);
    if (RS_LIKELY(f != NULL))
        return f;
    int saved = errno;
    f = dlsym(RTLD_NEXT, name);
    errno = saved;
    if (!f)
        f = (void *)missing;
    __atomic_store_n(real, f, __ATOMIC_RELAXED);
    return f;
}

/* Exported under the C library's name, by a name of its own here: its headers may declare these
 * functions by other names (64-bit offsets) or define them (fortified). */
#define DECLARE(result, name, parameters)                                                          \
    result rs_io_##name parameters __asm__(#name) __attribute__((visibility("default")));

#define REAL(result, name, parameters)                                                             \
    static void *place_of_real;                                                                    \
    result(*real) parameters = (result(*) parameters)find(&place_of_real, #name)

/* A call on `fd` that moves as many bytes as it returns, or is unlucky. */
#define MOVES(result, name, parameters, arguments)                                                 \
    DECLARE(result, name, parameters)                                                              \
    result rs_io_##name parameters                                                                 \
    {                                                                                              \
        REAL(result, name, parameters);                                                            \
        uint64_t start = begin();                                                                  \
        result done = real arguments;                                                              \
        finish(start, #name, fd, NULL, (int64_t)done);                                             \
        return done;                                                                               \
    }

MOVES(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
MOVES(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
MOVES(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
MOVES(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
MOVES(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at))
MOVES(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
MOVES(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
MOVES(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
MOVES(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
MOVES(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at))
MOVES(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
MOVES(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at))
MOVES(int, fsync, (int fd), (fd))
MOVES(int, fdatasync, (int fd), (fd))
/* What -D_FORTIFY_SOURCE makes of them. */
MOVES(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n, room))
MOVES(ssize_t, __pread_chk, (int fd, void *to, size_t n, off_t at, size_t room),
      (fd, to, n, at, room))
MOVES(ssize_t, __pread64_chk, (int fd, void *to, size_t n, off64_t at, size_t room),
      (fd, to, n, at, room))

/* A call that opens `path`. */
#define OPENS(name, parameters, arguments)                                                         \
    DECLARE(int, name, parameters)                                                                 \
    int rs_io_##name parameters                                                                    \
    {                                                                                              \
        REAL(int, name, parameters);                                                               \
        uint64_t start = begin();                                                                  \
        int fd = real arguments;                                                                   \
        finish(start, #name, fd, path, fd < 0 ? -1 : 0);                                           \
        return fd;                                                                                 \
    }

OPENS(__open_2, (const char *path, int flags), (path, flags))
OPENS(__open64_2, (const char *path, int flags), (path, flags))
OPENS(__openat_2, (int at, const char *path, int flags), (at, path, flags))
OPENS(__openat64_2, (int at, const char *path, int flags), (at, path, flags))
OPENS(creat, (const char *path, mode_t mode), (path, mode))
OPENS(creat64, (const char *path, mode_t mode), (path, mode))

/* With a mode where the flags say that there is one. */
#define OPENS_MODE(name, parameters, with_mode)                                                    \
    DECLARE(int, name, parameters)                                                                 \
    int rs_io_##name parameters                                                                    \
    {                                                                                              \
        REAL(int, name, parameters);                                                               \
        mode_t mode = 0;                                                                           \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)                                   \
            mode = va_arg(more, mode_t);                                                           \
        va_end(more);                                                                              \
        uint64_t start = begin();                                                                  \
        int fd = real with_mode;                                                                   \
        finish(start, #name, fd, path, fd < 0 ? -1 : 0);                                           \
        return fd;                                                                                 \
    }

OPENS_MODE(open, (const char *path, int flags, ...), (path, flags, mode))
OPENS_MODE(open64, (const char *path, int flags, ...), (path, flags, mode))
OPENS_MODE(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPENS_MODE(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode))

#define OPENS_STREAM(name)                                                                         \
    DECLARE(FILE *, name, (const char *path, const char *mode))                                    \
    FILE *rs_io_##name(const char *path, const char *mode)                                         \
    {                                                                                              \
        REAL(FILE *, name, (const char *, const char *));                                          \
        uint64_t start = begin();                                                                  \
        FILE *f = real(path, mode);                                                                \
        finish(start, #name, f ? fileno(f) : -1, f ? NULL : path, f ? 0 : -1);                     \
        return f;                                                                                  \
    }

OPENS_STREAM(fopen)
OPENS_STREAM(fopen64)

/* A stream without a descriptor (memory) has no path either, and is not recorded. */
#define MOVES_STREAM(name, parameters, arguments)                                                  \
    DECLARE(size_t, name, parameters)                                                              \
    size_t rs_io_##name parameters                                                                 \
    {                                                                                              \
        REAL(size_t, name, parameters);                                                            \
        uint64_t start = size * n >= STDIO_LEAST ? begin() : 0;                                    \
        size_t done = real arguments;                                                              \
        if (start)                                                                                 \
            end_long(start, #name, fileno(f), NULL, (int64_t)(done * size));                       \
        return done;                                                                               \
    }

MOVES_STREAM(fread, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f))
MOVES_STREAM(__fread_chk, (void *to, size_t room, size_t size, size_t n, FILE *f),
             (to, room, size, n, f))
MOVES_STREAM(fwrite, (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f))

DECLARE(int, fflush, (FILE * f))
int rs_io_fflush(FILE *f)
{
    REAL(int, fflush, (FILE *));
    uint64_t start = f ? begin() : 0;
    int done = real(f);
    if (start)
        end_long(start, "fflush", fileno(f), NULL, done);
    return done;
}

void rs_io_init(const char *library)
{
    enabled = rs_core && (rs_core->parts & RS_PART_IO);
}
