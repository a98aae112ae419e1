/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - finds the NCCL that the program loaded, by handle: never RTLD_NEXT, which is NULL
 * where the library was loaded locally.
 */
#ifndef RS_TRACER_NCCL_LIBRARY_H
#define RS_TRACER_NCCL_LIBRARY_H

#include "core.h"

/* The real `name`, NULL where no NCCL is loaded or it lacks the function. The caller's errno
 * stays. */
void *rs_nccl_find(const char *name) RS_HIDDEN;
/* As rs_nccl_find; keeps what it found in `slot` and defines the operation. */
void *rs_nccl_resolve(void **slot, const char *name, uint16_t op) RS_HIDDEN;
/* Do the program's calls go through our wrappers? Known once one was called. */
bool rs_nccl_is_wrapped(void) RS_HIDDEN;
/* What the last rs_nccl_came said; NULL none. */
const void *rs_nccl_who_came(void) RS_HIDDEN;

static inline void *rs_nccl_function(void **slot, const char *name, uint16_t op)
{
    void *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    return RS_LIKELY(found != NULL) ? found : rs_nccl_resolve(slot, name, op);
}

#endif
