/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files have names while they are opened, and none from then on: nothing is left when the
 * program is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "paced.h"
#include "rt-file.h"

#define BATCHES 4 /* in the file of a rank */

static void check(const struct paced *p, const char *path, bool holds)
{
    if (!holds)
        paced_die(p, path, strerror(errno));
}

static int open_new(const struct paced *p, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    check(p, path, fd >= 0);
    unlink(path);
    return fd;
}

static void put(const struct paced *p, const char *path, int fd, const void *data, size_t bytes)
{
    struct rt_file_limit limit;
    rt_file_limit_begin(&limit);
    for (const char *at = data; bytes > 0;) {
        ssize_t n = write(fd, at, bytes);
        check(p, path, n > 0 || (n < 0 && errno == EINTR));
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    rt_file_limit_end(&limit);
}

void paced_files_open(struct paced *p)
{
    snprintf(p->batches_path, sizeof p->batches_path, "%s/paced-%d-batches", p->o.dir, getpid());
    snprintf(p->checkpoint_path, sizeof p->checkpoint_path, "%s/paced-%d-checkpoint", p->o.dir,
             getpid());
    p->batches = open_new(p, p->batches_path);
    for (int i = 0; i < BATCHES; i++)
        put(p, p->batches_path, p->batches, p->batch, p->o.batch_bytes);
}

void paced_files_close(struct paced *p)
{
    close(p->batches);
}

void paced_read_batch(struct paced *p, int step)
{
    ssize_t bytes = (ssize_t)p->o.batch_bytes;
    check(p, p->batches_path,
          pread(p->batches, p->batch, p->o.batch_bytes, step % BATCHES * bytes) == bytes);
}

void paced_write_checkpoint(struct paced *p)
{
    int fd = open_new(p, p->checkpoint_path);
    for (unsigned i = 0; i < p->n; i++)
        put(p, p->checkpoint_path, fd, p->tensors[i].value, p->tensors[i].count * sizeof(float));
    check(p, p->checkpoint_path, fsync(fd) == 0);
    close(fd);
}
