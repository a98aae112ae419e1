/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rt-file.h"
#include "tensor.h"

int text_read(struct text *ret, const char *path, char *message, size_t message_bytes)
{
    struct stat st;
    int result;
    FILE *f = rt_file_read(path, &result);
    if (f && fstat(fileno(f), &st) < 0)
        result = -errno;
    if (result < 0) {
        snprintf(message, message_bytes, "%s: can't be opened: %s", path, rt_file_why(result));
        if (f)
            fclose(f);
        return result;
    }
    *ret = (struct text){.data = malloc((size_t)st.st_size + 1), .bytes = (uint64_t)st.st_size};
    size_t got = ret->data ? fread(ret->data, 1, ret->bytes, f) : 0;
    fclose(f);
    if (ret->data && got == ret->bytes)
        return 0;
    result = ret->data ? -EIO : -ENOMEM;
    snprintf(message, message_bytes, "%s: %s", path,
             ret->data ? "can't be read as a whole" : "no memory");
    text_clear(ret);
    return result;
}

static const char *word(uint64_t *random, int kind)
{
    static const char *const words[3][8] = {
        {"rank", "link", "host", "tensor", "gradient", "message", "kernel", "ring"},
        {"waits for", "sends to", "averages", "slows", "follows", "traces", "joins", "reduces"},
        {"late", "slow", "small", "first", "last", "hidden", "exposed", "healthy"},
    };
    return words[kind][train_random(random) % 8];
}

int text_make(struct text *ret, uint64_t bytes, uint64_t seed)
{
    uint64_t random = seed * 77 + 1;
    *ret = (struct text){.data = malloc(bytes), .bytes = bytes};
    if (!ret->data)
        return -ENOMEM;
    for (uint64_t at = 0; at < bytes;) {
        char sentence[128];
        const char *one = word(&random, 2), *first = word(&random, 0), *does = word(&random, 1);
        int n = snprintf(sentence, sizeof sentence, "The %s %s %s the %s. ", one, first, does,
                         word(&random, 0));
        uint64_t fits = bytes - at < (uint64_t)n ? bytes - at : (uint64_t)n;
        memcpy(ret->data + at, sentence, fits);
        at += fits;
    }
    return 0;
}

void text_clear(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}
