/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts.h - Gloo's contexts as communicators: who they are, and which number a collective has.
 *
 * Model: rank and size of a context are those that its constructor is given, so nothing is read
 * from the object. It is connected by connectFullMesh, in which rank 0 shows all others the same
 * list of addresses: that list is the identity (schemas/capture-format.md).
 * Numbers: Gloo matches collectives by a tag. Torch counts tags up, from several threads: there
 * the tag is the number, as the order of the calls is not the same on all ranks. As soon as a tag
 * comes again (most other programs leave it at 0), calls are counted from there, in their order.
 * Threads: any; nothing here locks but for the first sight of a context.
 */
#ifndef RS_TRACER_GLOO_CONTEXTS_H
#define RS_TRACER_GLOO_CONTEXTS_H

#include "core.h"

#define RS_GLOO_TAGS 16 /* words of 32 tags */

struct rs_gloo_context {
    struct rs_gloo_context *next;
    const void *handle;
    struct rs_comm *comm; /* atomic; NULL: not used yet */
    uint64_t identity;    /* 0 unknown */
    int32_t rank, size;
    uint64_t seen[RS_GLOO_TAGS];      /* atomic: number of a word << 32 | its tags */
    uint32_t counting;                /* atomic: a tag came again */
    uint32_t next_number;             /* atomic: while counting */
    uint32_t first_tag, first_thread; /* atomic, + 1: while counting */
    uint32_t lost;                    /* atomic: order can't be told, calls have no number */
};

/* What connectFullMesh shows this rank of rank 0's addresses. */
struct rs_gloo_mesh {
    uint64_t hash;
    uint64_t bytes;
    bool is_first; /* this is rank 0 */
    bool own_done; /* all of its own addresses have been asked for */
};

/* A context was constructed at `handle`: whatever was there before is gone. */
void rs_gloo_context_made(const void *handle, int32_t rank, int32_t size) RS_HIDDEN;
/* NULL: no context that we know. */
struct rs_gloo_context *rs_gloo_context_find(const void *handle) RS_HIDDEN;
/* The communicator, defined at first use; NULL where there is no room for it. */
struct rs_comm *rs_gloo_context_comm(struct rs_gloo_context *c) RS_HIDDEN;

void rs_gloo_mesh_add(struct rs_gloo_mesh *m, const void *bytes, size_t n) RS_HIDDEN;
void rs_gloo_context_connected(struct rs_gloo_context *c, const struct rs_gloo_mesh *m) RS_HIDDEN;

/* The number of a call with this tag, made by the thread with this number; false: it has none. */
bool rs_gloo_number(struct rs_gloo_context *c, bool has_tag, uint32_t tag, uint32_t thread,
                    uint32_t *ret_number) RS_HIDDEN;

#endif
