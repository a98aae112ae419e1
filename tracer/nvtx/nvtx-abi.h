/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx-abi.h - the binary interface between NVTX (version 3, header-only) and a tool, as facts.
 *
 * A program's copy of NVTX loads the library that NVTX_INJECTION64_PATH names and calls its
 * InitializeInjectionNvtx2 with a function that finds export tables by number. The callbacks table
 * gives for a module an array of pointers to function slots; a tool writes its functions there.
 * Checked against the vendor's headers in tests where those are present.
 */
#ifndef RS_TRACER_NVTX_ABI_H
#define RS_TRACER_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { RS_NVTX_TABLE_CALLBACKS = 1 };
enum { RS_NVTX_MODULE_CORE = 1, RS_NVTX_MODULE_CORE2 = 5 };

enum rs_nvtx_core {
    RS_NVTX_MARK_EX = 1,
    RS_NVTX_MARK_A,
    RS_NVTX_MARK_W,
    RS_NVTX_START_EX,
    RS_NVTX_START_A,
    RS_NVTX_START_W,
    RS_NVTX_END,
    RS_NVTX_PUSH_EX,
    RS_NVTX_PUSH_A,
    RS_NVTX_PUSH_W,
    RS_NVTX_POP,
    RS_NVTX_NAME_CATEGORY_A,
    RS_NVTX_NAME_CATEGORY_W,
    RS_NVTX_NAME_THREAD_A,
    RS_NVTX_NAME_THREAD_W,
    RS_NVTX_CORE_SIZE
};

enum rs_nvtx_core2 {
    RS_NVTX_DOMAIN_MARK_EX = 1,
    RS_NVTX_DOMAIN_START_EX,
    RS_NVTX_DOMAIN_END,
    RS_NVTX_DOMAIN_PUSH_EX,
    RS_NVTX_DOMAIN_POP,
    RS_NVTX_DOMAIN_NAME_CATEGORY_A = 8,
    RS_NVTX_DOMAIN_NAME_CATEGORY_W,
    RS_NVTX_DOMAIN_REGISTER_STRING_A,
    RS_NVTX_DOMAIN_REGISTER_STRING_W,
    RS_NVTX_DOMAIN_CREATE_A,
    RS_NVTX_DOMAIN_CREATE_W,
    RS_NVTX_DOMAIN_DESTROY,
    RS_NVTX_INITIALIZE,
    RS_NVTX_CORE2_SIZE
};

enum { RS_NVTX_COLOR_ARGB = 1 };
enum { RS_NVTX_MESSAGE_ASCII = 1, RS_NVTX_MESSAGE_WIDE, RS_NVTX_MESSAGE_REGISTERED };
enum {
    RS_NVTX_PAYLOAD_U64 = 1,
    RS_NVTX_PAYLOAD_I64,
    RS_NVTX_PAYLOAD_F64,
    RS_NVTX_PAYLOAD_U32,
    RS_NVTX_PAYLOAD_I32,
    RS_NVTX_PAYLOAD_F32
};

struct rs_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved; /* number of the extension's payloads */
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        uint32_t u32;
        int32_t i32;
        float f32;
    } payload;
    int32_t message_type;
    const void *message; /* char, wchar_t, or what registering a string returned */
};
_Static_assert(sizeof(struct rs_nvtx_attributes) == 48, "event attributes");
_Static_assert(offsetof(struct rs_nvtx_attributes, message) == 40, "message");

typedef void (*rs_nvtx_function)(void);
struct rs_nvtx_callbacks {
    size_t size;
    int (*module_functions)(int module, rs_nvtx_function ***ret_table, unsigned *ret_size);
};
typedef const void *(*rs_nvtx_export_table)(uint32_t number);

#endif
