/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-types.h - element types and reductions, the words that rt_coll and the runtime share.
 */
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdint.h>

enum rt_type { RT_FLOAT32, RT_INT32, RT_TYPE_COUNT };
enum rt_op { RT_SUM, RT_PROD, RT_MAX, RT_MIN, RT_AVG, RT_OP_COUNT };

static inline uint64_t rt_type_bytes(enum rt_type type)
{
    return type < RT_TYPE_COUNT ? 4 : 0;
}

#endif
