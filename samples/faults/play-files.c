/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow disk: stands before libc's read(), pread() and fsync(), beneath a tracer. A program that
 * is late otherwise (its batches don't come from a file) sleeps at the end of the phase.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/types.h>
#include <unistd.h>

#include "play.h"

static _Thread_local int64_t read_delay_ns, sync_delay_ns;

void rt_faults_delay_reads(int64_t ns)
{
    read_delay_ns += ns;
}

void rt_faults_delay_sync(int64_t ns)
{
    sync_delay_ns += ns;
}

int64_t rt_faults_take_delay(void)
{
    int64_t left = read_delay_ns + sync_delay_ns;
    read_delay_ns = sync_delay_ns = 0;
    return left;
}

static void spend(int64_t *delay_ns)
{
    int64_t ns = *delay_ns;
    if (ns == 0)
        return;
    int saved = errno;
    *delay_ns = 0;
    rt_faults_sleep(ns);
    errno = saved;
}

static void *next_definition(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

ssize_t read(int fd, void *buffer, size_t bytes)
{
    static ssize_t (*next)(int, void *, size_t);
    if (!next)
        *(void **)&next = next_definition("read");
    spend(&read_delay_ns);
    return next(fd, buffer, bytes);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    static ssize_t (*next)(int, void *, size_t, off_t);
    if (!next)
        *(void **)&next = next_definition("pread");
    spend(&read_delay_ns);
    return next(fd, buffer, bytes, offset);
}

int fsync(int fd)
{
    static int (*next)(int);
    if (!next)
        *(void **)&next = next_definition("fsync");
    spend(&sync_delay_ns);
    return next(fd);
}
