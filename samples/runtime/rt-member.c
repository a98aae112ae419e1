/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-member.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rt_member {
    struct rt_cache *cache;
    uint64_t orders_read;
    uint8_t *bits; /* by slot */
    uint32_t room; /* bytes */
    uint32_t used; /* bytes, up to the last that has a bit */
    struct rt_bytes full;
    uint32_t full_count;
};

struct rt_member *rt_member_new(void)
{
    struct rt_member *m = calloc(1, sizeof *m);
    if (m)
        m->cache = rt_cache_new(false);
    if (m && !m->cache) {
        free(m);
        m = NULL;
    }
    return m;
}

void rt_member_free(struct rt_member *m)
{
    if (!m)
        return;
    rt_cache_free(m->cache);
    free(m->bits);
    free(m->full.data);
    free(m);
}

static int set_bit(struct rt_member *m, uint32_t slot)
{
    const uint32_t byte = slot / 8;
    if (byte >= m->room) {
        const uint32_t room = byte * 2 + 16;
        uint8_t *grown = realloc(m->bits, room);
        if (!grown)
            return -ENOMEM;
        memset(grown + m->room, 0, room - m->room);
        m->bits = grown;
        m->room = room;
    }
    m->bits[byte] |= (uint8_t)(1u << slot % 8);
    if (byte >= m->used)
        m->used = byte + 1;
    return 0;
}

int rt_member_announce(struct rt_member *m, const struct rt_tensor *tensor)
{
    const uint32_t slot = rt_cache_find(m->cache, tensor->name);
    const struct rt_tensor *agreed = rt_cache_at(m->cache, slot);
    if (agreed && rt_tensor_is_like(agreed, tensor) && agreed->priority == tensor->priority)
        return set_bit(m, slot);
    rt_put_tensor(&m->full, tensor);
    m->full_count++;
    return m->full.failed ? -ENOMEM : 0;
}

void rt_member_put(struct rt_member *m, struct rt_bytes *to)
{
    const struct rt_announcement head = {m->orders_read, m->used, m->full_count};
    if (m->used == 0 && m->full_count == 0)
        return;
    rt_put(to, &head, sizeof head);
    rt_put(to, m->bits, m->used);
    rt_put(to, m->full.data, m->full.n);
    if (m->used > 0)
        memset(m->bits, 0, m->used);
    m->used = m->full_count = 0;
    m->full.n = 0;
}

static int resolve(struct rt_member *m, uint32_t slot, struct rt_tensor *tensor)
{
    if (slot == RT_SLOT_NONE)
        return 0;
    if (slot & RT_SLOT_STORE)
        return rt_cache_store(m->cache, slot & ~RT_SLOT_STORE, tensor, m->orders_read);
    const struct rt_tensor *known = rt_cache_at(m->cache, slot);
    if (!known)
        return -EPROTO;
    *tensor = *known;
    return 0;
}

int rt_member_get_order(struct rt_member *m, struct rt_reader *from, struct rt_order *ret)
{
    int error = rt_get_order(from, ret);
    if (error)
        return error;
    m->orders_read++;
    for (uint32_t i = 0; i < ret->n && !error; i++)
        error = resolve(m, ret->slots[i], &ret->tensors[i]);
    if (error)
        rt_order_clear(ret);
    return error;
}
