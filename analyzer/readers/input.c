/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef RS_HAVE_ZSTD
#include <zstd.h>
#endif

#include "../run.h"

#define BLOCK_BYTES  (1u << 20)
#define PACKED_BYTES (1u << 18)
#define HEAD_PADDING 64        /* scanners look some bytes ahead */
#define GZIP_WINDOW  (15 + 16) /* zlib: the largest window, a gzip header */

typedef enum { PLAIN, GZIP, ZSTD } Packing;

struct _RsInput {
    gchar *path;
    int fd;
    guint64 file_bytes;
    Packing packing;

    guint64 read_bytes; /* of the file */
    guint8 *packed;     /* read, [packed_at, packed_n) not yet unpacked */
    gsize packed_at, packed_n;
    gboolean in_member; /* a gzip member or zstd frame has begun and not ended */
    gboolean ended;
    z_stream zlib;
    gboolean zlib_on;
#ifdef RS_HAVE_ZSTD
    ZSTD_DStream *zstd;
#endif
    gchar *block;

    gchar *head;
    gsize head_bytes;
    gchar *note;
};

/* ---- opening ---- */

static Packing packing_of(const guint8 *p, gsize n)
{
    static const guint8 zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
    static const guint8 skip[3] = {0x2a, 0x4d, 0x18}; /* a frame of the packer's own stands first */
    if (n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == Z_DEFLATED)
        return GZIP;
    gboolean skippable = n >= 4 && (p[0] & 0xf0) == 0x50 && memcmp(p + 1, skip, 3) == 0;
    return skippable || (n >= 4 && memcmp(p, zstd, 4) == 0) ? ZSTD : PLAIN;
}

static RsInput *fail_open(RsInput *in, const gchar *why, GError **error)
{
    g_set_error(error, RS_ERROR, RS_ERROR_UNREADABLE, "%s: %s", in->path, why);
    rs_input_free(in);
    return NULL;
}

RsInput *rs_input_open(const gchar *path, GError **error)
{
    struct stat st;
    guint8 magic[4];
    RsInput *in = g_new0(RsInput, 1);
    in->path = g_strdup(path);
    in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* never waits for a pipe */
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        return fail_open(in, g_strerror(errno), error);
    if (!S_ISREG(st.st_mode))
        return fail_open(in, "not a regular file", error);
    in->file_bytes = (guint64)st.st_size;
    gssize n = pread(in->fd, magic, sizeof magic, 0);
    if (n < 0)
        return fail_open(in, g_strerror(errno), error);
    in->packing = packing_of(magic, (gsize)n);
#ifndef RS_HAVE_ZSTD
    if (in->packing == ZSTD)
        return fail_open(in,
                         "packed with zstd, which this Ringscope was built without: unpack it "
                         "(unzstd)",
                         error);
#endif
    in->block = g_malloc(BLOCK_BYTES);
    posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return in;
}

static void stop_unpacking(RsInput *in)
{
    if (in->zlib_on)
        inflateEnd(&in->zlib);
    in->zlib_on = FALSE;
#ifdef RS_HAVE_ZSTD
    ZSTD_freeDStream(in->zstd);
    in->zstd = NULL;
#endif
}

void rs_input_free(RsInput *in)
{
    if (!in)
        return;
    stop_unpacking(in);
    if (in->fd >= 0)
        close(in->fd);
    g_free(in->path);
    g_free(in->packed);
    g_free(in->block);
    g_free(in->head);
    g_free(in->note);
    g_free(in);
}

/* ---- bytes ---- */

static void note(RsInput *in, const gchar *format, ...) G_GNUC_PRINTF(2, 3);
static void note(RsInput *in, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!in->note)
        in->note = g_strdup_vprintf(format, args);
    va_end(args);
}

