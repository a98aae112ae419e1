/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu-use.h - how busy the host's NVIDIA GPUs are, by NVML, where there is a driver.
 *
 * NVML comes with the driver, is opened by name at the first look and never linked to; its header
 * isn't needed. GPUs are numbered as nvidia-smi does, whatever a program is allowed to see.
 * Threads: the drain thread looks. What NVML opens is closed by nobody: the process ends with it.
 * A forked child of a process that has looked doesn't look.
 */
#ifndef RS_TRACER_GPU_USE_H
#define RS_TRACER_GPU_USE_H

#include "core.h"

#define RS_GPUS_MAX 32

/* -1: this GPU doesn't tell. */
struct rs_gpu_use {
    double percent; /* of the last while, in which a kernel ran */
    double memory_bytes, power_w, clock_hz;
};

/* Fills ret[0..n), returns n; 0 where there is no driver, no GPU, or it can't be asked. */
unsigned rs_gpu_use_look(struct rs_gpu_use ret[RS_GPUS_MAX]) RS_HIDDEN;
void rs_gpu_use_forget(void) RS_HIDDEN; /* child of a fork */

#endif
