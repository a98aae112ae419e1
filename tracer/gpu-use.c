/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-use.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nvml-abi.h"
#include "state.h"

#define END_WAITS_MS 1000

static struct {
#define POINTER(name, result, parameters) result(*name) parameters;
    RS_NVML_FUNCTIONS(POINTER)
#undef POINTER
} nvml;

static bool tried, usable;       /* the drain thread's */
static uint32_t looking, ending; /* atomic */
static unsigned count;
static void *gpus[RS_GPUS_MAX];

static bool find_functions(void *handle)
{
    bool all = true;
#define FIND(name, result, parameters)                                                             \
    nvml.name = (result(*) parameters)dlsym(handle, "nvml" #name);                                 \
    all = all && nvml.name;
    RS_NVML_FUNCTIONS(FIND)
#undef FIND
    return all;
}

/* NVML's own end comes after it, and must not meet a look. */
static void stop_at_exit(void)
{
    static const struct timespec ms = {.tv_nsec = 1000000};
    __atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < END_WAITS_MS && __atomic_load_n(&looking, __ATOMIC_SEQ_CST); i++)
        nanosleep(&ms, NULL);
}

static void open_nvml(void)
{
    char why[160];
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) /* nothing to say: no driver */
        return;
    if (!find_functions(handle)) {
        rs_core->meta("off.gpu_use", "this NVML lacks a function: it is too old");
        return;
    }
    int result = nvml.Init_v2();
    if (result == RS_NVML_SUCCESS)
        result = nvml.DeviceGetCount_v2(&count);
    if (result != RS_NVML_SUCCESS) {
        snprintf(why, sizeof(why), "NVML: %s", nvml.ErrorString(result));
        rs_core->meta("off.gpu_use", why);
        return;
    }
    count = count < RS_GPUS_MAX ? count : RS_GPUS_MAX;
    for (unsigned i = 0; i < count; i++)
        if (nvml.DeviceGetHandleByIndex_v2(i, &gpus[i]) != RS_NVML_SUCCESS)
            gpus[i] = NULL; /* not ours to look at */
    usable = true;
    atexit(stop_at_exit);
}

static struct rs_gpu_use ask(void *gpu)
{
    struct rs_gpu_use use = {-1, -1, -1, -1};
    struct rs_nvml_utilization busy;
    struct rs_nvml_memory memory;
    unsigned milliwatts, mhz;
    if (nvml.DeviceGetUtilizationRates(gpu, &busy) == RS_NVML_SUCCESS)
        use.percent = busy.gpu;
    if (nvml.DeviceGetMemoryInfo(gpu, &memory) == RS_NVML_SUCCESS)
        use.memory_bytes = (double)memory.used;
    if (nvml.DeviceGetPowerUsage(gpu, &milliwatts) == RS_NVML_SUCCESS)
        use.power_w = milliwatts / 1e3;
    if (nvml.DeviceGetClockInfo(gpu, RS_NVML_CLOCK_SM, &mhz) == RS_NVML_SUCCESS)
        use.clock_hz = mhz * 1e6;
    return use;
}

unsigned rs_gpu_use_look(struct rs_gpu_use ret[RS_GPUS_MAX])
{
    unsigned n = 0;
    __atomic_store_n(&looking, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&ending, __ATOMIC_SEQ_CST)) {
        if (!tried)
            open_nvml();
        tried = true;
        n = usable ? count : 0;
        for (unsigned i = 0; i < n; i++)
            ret[i] = gpus[i] ? ask(gpus[i]) : (struct rs_gpu_use){-1, -1, -1, -1};
    }
    __atomic_store_n(&looking, 0, __ATOMIC_SEQ_CST);
    return n;
}

/* The parent may have been in the middle of a look, which nobody here ends. */
void rs_gpu_use_forget(void)
{
    usable = false;
    looking = 0;
}
