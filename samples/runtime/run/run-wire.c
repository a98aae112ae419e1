/* SPDX-License-Identifier: Apache-2.0 */
#include "run-wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- buffers ---- */

char *run_buffer_room(struct run_buffer *b, size_t bytes)
{
    if (b->at > 0 && b->at + b->bytes + bytes > b->room) {
        memmove(b->data, b->data + b->at, b->bytes);
        b->at = 0;
    }
    if (b->bytes + bytes > b->room) {
        const size_t room = (b->bytes + bytes) * 2;
        char *data = realloc(b->data, room);
        if (!data) {
            fputs("rt-run: no memory\n", stderr);
            _exit(1);
        }
        b->data = data;
        b->room = room;
    }
    return b->data + b->at + b->bytes;
}

void run_buffer_grew(struct run_buffer *b, size_t bytes)
{
    b->bytes += bytes;
}

void run_buffer_add(struct run_buffer *b, const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    memcpy(run_buffer_room(b, bytes), data, bytes);
    b->bytes += bytes;
}

void run_buffer_take(struct run_buffer *b, size_t bytes)
{
    b->bytes -= bytes;
    b->at = b->bytes > 0 ? b->at + bytes : 0;
}

void run_buffer_clear(struct run_buffer *b)
{
    free(b->data);
    *b = (struct run_buffer){0};
}

/* ---- frames ---- */

void run_wire_init(struct run_wire *w, int in, int out)
{
    *w = (struct run_wire){.in = in, .out = out};
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void run_wire_release(struct run_wire *w)
{
    if (w->in >= 0)
        close(w->in);
    if (w->out >= 0)
        close(w->out);
    w->in = w->out = -1;
    run_buffer_clear(&w->input);
    run_buffer_clear(&w->output);
}

int run_wire_read(struct run_wire *w)
{
    const ssize_t n = read(w->in, run_buffer_room(&w->input, RUN_PIECE), RUN_PIECE);
    if (n > 0)
        run_buffer_grew(&w->input, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)) ? 0 : -ECONNRESET;
}

int run_wire_next(struct run_wire *w, struct run_frame *ret, const char **ret_data)
{
    struct run_buffer *b = &w->input;
    if (b->bytes < sizeof *ret)
        return 0;
    memcpy(ret, b->data + b->at, sizeof *ret);
    if (ret->kind >= RUN_KINDS || ret->bytes > RUN_FRAME_MAX)
        return -EPROTO;
    if (b->bytes < sizeof *ret + ret->bytes)
        return 0;
    *ret_data = b->data + b->at + sizeof *ret;
    run_buffer_take(b, sizeof *ret + ret->bytes);
    return 1;
}

void run_wire_send(struct run_wire *w, enum run_kind kind, int rank, int value, const void *data,
                   size_t bytes)
{
    const struct run_frame frame = {(uint32_t)kind, rank, value, (uint32_t)bytes};
    if (w->out < 0)
        return;
    run_buffer_add(&w->output, &frame, sizeof frame);
    run_buffer_add(&w->output, data, bytes);
}

int run_wire_flush(struct run_wire *w)
{
    while (w->out >= 0 && w->output.bytes > 0) {
        const ssize_t n = write(w->out, w->output.data + w->output.at, w->output.bytes);
        if (n > 0)
            run_buffer_take(&w->output, (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            return 0;
        else if (n < 0 && errno != EINTR)
            return -ECONNRESET;
    }
    return 0;
}

/* ---- strings ---- */

void run_pack(struct run_buffer *b, const char *text)
{
    run_buffer_add(b, text, strlen(text) + 1);
}

void run_pack_number(struct run_buffer *b, long number)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", number);
    run_pack(b, text);
}

const char *run_unpack(const char **at, const char *end)
{
    const char *text = *at;
    const char *zero = memchr(text, 0, (size_t)(end - text));
    if (!zero)
        return "";
    *at = zero + 1;
    return text;
}

long run_unpack_number(const char **at, const char *end)
{
    return strtol(run_unpack(at, end), NULL, 10);
}
