/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-wire.h - what rt-run and its agents, one a host, say to each other over a pair of pipes.
 *
 * An agent's first bytes are RUN_MAGIC: what a login shell prints before is no part of it. Then
 * frames go both ways. Descriptors are nonblocking; what can't be written yet is kept. Both ends
 * are the same program. Without memory the process ends: it is a command, and an agent's ranks end
 * with it.
 */
#ifndef RUN_WIRE_H
#define RUN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_MAGIC     "\001RT-RUN-1\n"
#define RUN_FRAME_MAX (16u << 20)
#define RUN_PIECE     65536 /* of output and input at a time */

enum run_kind {
    /* to an agent */
    RUN_JOB,       /* strings, below; answered by RUN_LISTENS, or RUN_PROBLEM */
    RUN_START,     /* value: the port; its ranks are started */
    RUN_SIGNAL,    /* value: the signal, to the process groups of its ranks */
    RUN_STOP,      /* value: the signal, to all that its ranks have started */
    RUN_INPUT,     /* for rank 0; the next only after RUN_TAKEN */
    RUN_INPUT_END, /* rank 0's input ends */
    RUN_END,       /* what is left of its ranks is ended, and the agent ends */
    /* from an agent */
    RUN_LISTENS, /* value: the port, 0 where this host has no rank 0 */
    RUN_PROBLEM, /* why the job can't be; value: the exit status */
    RUN_STARTED, /* value: the process */
    RUN_OUT,     /* what the rank wrote */
    RUN_ERR,     /* ... as errors */
    RUN_TAKEN,   /* rank 0 has taken the last RUN_INPUT */
    RUN_EXITED,  /* value: waitpid's */
    RUN_KINDS
};

struct run_frame {
    uint32_t kind;
    int32_t rank, value;
    uint32_t bytes; /* that follow */
};

/* Zeroed: empty. */
struct run_buffer {
    char *data;
    size_t at, bytes, room; /* `bytes` from `at` */
};

void run_buffer_add(struct run_buffer *b, const void *data, size_t bytes);
void run_buffer_take(struct run_buffer *b, size_t bytes);
void run_buffer_clear(struct run_buffer *b);
/* Room for so many more bytes at its end; a reader says with run_buffer_grew how many came. */
char *run_buffer_room(struct run_buffer *b, size_t bytes);
void run_buffer_grew(struct run_buffer *b, size_t bytes);

struct run_wire {
    int in, out; /* owned; -1 closed */
    struct run_buffer input, output;
};

/* Makes the descriptors nonblocking. */
void run_wire_init(struct run_wire *w, int in, int out);
void run_wire_release(struct run_wire *w);
/* Reads what is there. -ECONNRESET: the other end is gone. */
int run_wire_read(struct run_wire *w);
/* The next frame of what was read, and its data, until the next call with this wire. 1; 0: none
 * yet; -EPROTO: no frame. */
int run_wire_next(struct run_wire *w, struct run_frame *ret, const char **ret_data);
void run_wire_send(struct run_wire *w, enum run_kind kind, int rank, int value, const void *data,
                   size_t bytes);
/* Writes what can be written. -ECONNRESET: the other end is gone. */
int run_wire_flush(struct run_wire *w);

/* Strings, each with its end, one after the other. */
void run_pack(struct run_buffer *b, const char *text);
void run_pack_number(struct run_buffer *b, long number);
/* The next of [*at, end); "" where there is none. */
const char *run_unpack(const char **at, const char *end);
long run_unpack_number(const char **at, const char *end);

#endif
