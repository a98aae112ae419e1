/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.h - reads a data set in MNIST's format: images of bytes and a label each.
 *
 * In a folder stand train-images-idx3-ubyte and train-labels-idx1-ubyte (or with .idx3, .idx1),
 * each also as .gz where the build found zlib. All of both is read into memory, and checked.
 */
#ifndef TRAIN_IDX_H
#define TRAIN_IDX_H

#include <stddef.h>
#include <stdint.h>

struct idx_data {
    uint64_t items;
    int pixels; /* of an image */
    uint8_t *pixel, *label;
};

/* Labels must be below `classes`. -ENOENT, -EBADMSG a file is damaged, -ENOMEM, -EIO, -ENOTSUP;
 * `message` says which file, where in it, and what was expected. */
int idx_read(struct idx_data *ret, const char *folder, int classes, char *message,
             size_t message_bytes);
/* NULL-safe in its members; what is cleared is empty. */
void idx_clear(struct idx_data *data);

#endif
