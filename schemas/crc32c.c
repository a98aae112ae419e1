/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t table[8][256];

static void fill_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t i = 0; i < 256; i++)
            table[t][i] = (table[t - 1][i] >> 8) ^ table[0][table[t - 1][i] & 255];
}

static void init_table(void)
{
    /* Two threads that come first at once write the same values. */
    static int done;
    if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        return;
    fill_table();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

uint32_t rs_crc32c_portable(uint32_t crc, const void *data, size_t bytes)
{
    init_table();
    const uint8_t *p = data;
    uint32_t c = ~crc;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= c;
        c = table[7][w & 255] ^ table[6][(w >> 8) & 255] ^ table[5][(w >> 16) & 255] ^
            table[4][(w >> 24) & 255] ^ table[3][(w >> 32) & 255] ^ table[2][(w >> 40) & 255] ^
            table[1][(w >> 48) & 255] ^ table[0][w >> 56];
    }
    while (bytes--)
        c = (c >> 8) ^ table[0][(c ^ *p++) & 255];
    return ~c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_with_sse42(uint32_t crc, const uint8_t *p,
                                                                 size_t bytes)
{
    uint64_t c = ~crc;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        c = __builtin_ia32_crc32di(c, w);
    }
    uint32_t c32 = (uint32_t)c;
    while (bytes--)
        c32 = __builtin_ia32_crc32qi(c32, *p++);
    return ~c32;
}
#endif

uint32_t rs_crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return crc_with_sse42(crc, data, bytes);
#endif
    return rs_crc32c_portable(crc, data, bytes);
}
