/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread-memory.h - what a thread keeps beyond a few words. Thread-local storage must stay
 * small: NCCL may load the library late, as a plug-in, when little room is left for it.
 */
#ifndef RS_TRACER_THREAD_MEMORY_H
#define RS_TRACER_THREAD_MEMORY_H

#include <stddef.h>

#include "core.h"

/* Zeroed memory for the calling thread, whose thread-local pointer `slot` it sets; NULL without
 * memory. At the thread's end it is unmapped and the pointer cleared. Keeps errno. */
void *rs_thread_memory(void *slot, size_t bytes) RS_HIDDEN;

#endif
