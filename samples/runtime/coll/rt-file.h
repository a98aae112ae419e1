/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-file.h - files by names that a user gives, and what a process may not write to one.
 *
 * A name may lead to a pipe at whose other end nobody is, to a device, a folder: opening one waits
 * for nobody, and what is no regular file is refused, unread. Past the limit of a file's size
 * (ulimit -f) the system sends a signal that ends the process; between rt_file_limit_begin and _end
 * this thread's calls fail with EFBIG alone. Errors: negative errno; rt_file_why has the words.
 */
#ifndef RT_FILE_H
#define RT_FILE_H

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

/* As open(2), close-on-exec. -ENXIO: it is there, and no regular file. */
int rt_file_open(const char *path, int flags, mode_t mode);
/* As fopen(3) for reading. NULL: *ret_error says why. */
FILE *rt_file_read(const char *path, int *ret_error);
/* May a new file take its place? -ENXIO or -EISDIR: something is there that isn't a file. */
int rt_file_replaceable(const char *path);
/* As strerror(3) of -error, for a file. */
const char *rt_file_why(int error);

struct rt_file_limit {
    sigset_t before;
    int was_pending;
};

/* One pair within another is harmless. errno stays. */
void rt_file_limit_begin(struct rt_file_limit *limit);
void rt_file_limit_end(const struct rt_file_limit *limit);

#endif
