/* SPDX-License-Identifier: Apache-2.0 */
/* nvml-abi.h - what the tracer calls of NVML. A test that has the vendor's header compares. */
#ifndef RS_TRACER_NVML_ABI_H
#define RS_TRACER_NVML_ABI_H

#define RS_NVML_SUCCESS  0
#define RS_NVML_CLOCK_SM 1

struct rs_nvml_utilization {
    unsigned gpu, memory; /* per cent */
};
struct rs_nvml_memory {
    unsigned long long total, free, used;
};

/* X(name without "nvml", result, parameters) */
#define RS_NVML_FUNCTIONS(X)                                                                       \
    X(Init_v2, int, (void))                                                                        \
    X(ErrorString, const char *, (int))                                                            \
    X(DeviceGetCount_v2, int, (unsigned *))                                                        \
    X(DeviceGetHandleByIndex_v2, int, (unsigned, void **))                                         \
    X(DeviceGetUtilizationRates, int, (void *, struct rs_nvml_utilization *))                      \
    X(DeviceGetMemoryInfo, int, (void *, struct rs_nvml_memory *))                                 \
    X(DeviceGetPowerUsage, int, (void *, unsigned *))                                              \
    X(DeviceGetClockInfo, int, (void *, int, unsigned *))

#endif