/* Up to `room` bytes of the file; 0 at its end, or where it can't be read further. */
static gsize read_file(RsInput *in, void *to, gsize room)
{
    gsize n = 0;
    while (n < room) {
        gssize got = pread(in->fd, (guint8 *)to + n, room - n, (off_t)(in->read_bytes + n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            note(in, "can't be read beyond byte %" G_GUINT64_FORMAT ": %s", in->read_bytes + n,
                 g_strerror(errno));
        if (got <= 0)
            break;
        n += (gsize)got;
    }
    in->read_bytes += n;
    return n;
}

static gboolean refill(RsInput *in)
{
    if (in->packed_at < in->packed_n)
        return TRUE;
    if (!in->packed)
        in->packed = g_malloc(PACKED_BYTES);
    in->packed_at = 0;
    in->packed_n = read_file(in, in->packed, PACKED_BYTES);
    return in->packed_n > 0;
}

static guint64 packed_offset(const RsInput *in)
{
    return in->read_bytes - (in->packed_n - in->packed_at);
}

static gboolean begin_member(RsInput *in)
{
    if (!in->zlib_on) {
        in->zlib_on = inflateInit2(&in->zlib, GZIP_WINDOW) == Z_OK;
        return in->zlib_on;
    }
    return inflateReset(&in->zlib) == Z_OK;
}

/* What stands between members: padding of zeros is allowed, anything else ends the bytes. */
static gboolean next_member(RsInput *in)
{
    while (refill(in)) {
        if (in->packed[in->packed_at] == 0x1f)
            return begin_member(in);
        if (in->packed[in->packed_at] != 0) {
            note(in, "bytes that are no gzip follow at byte %" G_GUINT64_FORMAT ": not read",
                 packed_offset(in));
            return FALSE;
        }
        in->packed_at++;
    }
    return FALSE;
}

static gsize unpack_gzip(RsInput *in)
{
    in->zlib.next_out = (Bytef *)in->block;
    in->zlib.avail_out = BLOCK_BYTES;
    while (in->zlib.avail_out > 0) {
        if (!in->in_member && !(in->in_member = next_member(in)))
            break;
        gboolean more = refill(in);
        in->zlib.next_in = in->packed + in->packed_at;
        in->zlib.avail_in = (uInt)(in->packed_n - in->packed_at);
        int rc = inflate(&in->zlib, Z_NO_FLUSH);
        in->packed_at = in->packed_n - in->zlib.avail_in;
        if (rc == Z_STREAM_END) {
            in->in_member = FALSE;
        } else if (rc != Z_OK || !more) {
            in->ended = TRUE;
            if (rc == Z_BUF_ERROR || !more)
                note(in, "the gzip stream is cut at its end, byte %" G_GUINT64_FORMAT,
                     in->read_bytes);
            else
                note(in, "the gzip stream is damaged at byte %" G_GUINT64_FORMAT "%s%s",
                     packed_offset(in), in->zlib.msg ? ": " : "", in->zlib.msg ? in->zlib.msg : "");
            break;
        }
    }
    return BLOCK_BYTES - in->zlib.avail_out;
}

#ifdef RS_HAVE_ZSTD
static gsize unpack_zstd(RsInput *in)
{
    ZSTD_outBuffer out = {in->block, BLOCK_BYTES, 0};
    if (!in->zstd)
        in->zstd = ZSTD_createDStream();
    while (in->zstd && out.pos < out.size) {
        if (!refill(in) && !in->in_member)
            break;
        gboolean more = in->packed_at < in->packed_n;
        gsize before = out.pos;
        ZSTD_inBuffer from = {in->packed, in->packed_n, in->packed_at};
        size_t rc = ZSTD_decompressStream(in->zstd, &out, &from);
        in->packed_at = from.pos;
        if (!ZSTD_isError(rc)) {
            in->in_member = rc != 0;
            if (more || out.pos > before)
                continue;
        }
        in->ended = TRUE;
        if (ZSTD_isError(rc))
            note(in, "the zstd stream is damaged at byte %" G_GUINT64_FORMAT ": %s",
                 packed_offset(in), ZSTD_getErrorName(rc));
        else
            note(in, "the zstd stream is cut at its end, byte %" G_GUINT64_FORMAT, in->read_bytes);
        break;
    }
    return out.pos;
}
#endif

const gchar *rs_input_next(RsInput *in, gsize *ret_bytes)
{
    gsize n = 0;
    if (in->ended)
        n = 0;
    else if (in->packing == PLAIN)
        n = read_file(in, in->block, BLOCK_BYTES);
#ifdef RS_HAVE_ZSTD
    else if (in->packing == ZSTD)
        n = unpack_zstd(in);
#endif
    else
        n = unpack_gzip(in);
    *ret_bytes = n;
    return n ? in->block : NULL;
}

void rs_input_rewind(RsInput *in)
{
    stop_unpacking(in);
    in->read_bytes = in->packed_at = in->packed_n = 0;
    in->in_member = in->ended = FALSE;
}

const gchar *rs_input_head(RsInput *in, gsize *ret_bytes)
{
    if (!in->head) {
        gsize n;
        in->head = g_malloc0(RS_INPUT_HEAD + HEAD_PADDING);
        rs_input_rewind(in);
        const gchar *block = rs_input_next(in, &n);
        in->head_bytes = MIN(n, RS_INPUT_HEAD);
        if (block)
            memcpy(in->head, block, in->head_bytes);
        rs_input_rewind(in);
    }
    *ret_bytes = in->head_bytes;
    return in->head;
}

/* ---- about it ---- */

const gchar *rs_input_path(const RsInput *in)
{
    return in->path;
}

gdouble rs_input_share(const RsInput *in)
{
    return in->file_bytes ? MIN(1, (gdouble)in->read_bytes / (gdouble)in->file_bytes) : 1;
}

const gchar *rs_input_note(const RsInput *in)
{
    return in->note;
}

const gchar *rs_input_nothing(RsInput *in)
{
    gsize n;
    const gchar *head = rs_input_head(in, &n);
    if (in->packing == PLAIN)
        return NULL;
    if (n == 0)
        return in->note ? in->note : "is empty when it is unpacked";
    return packing_of((const guint8 *)head, n) != PLAIN
               ? "is packed twice: unpack it once (gunzip, unzstd)"
               : NULL;
}
