/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-memory-file.h - memory that other processes of the machine can map: a file without a path,
 * known by its process, descriptor and a token.
 *
 * Who opens it does so through /proc/<pid>/fd: it must be allowed to (the same user is) and see the
 * same process numbers. When the last process that has it ends, however it does, it is gone.
 * Errors: negative errno.
 */
#ifndef RT_MEMORY_FILE_H
#define RT_MEMORY_FILE_H

#include <stdint.h>

#define RT_MEMORY_FILE_HEAD ((uint64_t)4096) /* a page: has the token */

/* No file: all 0. */
struct rt_memory_name {
    uint64_t token[2];
    int32_t pid, fd;
};

/* Of the head alone. Returns its descriptor, ret->fd. */
int rt_memory_file_new(struct rt_memory_name *ret);
/* Zeros up to there. */
int rt_memory_file_grow(int fd, uint64_t bytes);
/* While the process of that name has it open: a descriptor. -ENOENT: there is none (any more). */
int rt_memory_file_open(const struct rt_memory_name *name);

#endif
