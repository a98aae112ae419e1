/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-vector.h - elements at any address; and what x86-64 does to eight 16-bit floats at once, and
 * which of it this processor can.
 *
 * Within rt_coll's kernels only; of the second nothing where __x86_64__ is not defined. The results
 * are those of rt-small-float.h, but for which NaN a float16 becomes.
 */
#ifndef RT_VECTOR_H
#define RT_VECTOR_H

#include <stdint.h>

/* At any address, as a caller's buffers may be. */
#define RT_LOOSE __attribute__((aligned(1)))
typedef RT_LOOSE uint16_t rt_loose_16;
typedef RT_LOOSE float rt_loose_float;

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

#define RT_F16C __attribute__((target("avx,f16c")))

/* May functions marked RT_F16C be called? The processor is asked once: on a virtual machine that
 * takes microseconds. */
static inline bool rt_has_f16c(void)
{
    static int known; /* atomic: 1 yes, -1 no, 0 nobody has looked yet */
    int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (now == 0) {
        unsigned a, b, c, d;
        bool has =
            __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
        now = has ? 1 : -1;
        __atomic_store_n(&known, now, __ATOMIC_RELAXED);
    }
    return now > 0;
}

/* ---- bfloat16, the upper half of a float: every x86-64 can ---- */

struct rt_eight {
    __m128 low, high;
};

static inline struct rt_eight rt_load_bfloat16(const void *x)
{
    const __m128i all = _mm_loadu_si128(x), zero = _mm_setzero_si128();
    return (struct rt_eight){_mm_castsi128_ps(_mm_unpacklo_epi16(zero, all)),
                             _mm_castsi128_ps(_mm_unpackhi_epi16(zero, all))};
}

/* To nearest, ties to even, in each upper half; a NaN is the one of rt_bfloat16. */
static inline __m128i rt_round_to_upper(__m128 x)
{
    const __m128i bits = _mm_castps_si128(x);
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
    const __m128i round = _mm_add_epi32(odd, _mm_set1_epi32(0x7fff));
    const __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(x, x));
    return _mm_or_si128(_mm_andnot_si128(nan, _mm_add_epi32(bits, round)),
                        _mm_and_si128(nan, _mm_set1_epi32(0x7fc00000)));
}

static inline void rt_store_bfloat16(void *z, struct rt_eight x)
{
    /* signed halves saturate at nothing */
    const __m128i low = _mm_srai_epi32(rt_round_to_upper(x.low), 16);
    const __m128i high = _mm_srai_epi32(rt_round_to_upper(x.high), 16);
    _mm_storeu_si128(z, _mm_packs_epi32(low, high));
}

#endif
#endif
