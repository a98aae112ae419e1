/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels; the mangled ones are as compilers made them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel-names.h"

static const gchar *const names[][2] = {
    {"_Z4gemmv", "gemm"},
    {"_Z4gemmPfS_i", "gemm"},
    {"_ZL4gemmPfS_i", "gemm"},
    {"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
     "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_T1_",
     "at::native::vectorized_elementwise_kernel<...>"},
    {"_ZN2at6native12_GLOBAL__N_14scanIfEEvPT_", "at::native::(anonymous)::scan<...>"},
    {"_ZN7cutlass6KernelINS_4gemm6kernelEEEvT_", "cutlass::Kernel<...>"},
    {"_Z6reduceIfEvPT_", "reduce<...>"},
    {"_ZNK3foo3runEv", "foo::run"},
    {"_ZNSt3pmr4copyEv", "std::pmr::copy"},
    /* what is left as it is */
    {"volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"},
    {"memcpy128", "memcpy128"},
    {"", ""},
    {"_Z", "_Z"},
    {"_ZN", "_ZN"},
    {"_ZN2atE", "at"},
    {"_ZN2at6nativeplERKi", "_ZN2at6nativeplERKi"},
    {"_ZZ4mainvENKUlvE_clEv", "_ZZ4mainvENKUlvE_clEv"},
    {"_ZN2at99999999999999999999999x", "_ZN2at99999999999999999999999x"},
    {"_Z12cut", "_Z12cut"},
    {"_ZN2at6nat", "_ZN2at6nat"},
};

static void dup_name_of_what_compilers_make_reads(void **state)
{
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree gchar *name = rs_kernel_dup_name(names[i][0]);
        assert_string_equal(name, names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dup_name_of_what_compilers_make_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
