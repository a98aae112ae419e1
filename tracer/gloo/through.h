/* SPDX-License-Identifier: Apache-2.0 */
/*
 * through.h - a call of C++ from C that C++ exceptions and cancellation may leave.
 *
 * Model: rs_gloo_through(a, b, c, real) calls real(a, b, c). Its frame has a personality routine of
 * our own: when the stack is unwound through it, rs_gloo_unwound is called, and the unwinding goes
 * on. So there is neither a landing pad nor a need for libgcc_s, which programs without C++ have
 * not loaded.
 */
#ifndef RS_TRACER_GLOO_THROUGH_H
#define RS_TRACER_GLOO_THROUGH_H

#include "core.h"

void rs_gloo_through(const void *a, const void *b, const void *c, void *real) RS_HIDDEN;

#define RS_UNWIND_CLEANUP  2 /* _UA_CLEANUP_PHASE */
#define RS_UNWIND_CONTINUE 8 /* _URC_CONTINUE_UNWIND */

/* As _Unwind_Personality_Fn. */
int rs_gloo_unwound(int version, int actions, uint64_t kind, void *exception,
                    void *context) RS_HIDDEN;

#endif
