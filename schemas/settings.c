/* SPDX-License-Identifier: Apache-2.0 */
#include "settings.h"

#include <string.h>

/* The bit of the `n` bytes at `word`, 0 where they are none of `words`. */
static uint32_t bit_of(const char *words, const char *word, size_t n)
{
    uint32_t bit = 1;
    for (; n > 0; bit <<= 1) {
        size_t length = strcspn(words, ",");
        if (length == n && memcmp(words, word, n) == 0)
            return bit;
        if (!words[length])
            break;
        words += length + 1;
    }
    return 0;
}

uint32_t rs_words_find(const char *words, const char *list, const char **ret_unknown,
                       size_t *ret_bytes)
{
    uint32_t found = 0;
    *ret_unknown = NULL;
    *ret_bytes = 0;
    for (;;) {
        size_t n = strcspn(list, ",");
        uint32_t bit = bit_of(words, list, n);
        found |= bit;
        if (!bit && !*ret_unknown) {
            *ret_unknown = list;
            *ret_bytes = n;
        }
        if (!list[n])
            return found;
        list += n + 1;
    }
}
