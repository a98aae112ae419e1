/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload-abi.h - NVTX's payload extension as facts: what a program registers and hands over.
 *
 * A program's copy of the extension calls InitializeInjectionNvtxExtension of the library that
 * NVTX_INJECTION64_PATH names, with slots for functions. Of versions 1.x alike; what they added
 * stands at the ends of structs and isn't read. Checked against the vendor's header in tests.
 */
#ifndef RS_TRACER_NVTX_PAYLOAD_ABI_H
#define RS_TRACER_NVTX_PAYLOAD_ABI_H

#include <stddef.h>
#include <stdint.h>

#define RS_NVTX_EXT_MODULE       2
#define RS_NVTX_EXT_COMPAT_MAJOR 1            /* of 0x0104: its upper byte */
#define RS_NVTX_PAYLOAD_EXT      (-541261815) /* as 32 bits 0xDFBD0009: of attributes' payload_type */
#define RS_NVTX_ID_STATIC        (1ull << 24) /* the program's own schema ids, up to */
#define RS_NVTX_ID_DYNAMIC       (1ull << 32) /* those that the tool gives */
#define RS_NVTX_ID_REFERENCED    1022u        /* a payload that others point into */
#define RS_NVTX_SIZE_UNKNOWN     SIZE_MAX

enum rs_nvtx_ext_slot {
    RS_NVTX_SCHEMA_REGISTER,
    RS_NVTX_ENUM_REGISTER,
    RS_NVTX_MARK_PAYLOAD,
    RS_NVTX_PUSH_PAYLOAD,
    RS_NVTX_POP_PAYLOAD,
    RS_NVTX_START_PAYLOAD,
    RS_NVTX_END_PAYLOAD,
    RS_NVTX_EXT_SLOTS
};

struct rs_nvtx_ext_segment {
    size_t id, slot_count;
    intptr_t *slots;
};
struct rs_nvtx_ext_module {
    uint16_t nvtx_version, struct_bytes, module, compat;
    size_t segment_count;
    struct rs_nvtx_ext_segment *segments;
};

enum rs_nvtx_entry_flags {
    RS_NVTX_FLAG_POINTER = 1 << 1,
    RS_NVTX_FLAG_FROM_BASE = 1 << 2,
    RS_NVTX_FLAG_FROM_HERE = 1 << 3,
    RS_NVTX_FLAG_ARRAY = 7 << 4, /* one of the next ones */
    RS_NVTX_ARRAY_FIXED = 1 << 4,
    RS_NVTX_ARRAY_ZERO = 2 << 4,   /* ends before an element that is 0 */
    RS_NVTX_ARRAY_LENGTH = 3 << 4, /* as another entry says */
    RS_NVTX_FLAG_HIDE = 1 << 9,
    RS_NVTX_FLAG_MESSAGE = 1 << 10,
};

enum rs_nvtx_type {
    RS_NVTX_CHAR = 1,
    RS_NVTX_UCHAR,
    RS_NVTX_SHORT,
    RS_NVTX_USHORT,
    RS_NVTX_INT,
    RS_NVTX_UINT,
    RS_NVTX_LONG,
    RS_NVTX_ULONG,
    RS_NVTX_LONGLONG,
    RS_NVTX_ULONGLONG,
    RS_NVTX_INT8,
    RS_NVTX_UINT8,
    RS_NVTX_INT16,
    RS_NVTX_UINT16,
    RS_NVTX_INT32,
    RS_NVTX_UINT32,
    RS_NVTX_INT64,
    RS_NVTX_UINT64,
    RS_NVTX_FLOAT,
    RS_NVTX_DOUBLE,
    RS_NVTX_LONGDOUBLE,
    RS_NVTX_SIZE,
    RS_NVTX_ADDRESS,
    RS_NVTX_WCHAR,
    RS_NVTX_CHAR8,
    RS_NVTX_CHAR16,
    RS_NVTX_CHAR32,
    RS_NVTX_BYTE = 32,
    RS_NVTX_INT128,
    RS_NVTX_UINT128,
    RS_NVTX_FLOAT16 = 42,
    RS_NVTX_FLOAT32,
    RS_NVTX_FLOAT64,
    RS_NVTX_FLOAT128,
    RS_NVTX_BF16 = 50,
    RS_NVTX_TF32 = 52,
    RS_NVTX_CATEGORY = 68,
    RS_NVTX_COLOR,
    RS_NVTX_SCOPE,
    RS_NVTX_PID32,
    RS_NVTX_PID64,
    RS_NVTX_TID32,
    RS_NVTX_TID64,
    RS_NVTX_STRING,
    RS_NVTX_STRING_UTF8,
    RS_NVTX_STRING_UTF16,
    RS_NVTX_STRING_UTF32,
    RS_NVTX_REGISTERED = 80,
};

enum rs_nvtx_schema_type { RS_NVTX_SCHEMA_STATIC = 1, RS_NVTX_SCHEMA_DYNAMIC = 2 };
enum rs_nvtx_schema_fields { /* of field_mask */
                             RS_NVTX_SCHEMA_HAS_NAME = 1 << 1,
                             RS_NVTX_SCHEMA_HAS_TYPE = 1 << 2,
                             RS_NVTX_SCHEMA_HAS_ENTRIES = 1 << 4,
                             RS_NVTX_SCHEMA_HAS_COUNT = 1 << 5,
                             RS_NVTX_SCHEMA_HAS_BYTES = 1 << 6,
                             RS_NVTX_SCHEMA_HAS_PACK = 1 << 7,
                             RS_NVTX_SCHEMA_HAS_ID = 1 << 8,
};
struct rs_nvtx_schema_entry {
    uint64_t flags, type;
    const char *name, *description;
    uint64_t detail, offset; /* detail: length of an array or string, or which entry has it */
    const void *semantics, *reserved;
};
struct rs_nvtx_schema_attributes {
    uint64_t field_mask;
    const char *name;
    uint64_t type, flags;
    const struct rs_nvtx_schema_entry *entries;
    size_t count, bytes, pack;
    uint64_t id;
};

enum rs_nvtx_enum_fields {
    RS_NVTX_ENUM_HAS_NAME = 1 << 1,
    RS_NVTX_ENUM_HAS_ENTRIES = 1 << 2,
    RS_NVTX_ENUM_HAS_COUNT = 1 << 3,
    RS_NVTX_ENUM_HAS_BYTES = 1 << 4,
    RS_NVTX_ENUM_HAS_ID = 1 << 5,
};
struct rs_nvtx_enum_entry {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};
struct rs_nvtx_enum_attributes {
    uint64_t field_mask;
    const char *name;
    const struct rs_nvtx_enum_entry *entries;
    size_t count, bytes;
    uint64_t id;
};

struct rs_nvtx_payload {
    uint64_t schema;
    size_t bytes;
    const void *data;
};

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct rs_nvtx_schema_entry) == 64, "schema entry");
_Static_assert(sizeof(struct rs_nvtx_schema_attributes) == 72, "schema");
_Static_assert(sizeof(struct rs_nvtx_enum_entry) == 24, "enum entry");
_Static_assert(sizeof(struct rs_nvtx_enum_attributes) == 48, "enum");
_Static_assert(sizeof(struct rs_nvtx_payload) == 24, "payload");
_Static_assert(offsetof(struct rs_nvtx_ext_module, segments) == 16, "module");
#endif

#endif
