/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

train_real *train_zeros(uint64_t count)
{
    uint64_t bytes = (count * sizeof(train_real) + 63) / 64 * 64;
    train_real *data = aligned_alloc(64, bytes ? bytes : 64);
    if (data)
        memset(data, 0, bytes);
    return data;
}

uint64_t train_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t train_checksum(const struct train_tensor *tensor, unsigned n)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by words */
    for (unsigned i = 0; i < n; i++)
        for (uint64_t k = 0; k < tensor[i].count; k++) {
            uint32_t bits;
            memcpy(&bits, &tensor[i].value[k], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
    return hash;
}
