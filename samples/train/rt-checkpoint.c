/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: head; for each entry its name, type and count (struct entry), and then its bytes; at
 * the end the sum of all before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt-file.h"
#include "rt-train.h"

static const char magic[16] = "ringscope-ckpt1";

struct head {
    char magic[16];
    char model[RT_CHECKPOINT_MODEL_MAX + 1];
    uint64_t entries, bytes; /* bytes of the file */
};

struct entry {
    char name[RT_NAME_MAX + 1];
    uint64_t type, count;
};

/* A file being written or read: the sum goes along, as FNV-1a of 64 bits with 8 bytes at a time. */
struct stream {
    int fd;
    uint64_t sum, done;
};

struct teller {
    char *message;
    size_t bytes;
};

static int __attribute__((format(printf, 3, 4)))
tell(struct teller t, int result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(t.message, t.bytes, format, list);
    va_end(list);
    return result;
}

static uint64_t sum_of(uint64_t sum, const void *data, uint64_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 0x100000001b3u;
        sum ^= sum >> 29;
    }
    for (; bytes > 0; at++, bytes--)
        sum = (sum ^ *at) * 0x100000001b3u;
    return sum;
}

static int put(struct stream *s, const void *data, uint64_t bytes)
{
    s->sum = sum_of(s->sum, data, bytes);
    for (const char *at = data; bytes > 0;) {
        ssize_t n = write(s->fd, at, bytes < 1 << 30 ? bytes : 1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        bytes -= (uint64_t)n;
        s->done += (uint64_t)n;
    }
    return 0;
}

/* -EBADMSG where the file ends before. */
static int get(struct stream *s, void *data, uint64_t bytes)
{
    char *at = data;
    for (uint64_t left = bytes; left > 0;) {
        ssize_t n = read(s->fd, at, left < 1 << 30 ? left : 1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EBADMSG;
        at += n;
        left -= (uint64_t)n;
        s->done += (uint64_t)n;
    }
    s->sum = sum_of(s->sum, data, bytes);
    return 0;
}

static uint64_t bytes_of(const struct rt_parameter *p)
{
    return p->count * rt_type_bytes(p->type);
}

static uint64_t file_bytes(const struct rt_parameter *state, unsigned n)
{
    uint64_t bytes = sizeof(struct head) + sizeof(uint64_t);
    for (unsigned i = 0; i < n; i++)
        bytes += sizeof(struct entry) + bytes_of(&state[i]);
    return bytes;
}

/* A name that is cut off might be another's. */
static int check_list(struct teller t, const char *path, const char *model,
                      const struct rt_parameter *state, unsigned n)
{
    uint64_t bytes = sizeof(struct head) + sizeof(uint64_t), own;
    if (!path || !*path || !model || (!state && n > 0))
        return tell(t, -EINVAL, "checkpoint: no path, no model or no state (NULL)");
    if (strlen(model) > RT_CHECKPOINT_MODEL_MAX)
        return tell(t, -EINVAL, "the model's text is longer than %d bytes",
                    RT_CHECKPOINT_MODEL_MAX);
    for (unsigned i = 0; i < n; i++) {
        const struct rt_parameter *p = &state[i];
        if (!p->name || strlen(p->name) > RT_NAME_MAX)
            return tell(t, -EINVAL, "%s: the name of tensor %u is %s", path, i,
                        p->name ? "too long" : "missing (NULL)");
        if ((unsigned)p->type >= RT_TYPE_COUNT || (!p->data && p->count > 0))
            return tell(t, -EINVAL, "%s: tensor %s has an unknown type, %d, or no data (NULL)",
                        path, p->name, (int)p->type);
        if (__builtin_mul_overflow(p->count, rt_type_bytes(p->type), &own) || own > INT64_MAX ||
            __builtin_add_overflow(bytes, own + sizeof(struct entry), &bytes) || bytes > INT64_MAX)
            return tell(t, -EFBIG, "%s: tensor %s has %llu elements, too many", path, p->name,
                        (unsigned long long)p->count);
    }
    return 0;
}

static struct head head_of(const char *model, const struct rt_parameter *state, unsigned n)
{
    struct head head = {.entries = n, .bytes = file_bytes(state, n)};
    memcpy(head.magic, magic, sizeof magic);
    snprintf(head.model, sizeof head.model, "%s", model);
    return head;
}

static struct entry entry_of(const struct rt_parameter *p)
{
    struct entry entry = {.type = (uint64_t)p->type, .count = p->count};
    snprintf(entry.name, sizeof entry.name, "%s", p->name);
    return entry;
}

/* ---- writing ---- */

static int put_all(struct stream *s, const char *model, const struct rt_parameter *state,
                   unsigned n)
{
    struct head head = head_of(model, state, n);
    int result = put(s, &head, sizeof head);
    for (unsigned i = 0; i < n && result == 0; i++) {
        struct entry entry = entry_of(&state[i]);
        result = put(s, &entry, sizeof entry);
        if (result == 0)
            result = put(s, state[i].data, bytes_of(&state[i]));
    }
    uint64_t sum = s->sum;
    if (result == 0)
        result = put(s, &sum, sizeof sum);
    if (result == 0 && fsync(s->fd) < 0)
        result = -errno;
    return result;
}

/* The new name itself is on the disk only when its folder is. */
static int sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return result;
}

int rt_checkpoint_write(const char *path, const char *model, const struct rt_parameter *state,
                        unsigned n, char *message, size_t message_bytes)
{
    struct teller t = {message, message_bytes};
    struct rt_file_limit limit;
    char draft[PATH_MAX];
    int result = check_list(t, path, model, state, n);
    if (result < 0)
        return result;
    if (snprintf(draft, sizeof draft, "%s.new", path) >= (int)sizeof draft)
        return tell(t, -ENAMETOOLONG, "checkpoint: a path of %zu bytes is too long", strlen(path));
    result = rt_file_replaceable(path);
    if (result < 0)
        return tell(t, result, "%s: can't be a checkpoint: %s", path, rt_file_why(result));
    struct stream s = {.fd = rt_file_open(draft, O_WRONLY | O_CREAT | O_TRUNC, 0666)};
    if (s.fd < 0)
        return tell(t, s.fd, "%s: can't be created: %s", draft, rt_file_why(s.fd));
    rt_file_limit_begin(&limit);
    result = put_all(&s, model, state, n);
    if (close(s.fd) < 0 && result == 0)
        result = -errno;
    rt_file_limit_end(&limit);
    if (result == 0 && rename(draft, path) < 0)
        result = -errno;
    if (result < 0) {
        unlink(draft);
        return tell(
            t, result,
            "%s: the checkpoint of %llu bytes can't be written (after %llu of them): %s; an "
            "older one is kept",
            path, (unsigned long long)file_bytes(state, n), (unsigned long long)s.done,
            strerror(-result));
    }
    result = sync_folder(path);
    if (result < 0)
        return tell(t, result, "%s: written, but its folder can't be synchronised: %s", path,
                    strerror(-result));
    return 0;
}

/* ---- reading ---- */

static int check_head(struct teller t, const char *path, int fd, const struct head *found,
                      const struct head *wanted)
{
    struct stat st;
    if (memcmp(found->magic, magic, sizeof magic) != 0)
        return tell(t, -EBADMSG, "%s: no checkpoint: its first bytes are not \"%s\"", path, magic);
    if (!memchr(found->model, 0, sizeof found->model))
        return tell(t, -EBADMSG, "%s: damaged: the model's text at byte %zu has no end", path,
                    offsetof(struct head, model));
    if (strcmp(found->model, wanted->model) != 0)
        return tell(t, -EINVAL, "%s: a checkpoint of \"%s\"; this is \"%s\"", path, found->model,
                    wanted->model);
    if (found->entries != wanted->entries || found->bytes != wanted->bytes)
        return tell(t, -EINVAL,
                    "%s: a checkpoint of %llu tensors in %llu bytes; this model has %llu in %llu",
                    path, (unsigned long long)found->entries, (unsigned long long)found->bytes,
                    (unsigned long long)wanted->entries, (unsigned long long)wanted->bytes);
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size != wanted->bytes)
        return tell(t, -EBADMSG, "%s: damaged: %llu bytes, it should have %llu", path,
                    (unsigned long long)st.st_size, (unsigned long long)wanted->bytes);
    return 0;
}

