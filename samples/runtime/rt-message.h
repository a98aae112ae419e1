/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-message.h - what ranks and the coordinator tell each other, and its form on the wire.
 *
 * An announcement says what a rank has ready: each a struct rt_tensor, or, where it was agreed
 * about before, a bit. An order is the coordinator's answer: work on these tensors, as one, now.
 * Messages are runs of either. Byte order is the machine's: all ranks of a run are of one kind.
 */
#ifndef RT_MESSAGE_H
#define RT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rt.h"

enum rt_kind {
    RT_ALLREDUCE,
    RT_BROADCAST,
    RT_BARRIER,
    RT_SHUTDOWN,
    RT_ALLGATHER,
    RT_REDUCESCATTER,
    RT_ALLTOALL,
    RT_JOIN,
    RT_ADD_SET,
    RT_REMOVE_SET,
    RT_KIND_COUNT
};

#define RT_SHAPE_MAX 255 /* bytes of a shape's text */

const char *rt_kind_name(enum rt_kind kind);                      /* "ALLREDUCE": Horovod's word */
const char *rt_type_name(enum rt_type type);                      /* "float32" */
const char *rt_op_name(enum rt_op op);                            /* "sum" */
const char *rt_compression_name(enum rt_compression compression); /* "fp16" */

/* What all ranks must say alike of a tensor, but for its priority. */
struct rt_tensor {
    uint8_t kind, type, op; /* enum rt_kind, rt_type, rt_op */
    uint8_t compression;    /* enum rt_compression; 0: none */
    int32_t root;           /* broadcast; of an order to join: the last to do so; else 0 */
    int32_t set;            /* process set; 0: of all ranks */
    int32_t priority;       /* of an order: the highest that any rank gave; else this rank's */
    uint32_t members;       /* a group's tensors; else 0 */
    uint64_t count;         /* elements; reducescatter: rows; a group: as it lies in the buffer;
                               0 where ranks may differ */
    uint64_t row_count;     /* elements of a row; 0: no rows */
    double prescale, postscale;
    char name[RT_NAME_MAX + 1];
    char shape[RT_SHAPE_MAX + 1]; /* "[2,3]", "[*,3]" where ranks' rows may differ; of a group
                                     each's; "" where it follows from the counts; to add or remove
                                     a process set: which */
};

/* "grad", "grad of process set 3". */
#define RT_TITLE_MAX (RT_NAME_MAX + 40)
const char *rt_tensor_title(const struct rt_tensor *tensor, char to[RT_TITLE_MAX]);
/* It adds or removes a process set. */
bool rt_changes_sets(enum rt_kind kind);

/* Do two ranks of a process set say the same, the priority aside? */
bool rt_tensor_is_like(const struct rt_tensor *a, const struct rt_tensor *b);
/* Each rank may bring another number of rows. */
bool rt_rows_may_differ(enum rt_kind kind);

/* What a number in place of a tensor says: the slot of the response cache (rt-cache.h). */
#define RT_SLOT_NONE  UINT32_MAX
#define RT_SLOT_STORE 0x80000000u /* the tensor follows, and is put into that slot */

/* Own storage; release with rt_order_clear. */
struct rt_order {
    uint32_t n;
    struct rt_tensor *tensors; /* alike but for name and count */
    uint32_t *slots;           /* of each: where it is; with RT_SLOT_STORE: where to put it */
    int32_t error;             /* negative errno: don't work on it, it failed */
    char *text;                /* then: why */
    uint32_t addressee_count;  /* 0: all ranks */
    int32_t *addressees;
};

void rt_order_clear(struct rt_order *order);

/* A growing message. Starts zeroed; free `data` at the end. `failed` once memory ran out. */
struct rt_bytes {
    uint8_t *data;
    size_t n, capacity;
    int failed;
};

void rt_put(struct rt_bytes *to, const void *data, size_t n);
void rt_put_tensor(struct rt_bytes *to, const struct rt_tensor *tensor);
/* A tensor whose slot all ranks know goes as that number. */
void rt_put_order(struct rt_bytes *to, const struct rt_order *order);

/* What is left to read of a message. */
struct rt_reader {
    const uint8_t *at;
    size_t left;
};

/* -EPROTO where the bytes are not such a record, -ENOMEM. Of an order's tensors those that went as
 * a number are zeros. */
int rt_get(struct rt_reader *from, void *ret, size_t n);
int rt_get_tensor(struct rt_reader *from, struct rt_tensor *ret);
int rt_get_order(struct rt_reader *from, struct rt_order *ret);

#endif
