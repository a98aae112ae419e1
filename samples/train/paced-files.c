/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "paced.h"

#define BATCHES 4 /* in the file of a rank */

static void check(const struct paced *p, const char *path, bool holds)
{
    if (!holds)
        paced_die(p, path, strerror(errno));
}

void paced_files_open(struct paced *p)
{
    snprintf(p->batches_path, sizeof p->batches_path, "%s/paced-%d-batches", p->o.dir, getpid());
    snprintf(p->checkpoint_path, sizeof p->checkpoint_path, "%s/paced-%d-checkpoint", p->o.dir,
             getpid());
    p->batches = open(p->batches_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    check(p, p->batches_path, p->batches >= 0);
    for (int i = 0; i < BATCHES; i++)
        check(p, p->batches_path,
              write(p->batches, p->batch, p->o.batch_bytes) == (ssize_t)p->o.batch_bytes);
}

void paced_files_remove(struct paced *p)
{
    close(p->batches);
    unlink(p->batches_path);
    unlink(p->checkpoint_path);
}

void paced_read_batch(struct paced *p, int step)
{
    ssize_t bytes = (ssize_t)p->o.batch_bytes;
    check(p, p->batches_path,
          pread(p->batches, p->batch, p->o.batch_bytes, step % BATCHES * bytes) == bytes);
}

/* To a new file first: a reader finds the whole of the last one, or of this. */
void paced_write_checkpoint(struct paced *p)
{
    char path[sizeof p->checkpoint_path + 8];
    snprintf(path, sizeof path, "%s.new", p->checkpoint_path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(p, path, fd >= 0);
    for (unsigned i = 0; i < p->n; i++) {
        ssize_t bytes = (ssize_t)(p->tensors[i].count * sizeof(float));
        check(p, path, write(fd, p->tensors[i].value, (size_t)bytes) == bytes);
    }
    check(p, path, fsync(fd) == 0);
    close(fd);
    check(p, path, rename(path, p->checkpoint_path) == 0);
}