static int check_entry(struct teller t, const char *path, const struct stream *s,
                       const struct entry *found, const struct entry *wanted)
{
    if (memcmp(found, wanted, sizeof *found) == 0)
        return 0;
    if (!memchr(found->name, 0, sizeof found->name) || found->type >= RT_TYPE_COUNT)
        return tell(t, -EBADMSG, "%s: damaged: no tensor's description before byte %llu", path,
                    (unsigned long long)s->done);
    return tell(
        t, -EINVAL,
        "%s: has %s of %llu elements (type %llu) where this model has %s of %llu (type %llu)", path,
        found->name, (unsigned long long)found->count, (unsigned long long)found->type,
        wanted->name, (unsigned long long)wanted->count, (unsigned long long)wanted->type);
}

/* To a copy: nothing of the state changes before all is known to be right. */
static int get_all(struct teller t, const char *path, struct stream *s, const char *model,
                   const struct rt_parameter *state, unsigned n, char *copy)
{
    struct head head, wanted = head_of(model, state, n);
    int result = get(s, &head, sizeof head);
    if (result == -EBADMSG)
        return tell(t, result, "%s: no checkpoint: only %llu bytes", path,
                    (unsigned long long)s->done);
    if (result == 0)
        result = check_head(t, path, s->fd, &head, &wanted);
    else
        tell(t, result, "%s: can't be read: %s", path, strerror(-result));
    for (unsigned i = 0; i < n && result == 0; i++) {
        struct entry entry, expected = entry_of(&state[i]);
        result = get(s, &entry, sizeof entry);
        if (result == 0) {
            result = check_entry(t, path, s, &entry, &expected);
            if (result < 0)
                return result;
            result = get(s, copy, bytes_of(&state[i]));
            copy += bytes_of(&state[i]);
        }
        if (result < 0)
            tell(t, result, "%s: can't be read at byte %llu: %s", path, (unsigned long long)s->done,
                 strerror(-result));
    }
    if (result < 0)
        return result;
    uint64_t sum = s->sum, stored;
    if (get(s, &stored, sizeof stored) < 0 || stored != sum)
        return tell(t, -EBADMSG,
                    "%s: damaged: its contents don't have the sum that stands at its end", path);
    return 0;
}

int rt_checkpoint_read(const char *path, const char *model, const struct rt_parameter *state,
                       unsigned n, char *message, size_t message_bytes)
{
    struct teller t = {message, message_bytes};
    int result = check_list(t, path, model, state, n);
    if (result < 0)
        return result;
    struct stream s = {.fd = rt_file_open(path, O_RDONLY, 0)};
    if (s.fd < 0)
        return tell(t, s.fd, "%s: can't be opened: %s", path, rt_file_why(s.fd));
    char *copy = malloc(file_bytes(state, n)), *at = copy;
    result = copy ? get_all(t, path, &s, model, state, n, copy)
                  : tell(t, -ENOMEM, "%s: no memory for %llu bytes", path,
                         (unsigned long long)file_bytes(state, n));
    for (unsigned i = 0; i < n && result == 0; at += bytes_of(&state[i]), i++)
        memcpy(state[i].data, at, bytes_of(&state[i]));
    free(copy);
    close(s.fd);
    return result;
}
