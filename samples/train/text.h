/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - bytes to learn a language from: a file's, or made up.
 */
#ifndef TRAIN_TEXT_H
#define TRAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
    uint8_t *data;
    uint64_t bytes;
};

/* All of a file. A negative errno, and the message says why. */
int text_read(struct text *ret, const char *path, char *message, size_t message_bytes);
/* `bytes` of sentences of drawn words, the same of a seed. -ENOMEM. */
int text_make(struct text *ret, uint64_t bytes, uint64_t seed);
void text_clear(struct text *text);

#endif
