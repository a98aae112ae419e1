/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fault-hooks.h - where the runtime and the stand-in NCCL let a planted fault in.
 *
 * Model: weak, so that neither needs the faults' library: a program without it has none of them,
 * and RT_FAULT_HOOK(x, ...) is one test. They come on the threads that communicate.
 */
#ifndef RT_FAULT_HOOKS_H
#define RT_FAULT_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#define RT_FAULT_WEAK __attribute__((weak, visibility("default")))

/* Right before a kernel runs on its stream. */
void rt_fault_hook_kernel(void) RT_FAULT_WEAK;
/* A result, before anybody is told of it. */
void rt_fault_hook_result(void *data, uint64_t bytes) RT_FAULT_WEAK;
/* The version to report, in place of `code`. */
int rt_fault_hook_nccl_version(int code) RT_FAULT_WEAK;
/* A program that plants what RT_FAULT says has begun (rt_faults_begin). */
bool rt_fault_hook_begun(void) RT_FAULT_WEAK;
/* From here, or until here, this process communicates. */
void rt_fault_hook_communicating(bool now) RT_FAULT_WEAK;

#define RT_FAULT_HOOK(name, ...)                                                                   \
    do {                                                                                           \
        if (rt_fault_hook_##name)                                                                  \
            rt_fault_hook_##name(__VA_ARGS__);                                                     \
    } while (0)

#endif
