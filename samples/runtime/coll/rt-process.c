/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-process.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct stat_fields {
    char state;
    long threads;
    unsigned long long start;
};

/* The program's name, in brackets, may hold anything, brackets too: fields are counted from the
 * last. */
static bool parse_stat(const char *text, struct stat_fields *ret)
{
    const char *after = strrchr(text, ')');
    return after && sscanf(after + 1,
                           " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld"
                           " %*d %llu",
                           &ret->state, &ret->threads, &ret->start) == 3;
}

static bool read_stat(int pid, struct stat_fields *ret)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return false;
    text[got] = 0;
    return parse_stat(text, ret);
}

uint64_t rt_process_start(int pid)
{
    struct stat_fields f;
    return read_stat(pid, &f) ? f.start : 0;
}

bool rt_process_alive(int pid, uint64_t start)
{
    struct stat_fields f;
    if (!read_stat(pid, &f) || f.start != start)
        return false;
    return (f.state != 'Z' && f.state != 'X') || f.threads > 1;
}

char rt_process_state(int pid, uint64_t start)
{
    struct stat_fields f;
    return read_stat(pid, &f) && f.start == start ? f.state : 0;
}
