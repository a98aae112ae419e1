/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - where a wrapped call of Gloo goes on to.
 *
 * Model: Gloo may be in a process more than once, as a library of its own (perhaps loaded locally,
 * where RTLD_NEXT does not see it) and inside others. A call goes on to the function that its
 * caller would have found without us: behind us in the global scope, else in the caller's own. That
 * is kept by the place called from, with what was learned of the options' layout there, which is
 * the caller's too: whoever makes the options has it compiled in.
 * Threads: any. Errors: where there is no such function the process ends as the dynamic linker ends
 * it: the program could not have made the call without us either.
 */
#ifndef RS_TRACER_GLOO_LIBRARY_H
#define RS_TRACER_GLOO_LIBRARY_H

#include "core.h"

#define RS_EXPORT __attribute__((visibility("default")))

enum rs_gloo_layout { RS_GLOO_UNCHECKED, RS_GLOO_KNOWN, RS_GLOO_UNKNOWN };

/* One place that calls a function. */
struct rs_gloo_site {
    struct rs_gloo_site *next;
    const void *caller; /* return address */
    void *real;
    uint32_t layout; /* atomic: enum rs_gloo_layout */
    uint32_t looks;  /* atomic: at options that told nothing */
};

/* A wrapped function. `own`: the exported wrapper. */
struct rs_gloo_function {
    const char *symbol;
    const void *own;
    struct rs_gloo_site *sites; /* atomic */
};

/* *spare is filled and returned where there is no room for one more place. */
struct rs_gloo_site *rs_gloo_site(struct rs_gloo_function *f, const void *caller,
                                  struct rs_gloo_site *spare) RS_HIDDEN;

/* Is Gloo to be recorded at all? */
static inline bool rs_gloo_is_on(void)
{
    return RS_LIKELY(rs_core != NULL) && (rs_core->parts & RS_PART_GLOO);
}

#endif
