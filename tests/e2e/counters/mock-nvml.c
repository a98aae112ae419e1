/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock-nvml.c - a libnvidia-ml.so.1 of two GPUs, the second of which tells less. After the vendor's
 * header where there is one, else after what it says. MOCK_NVML_INIT=N: nvmlInit's result. Whoever
 * calls it from a child of the process that called nvmlInit is ended.
 */
#include <stdlib.h>
#include <unistd.h>

#if __has_include(<nvml.h>)
#include <nvml.h>
#else
typedef int nvmlReturn_t, nvmlClockType_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;
typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;
enum { NVML_SUCCESS = 0, NVML_ERROR_NOT_SUPPORTED = 3, NVML_CLOCK_SM = 1 };
#endif

#define EXPORT __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static char gpus[2];
static pid_t owner;

static unsigned number_of(nvmlDevice_t device)
{
    if (getpid() != owner)
        abort();
    return (char *)device == &gpus[1];
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    const char *result = getenv("MOCK_NVML_INIT");
    owner = getpid();
    return (nvmlReturn_t)(result ? atoi(result) : NVML_SUCCESS);
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    return (int)result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    *device = (nvmlDevice_t)(void *)&gpus[index];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *use)
{
    use->gpu = 37 + number_of(device);
    use->memory = 99;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    *memory = (nvmlMemory_t){80ull << 30, 70ull << 30, (10ull + number_of(device)) << 30};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    *milliwatts = 250500;
    return number_of(device) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz)
{
    *mhz = type == NVML_CLOCK_SM ? 1410 + 10 * number_of(device) : 0;
    return NVML_SUCCESS;
}
