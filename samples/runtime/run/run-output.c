/* SPDX-License-Identifier: Apache-2.0 */
#include "run-output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20)
#define PIECE          4096 /* that poll says there is room for */

int run_output_init(struct run_output *o, int ranks, bool with_tags)
{
    *o = (struct run_output){.ranks = ranks};
    o->lines = with_tags ? calloc((size_t)ranks * 2, sizeof *o->lines) : NULL;
    return with_tags && !o->lines ? -ENOMEM : 0;
}

void run_output_release(struct run_output *o)
{
    for (int i = 0; o->lines && i < o->ranks * 2; i++)
        run_buffer_clear(&o->lines[i]);
    free(o->lines);
    run_buffer_clear(&o->pending[0]);
    run_buffer_clear(&o->pending[1]);
}

static void put_line(struct run_output *o, int rank, bool is_error)
{
    struct run_buffer *line = &o->lines[rank * 2 + is_error], *to = &o->pending[is_error];
    char tag[48];
    const int n = snprintf(tag, sizeof tag, "[%d]<%s>:", rank, is_error ? "stderr" : "stdout");
    run_buffer_add(to, tag, (size_t)n);
    run_buffer_add(to, line->data + line->at, line->bytes);
    run_buffer_add(to, "\n", 1);
    run_buffer_take(line, line->bytes);
}

void run_output_add(struct run_output *o, int rank, bool is_error, const char *data, size_t bytes)
{
    if (!o->lines) {
        run_buffer_add(&o->pending[is_error], data, bytes);
        return;
    }
    struct run_buffer *line = &o->lines[rank * 2 + is_error];
    while (bytes > 0) {
        const char *end = memchr(data, '\n', bytes);
        const size_t n = end ? (size_t)(end - data) : bytes;
        run_buffer_add(line, data, n);
        if (end || line->bytes >= LINE_MAX_BYTES)
            put_line(o, rank, is_error);
        data += n + (end ? 1 : 0);
        bytes -= n + (end ? 1 : 0);
    }
}

void run_output_end(struct run_output *o, int rank)
{
    for (int i = 0; o->lines && i < 2; i++)
        if (o->lines[rank * 2 + i].bytes > 0)
            put_line(o, rank, i == 1);
}

void run_output_say(struct run_output *o, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run_buffer_add(&o->pending[1], "rt-run: ", 8);
    run_buffer_add(&o->pending[1], text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    run_buffer_add(&o->pending[1], "\n", 1);
}

void run_output_drop(struct run_output *o)
{
    o->is_broken[0] = o->is_broken[1] = true;
}

size_t run_output_pending(const struct run_output *o)
{
    return o->pending[0].bytes + o->pending[1].bytes;
}

void run_output_poll(const struct run_output *o, struct pollfd *ret)
{
    for (int i = 0; i < 2; i++)
        ret[i] = (struct pollfd){.fd = o->pending[i].bytes > 0 ? i + 1 : -1, .events = POLLOUT};
}

static bool takes_more(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

/* The descriptors are others', too, and stay blocking: no more is written than poll has room for.
 */
static int flush_one(struct run_output *o, int i)
{
    struct run_buffer *b = &o->pending[i];
    while (b->bytes > 0 && !o->is_broken[i] && takes_more(i + 1)) {
        const ssize_t n = write(i + 1, b->data + b->at, b->bytes < PIECE ? b->bytes : PIECE);
        if (n > 0) {
            run_buffer_take(b, (size_t)n);
        } else if (errno == EPIPE) {
            o->is_broken[i] = true;
            return -EPIPE;
        } else if (errno != EINTR && errno != EAGAIN) {
            o->is_broken[i] = true; /* a full disk, a closed descriptor */
            if (i == 0)
                run_output_say(o, "the output can't be written: %s", strerror(errno));
        } else if (errno == EAGAIN) {
            break;
        }
    }
    if (o->is_broken[i])
        run_buffer_take(b, b->bytes);
    return 0;
}

int run_output_flush(struct run_output *o)
{
    const int error = flush_one(o, 0);
    const int of_errors = flush_one(o, 1);
    return error ? error : of_errors;
}
