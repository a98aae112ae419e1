/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schemas.h - layouts and enumerations that a program registered for NVTX payloads.
 *
 * Model: copied at the registration, by a way that a wrong address can't crash; never changed or
 * freed. An id that the program chose counts within its domain; the newest of the same id counts.
 * Limits: RS_NVTX_SCHEMAS_MAX of both kinds, RS_NVTX_ENTRIES_MAX entries; more is refused (id 0).
 * Threads: any; finding takes no lock.
 */
#ifndef RS_TRACER_NVTX_SCHEMAS_H
#define RS_TRACER_NVTX_SCHEMAS_H

#include "names.h"
#include "payload-abi.h"

#define RS_NVTX_SCHEMAS_MAX 4096
#define RS_NVTX_ENTRIES_MAX 256
#define RS_NVTX_LABEL_MAX   128

struct rs_nvtx_entry {
    uint64_t flags, type, detail, offset;
    struct rs_nvtx_text *name;
    char label[RS_NVTX_LABEL_MAX]; /* the same; "field 3" where it has none */
};
struct rs_nvtx_value {
    uint64_t value;
    bool is_flag;
    struct rs_nvtx_text *name;
    char label[RS_NVTX_LABEL_MAX];
};

struct rs_nvtx_schema {
    struct rs_nvtx_schema *next;
    uint64_t id;
    const void *domain;
    struct rs_nvtx_text *name; /* NULL none */
    bool is_enum, is_known;    /* is_known: of a type that can be read */
    size_t bytes, align;       /* bytes 0: not known beforehand; of an enum 1, 2, 4 or 8 */
    size_t pack;               /* 0: natural alignment */
    unsigned count;
    struct rs_nvtx_entry *entries;
    struct rs_nvtx_value *values;
};

/* Returns its id, 0 where it is refused. */
uint64_t rs_nvtx_schema_add(const void *domain,
                            const struct rs_nvtx_schema_attributes *a) RS_HIDDEN;
uint64_t rs_nvtx_enum_add(const void *domain, const struct rs_nvtx_enum_attributes *a) RS_HIDDEN;
const struct rs_nvtx_schema *rs_nvtx_schema_find(const void *domain, uint64_t id) RS_HIDDEN;

/* Bytes of one element of a predefined type; 0: of none, or of one that isn't read. */
size_t rs_nvtx_type_bytes(uint64_t type) RS_HIDDEN;
/* Width of a character of a string or character type, 0 of others. */
size_t rs_nvtx_char_bytes(uint64_t type) RS_HIDDEN;

/* False where not all of it can be read, or the kernel refuses to tell. */
bool rs_nvtx_copy(void *to, const void *from, size_t bytes) RS_HIDDEN;
/* A text of characters of `width` bytes up to its end or `room`; false: it can't be read. */
bool rs_nvtx_copy_text(char *to, size_t room, const void *from, size_t width) RS_HIDDEN;

#endif
