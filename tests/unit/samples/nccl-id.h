/* SPDX-License-Identifier: Apache-2.0 */
/* nccl-id.h - an id as text, for ranks that are processes. */
#ifndef NCCL_ID_H
#define NCCL_ID_H

#include <nccl.h>
#include <stdio.h>

#define NCCL_ID_TEXT_BYTES (2 * NCCL_UNIQUE_ID_BYTES + 1)

static inline void id_to_text(const ncclUniqueId *id, char *ret)
{
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++)
        sprintf(ret + 2 * i, "%02x", (unsigned char)id->internal[i]);
}

static inline ncclUniqueId id_of_text(const char *text)
{
    ncclUniqueId id;
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        id.internal[i] = (char)byte;
    }
    return id;
}

#endif
