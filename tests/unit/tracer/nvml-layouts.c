/* SPDX-License-Identifier: Apache-2.0 */
/* nvml-abi.h against the vendor's header, where there is one: that this compiles is the test. */
#if __has_include(<nvml.h>)
#include <nvml.h>

#include <assert.h>
#include <stddef.h>

#include "nvml-abi.h"

static_assert(sizeof(nvmlUtilization_t) == sizeof(struct rs_nvml_utilization), "utilization");
static_assert(offsetof(nvmlUtilization_t, gpu) == offsetof(struct rs_nvml_utilization, gpu), "gpu");
static_assert(sizeof(nvmlMemory_t) == sizeof(struct rs_nvml_memory), "memory");
static_assert(offsetof(nvmlMemory_t, used) == offsetof(struct rs_nvml_memory, used), "used");
static_assert(sizeof(nvmlReturn_t) == sizeof(int) && sizeof(nvmlClockType_t) == sizeof(int), "int");
static_assert(sizeof(nvmlDevice_t) == sizeof(void *), "device");
static_assert(NVML_SUCCESS == RS_NVML_SUCCESS && NVML_CLOCK_SM == (int)RS_NVML_CLOCK_SM, "numbers");

/* The vendor's functions take and give what we call them with. */
#define SAME(name, result, ...)                                                                    \
    static_assert(__builtin_types_compatible_p(__typeof__(name), result(__VA_ARGS__)), #name)
SAME(nvmlInit_v2, nvmlReturn_t, void);
SAME(nvmlErrorString, const char *, nvmlReturn_t);
SAME(nvmlDeviceGetCount_v2, nvmlReturn_t, unsigned *);
SAME(nvmlDeviceGetHandleByIndex_v2, nvmlReturn_t, unsigned, nvmlDevice_t *);
SAME(nvmlDeviceGetUtilizationRates, nvmlReturn_t, nvmlDevice_t, nvmlUtilization_t *);
SAME(nvmlDeviceGetMemoryInfo, nvmlReturn_t, nvmlDevice_t, nvmlMemory_t *);
SAME(nvmlDeviceGetPowerUsage, nvmlReturn_t, nvmlDevice_t, unsigned *);
SAME(nvmlDeviceGetClockInfo, nvmlReturn_t, nvmlDevice_t, nvmlClockType_t, unsigned *);
#endif
typedef int rs_not_empty;
