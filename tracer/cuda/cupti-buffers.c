/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti-buffers.h"

#include <sys/mman.h>

enum state { FREE, TAKEN, OUT, FULL };

static struct buffer {
    uint32_t state;  /* atomic */
    uint64_t turn;   /* of the giving back: FULL alone */
    uint8_t *memory; /* NULL: not mapped yet */
    size_t valid_bytes;
} buffers[RS_CUPTI_BUFFERS];
static uint64_t turns; /* atomic */

static bool change(struct buffer *b, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&b->state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static void set(struct buffer *b, uint32_t to)
{
    __atomic_store_n(&b->state, to, __ATOMIC_RELEASE);
}

static uint8_t *map(void)
{
    void *p = mmap(NULL, RS_CUPTI_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

uint8_t *rs_cupti_buffer_ask(void)
{
    for (unsigned i = 0; i < RS_CUPTI_BUFFERS; i++) {
        struct buffer *b = &buffers[i];
        if (!change(b, FREE, TAKEN))
            continue;
        if (!b->memory)
            b->memory = map();
        set(b, b->memory ? OUT : FREE);
        return b->memory;
    }
    return NULL;
}

static struct buffer *find(const uint8_t *memory)
{
    for (unsigned i = 0; i < RS_CUPTI_BUFFERS; i++)
        if (__atomic_load_n(&buffers[i].state, __ATOMIC_ACQUIRE) >= OUT &&
            buffers[i].memory == memory)
            return &buffers[i];
    return NULL;
}

bool rs_cupti_buffer_give_back(uint8_t *memory, size_t valid_bytes)
{
    struct buffer *b = memory ? find(memory) : NULL;
    if (!b || !change(b, OUT, TAKEN))
        return false;
    b->valid_bytes = valid_bytes < RS_CUPTI_BUFFER_BYTES ? valid_bytes : RS_CUPTI_BUFFER_BYTES;
    b->turn = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
    set(b, b->valid_bytes ? FULL : FREE);
    return true;
}

bool rs_cupti_buffer_take(struct rs_cupti_buffer *ret)
{
    const struct buffer *first = NULL;
    for (unsigned i = 0; i < RS_CUPTI_BUFFERS; i++) {
        const struct buffer *b = &buffers[i];
        if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == FULL &&
            (!first || b->turn < first->turn))
            first = b;
    }
    if (first)
        *ret = (struct rs_cupti_buffer){first->memory, first->valid_bytes};
    return first != NULL;
}

void rs_cupti_buffer_done(const struct rs_cupti_buffer *buffer)
{
    struct buffer *b = find(buffer->memory);
    if (b)
        change(b, FULL, FREE);
}
