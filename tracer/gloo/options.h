/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - what the options of a Gloo call say: context, elements, root, tag.
 *
 * Model: the options are C++ objects with private members, whose places are those of the versions
 * from 2018 on (Debian's of 2022 among them). They are believed at a place that calls once one
 * call's options proved them: the buffers that they hold there are some that we saw being made, and
 * what must agree with these does. Until then nothing but the options object itself is read, and a
 * pointer found in it is followed by the kernel (process_vm_readv), which fails where we would
 * crash. The context is the first word in any layout, and taken where it is one that we know.
 * Threads: any.
 */
#ifndef RS_TRACER_GLOO_OPTIONS_H
#define RS_TRACER_GLOO_OPTIONS_H

#include "contexts.h"
#include "library.h"

/* Where things are in an object of options, in bytes; 0: it has none. */
struct rs_gloo_options {
    uint8_t in, out, elements, element_bytes, root, tag;
    uint8_t lists; /* enum rs_gloo_lists */
    uint8_t count; /* enum rs_gloo_count */
};
enum rs_gloo_lists { RS_GLOO_IN_LIST = 1, RS_GLOO_OUT_LIST = 2 }; /* vectors of buffers */
enum rs_gloo_count {
    RS_GLOO_NO_COUNT,  /* barrier */
    RS_GLOO_ELEMENTS,  /* is told */
    RS_GLOO_IN,        /* all of what this rank gives, else of what it gets */
    RS_GLOO_IN_SHARE,  /* that for one of the ranks */
    RS_GLOO_OUT,       /* what this rank gets */
    RS_GLOO_OUT_SHARE, /* one rank's part of what each gets */
    RS_GLOO_OWN,       /* this rank's of a list of numbers of elements */
};

struct rs_gloo_told {
    struct rs_gloo_context *context; /* NULL unknown */
    bool known;                      /* the rest is */
    uint64_t count, total;           /* total: elements of the receive side, 0 not told */
    uint64_t element_bytes;
    int32_t root;
    uint32_t tag;
};

void rs_gloo_options_read(const void *options, const struct rs_gloo_options *o,
                          struct rs_gloo_site *site, struct rs_gloo_told *ret) RS_HIDDEN;

/* A buffer was constructed. */
void rs_gloo_buffer_made(const void *buffer, const void *memory, size_t bytes) RS_HIDDEN;

#endif
