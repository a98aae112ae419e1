/* SPDX-License-Identifier: Apache-2.0 */
#include "idx.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt-file.h"

#ifdef TRAIN_HAVE_ZLIB
#include <zlib.h>
#else
/* As much of it as is needed, for files that aren't compressed. */
typedef FILE *gzFile;
static gzFile gzdopen(int fd, const char *mode)
{
    return fdopen(fd, mode);
}
static int gzread(gzFile file, void *data, unsigned bytes)
{
    size_t n = fread(data, 1, bytes, file);
    return n == 0 && ferror(file) ? -1 : (int)n;
}
static int gzclose(gzFile file)
{
    return fclose(file);
}
#endif

#define BYTES_MAX ((uint64_t)1 << 34)

struct file {
    char path[PATH_MAX];
    gzFile gz;
    uint64_t done;
    char *message;
    size_t message_bytes;
};

static int __attribute__((format(printf, 3, 4)))
tell(struct file *f, int result, const char *format, ...)
{
    char text[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(f->message, f->message_bytes, "%s: %s", f->path, text);
    return result;
}

/* FOLDER/train-WHAT-idxN-ubyte, with one of four ends. */
static int open_file(struct file *f, const char *folder, const char *what, int dimensions)
{
    static const char *const forms[] = {"%s/train-%s-idx%d-ubyte", "%s/train-%s-idx%d-ubyte.gz",
                                        "%s/train-%s.idx%d-ubyte", "%s/train-%s.idx%d-ubyte.gz"};
    for (int i = 0; i < 4; i++) {
        char path[PATH_MAX];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, forms[i], folder, what, dimensions);
#pragma GCC diagnostic pop
        if (access(path, F_OK) != 0)
            continue;
        snprintf(f->path, sizeof f->path, "%s", path);
#ifndef TRAIN_HAVE_ZLIB
        if (i % 2)
            return tell(f, -ENOTSUP, "compressed, and this was built without zlib; unpack it");
#endif
        f->done = 0;
        int fd = rt_file_open(f->path, O_RDONLY, 0);
        if (fd < 0)
            return tell(f, fd, "can't be opened: %s", rt_file_why(fd));
        f->gz = gzdopen(fd, "rb");
        if (f->gz)
            return 0;
        close(fd);
        return tell(f, -ENOMEM, "no memory");
    }
    snprintf(f->path, sizeof f->path, "%s", folder);
    return tell(f, -ENOENT, "has no train-%s-idx%d-ubyte, compressed (.gz) or not", what,
                dimensions);
}

static int get(struct file *f, uint8_t *data, uint64_t bytes)
{
    for (uint64_t left = bytes; left > 0;) {
        int n = gzread(f->gz, data, left < 1 << 20 ? (unsigned)left : 1 << 20);
        if (n < 0)
            return tell(f, -EBADMSG, "damaged: can't be unpacked after byte %llu",
                        (unsigned long long)f->done);
        if (n == 0)
            return tell(f, -EBADMSG, "damaged: ends at byte %llu, expected more",
                        (unsigned long long)f->done);
        data += n;
        left -= (uint64_t)n;
        f->done += (uint64_t)n;
    }
    return 0;
}

static int get_number(struct file *f, uint32_t *ret)
{
    uint8_t b[4];
    int result = get(f, b, 4);
    if (result == 0)
        *ret = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return result;
}

/* Memory grows with what is there, not with what a damaged head promises. */
static int get_grown(struct file *f, uint8_t **ret, uint64_t bytes)
{
    int result = 0;
    for (uint64_t done = 0, room = 1 << 20; done < bytes && result == 0; room *= 2) {
        room = room < bytes ? room : bytes;
        uint8_t *larger = realloc(*ret, room);
        if (!larger)
            return tell(f, -ENOMEM, "no memory for %llu bytes", (unsigned long long)room);
        *ret = larger;
        result = get(f, larger + done, room - done);
        done = room;
    }
    return result;
}

/* Its head, and then all bytes; ret_size has `dimensions` sizes. The file is closed in any case. */
static int read_body(struct file *f, uint32_t dimensions, uint32_t *ret_size, uint8_t **ret)
{
    uint32_t magic = 0;
    uint64_t bytes = 1;
    uint8_t extra;
    int result = get_number(f, &magic);
    if (result == 0 && magic != (0x800 | dimensions))
        return tell(f, -EBADMSG, "begins with %08x, expected %08x: bytes in %u dimensions", magic,
                    0x800 | dimensions, dimensions);
    for (uint32_t i = 0; i < dimensions && result == 0; i++) {
        result = get_number(f, &ret_size[i]);
        if (result == 0 && (ret_size[i] == 0 || bytes > BYTES_MAX / ret_size[i]))
            return tell(f, -EBADMSG, "damaged: size %u at byte %llu", ret_size[i],
                        (unsigned long long)f->done - 4);
        bytes *= result == 0 ? ret_size[i] : 1;
    }
    if (result < 0)
        return result;
    result = get_grown(f, ret, bytes);
    if (result == 0 && gzread(f->gz, &extra, 1) != 0)
        return tell(f, -EBADMSG, "damaged: goes on after byte %llu", (unsigned long long)f->done);
    return result;
}

static int read_file(struct file *f, const char *folder, const char *what, uint32_t dimensions,
                     uint32_t *ret_size, uint8_t **ret)
{
    int result = open_file(f, folder, what, (int)dimensions);
    if (result < 0)
        return result;
    result = read_body(f, dimensions, ret_size, ret);
    gzclose(f->gz);
    return result;
}

int idx_read(struct idx_data *ret, const char *folder, int classes, char *message,
             size_t message_bytes)
{
    struct file f = {.message = message, .message_bytes = message_bytes};
    struct idx_data data = {0};
    uint32_t size[3], labels;
    int result = read_file(&f, folder, "images", 3, size, &data.pixel);
    if (result == 0 && (uint64_t)size[1] * size[2] > 1 << 20)
        result = tell(&f, -EBADMSG, "images of %u x %u: too large", size[1], size[2]);
    if (result == 0)
        result = read_file(&f, folder, "labels", 1, &labels, &data.label);
    if (result == 0 && labels != size[0])
        result = tell(&f, -EBADMSG, "%u labels of %u images", labels, size[0]);
    for (uint64_t i = 0; i < size[0] && result == 0; i++)
        if (data.label[i] >= classes)
            result = tell(&f, -EBADMSG, "damaged: label %d at byte %llu, expected 0 to %d",
                          data.label[i], (unsigned long long)i + 8, classes - 1);
    if (result < 0) {
        idx_clear(&data);
        return result;
    }
    data.items = size[0];
    data.pixels = (int)(size[1] * size[2]);
    *ret = data;
    return 0;
}

void idx_clear(struct idx_data *data)
{
    free(data->pixel);
    free(data->label);
    *data = (struct idx_data){0};
}
