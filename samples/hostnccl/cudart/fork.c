/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of fork has its parent's memory, but none of its threads: a stream of its parent's would
 * never go on, and its locks may be held for ever. Such handles are refused; new ones work.
 */
#include "cudart.h"

static unsigned generation;

unsigned cudart_generation(void)
{
    return generation;
}

static void in_child(void)
{
    generation++;
    cudart_streams_after_fork();
    cudart_default_after_fork();
    cudart_captures_after_fork();
    cudart_registry_after_fork();
}

static void __attribute__((constructor)) watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}
