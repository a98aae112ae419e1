/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-types.h - element types and reductions, the words that rt_coll and the runtime share.
 *
 * C has no type for the small floats: they are what rt-small-float.h makes of 16 or 8 bits.
 */
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* RT_<name>, as texts call it, bytes of an element. A number, once given, stays. */
#define RT_TYPE_LIST(X)                                                                            \
    X(FLOAT32, "float32", 4)                                                                       \
    X(INT32, "int32", 4)                                                                           \
    X(FLOAT64, "float64", 8)                                                                       \
    X(FLOAT16, "float16", 2)                                                                       \
    X(BFLOAT16, "bfloat16", 2)                                                                     \
    X(FLOAT8_E4M3, "float8_e4m3", 1)                                                               \
    X(FLOAT8_E5M2, "float8_e5m2", 1)                                                               \
    X(INT8, "int8", 1)                                                                             \
    X(INT16, "int16", 2)                                                                           \
    X(INT64, "int64", 8)                                                                           \
    X(UINT8, "uint8", 1)                                                                           \
    X(UINT16, "uint16", 2)                                                                         \
    X(UINT32, "uint32", 4)                                                                         \
    X(UINT64, "uint64", 8)                                                                         \
    X(BOOL, "bool", 1)

#define RT_OP_LIST(X)                                                                              \
    X(SUM, "sum")                                                                                  \
    X(PROD, "product")                                                                             \
    X(MAX, "max")                                                                                  \
    X(MIN, "min")                                                                                  \
    X(AVG, "average")

#define RT_TYPE_ENUM(name, text, bytes) RT_##name,
#define RT_OP_ENUM(name, text)          RT_##name,
enum rt_type { RT_TYPE_LIST(RT_TYPE_ENUM) RT_TYPE_COUNT };
enum rt_op {
    RT_OP_LIST(RT_OP_ENUM) RT_OP_COUNT,
    RT_ADASUM = RT_OP_COUNT /* of whole vectors, not of elements: rt_allreduce_adasum */
};
#undef RT_TYPE_ENUM
#undef RT_OP_ENUM

#define RT_TYPE_BYTES_MAX 8

static inline uint64_t rt_type_bytes(enum rt_type type)
{
#define RT_TYPE_BYTES(name, text, bytes) bytes,
    static const uint8_t bytes_of[] = {RT_TYPE_LIST(RT_TYPE_BYTES)};
#undef RT_TYPE_BYTES
    return (unsigned)type < RT_TYPE_COUNT ? bytes_of[type] : 0;
}

#ifdef __cplusplus
}
#endif

#endif
