/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX payloads of layouts made at random: no read outside of the payload (it lies at the end of a
 * page behind which nothing may be read, and the sanitizers look), no field lost, no block kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "nvtx/payload.h"
#include "nvtx/schemas.h"
#include "parts.h"

#define ROUNDS  20000
#define LAYOUTS 64

/* ---- a tracer's core ---- */

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;

static uint32_t count_text(const char *text, size_t bytes)
{
    assert_true(bytes <= RS_NVTX_TEXT_MAX);
    return text[0] ? 7 : 8;
}
static unsigned metas;
static void note_meta(const char *key, const char *value)
{
    metas++;
}
static struct rs_core core = {.string = count_text, .meta = note_meta};

/* ---- chance ---- */

static uint64_t state = 1;
static uint64_t any(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static char *edge_of_page(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED && mprotect(p + page, page, PROT_NONE) == 0);
    return p + page;
}

static uint64_t number(void)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   8,
                                   255,
                                   4096,
                                   1ull << 31,
                                   1ull << 32,
                                   1ull << 63,
                                   UINT64_MAX,
                                   UINT64_MAX - 7,
                                   UINT64_MAX / 8};
    return any(3) ? any(64) : odd[any(sizeof odd / sizeof *odd)];
}

static uint64_t ids[LAYOUTS];
static unsigned id_count;

static uint64_t type(void)
{
    if (id_count && any(4) == 0)
        return ids[any(id_count)];
    return any(16) ? 1 + any(RS_NVTX_REGISTERED) : number();
}

static uint64_t new_layout(void)
{
    struct rs_nvtx_schema_entry entries[12] = {0};
    struct rs_nvtx_schema_attributes a = {.type = 1 + any(3), .entries = entries, .name = "layout"};
    a.count = 1 + any(12);
    a.field_mask = RS_NVTX_SCHEMA_HAS_TYPE | RS_NVTX_SCHEMA_HAS_ENTRIES | RS_NVTX_SCHEMA_HAS_COUNT |
                   (any(2) ? RS_NVTX_SCHEMA_HAS_NAME : 0) |
                   (any(2) ? RS_NVTX_SCHEMA_HAS_BYTES : 0) |
                   (any(4) ? 0 : RS_NVTX_SCHEMA_HAS_PACK) | (any(4) ? 0 : RS_NVTX_SCHEMA_HAS_ID);
    a.bytes = any(2) ? any(256) : number();
    a.pack = any(9);
    a.id = RS_NVTX_ID_STATIC + any(8);
    for (size_t i = 0; i < a.count; i++) {
        entries[i].flags = any(2) ? 0 : (any(8) << 4) | (any(4) ? 0 : number() & 0xfff);
        entries[i].type = type();
        entries[i].name = any(2) ? "name" : NULL;
        entries[i].detail = any(2) ? 0 : number();
        entries[i].offset = any(2) ? 0 : number();
    }
    return rs_nvtx_schema_add(NULL, &a);
}

static uint64_t new_enum(void)
{
    struct rs_nvtx_enum_entry values[4] = {{"a", 0, 0}, {"b", 1, 1}, {"c", 2, 1}, {NULL, 7, 0}};
    struct rs_nvtx_enum_attributes a = {.entries = values, .count = 4, .bytes = any(17)};
    a.field_mask = RS_NVTX_ENUM_HAS_ENTRIES | RS_NVTX_ENUM_HAS_COUNT | RS_NVTX_ENUM_HAS_BYTES;
    return rs_nvtx_enum_add(NULL, &a);
}

static void payloads_of_any_layout_are_read_within_themselves(void **unused)
{
    char *end = edge_of_page();
    uint64_t fields = 0;
    state = (uint64_t)getpid();
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : state;
    print_message("SEED=%llu\n", (unsigned long long)state);
    rs_core = &core;
    while (id_count < LAYOUTS) {
        ids[id_count] = any(5) ? new_layout() : new_enum();
        id_count += ids[id_count] != 0;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t bytes = any(2) ? any(64) : any(1024);
        for (size_t k = 1; k <= bytes; k++)
            end[-(ptrdiff_t)k] = (char)(any(3) ? any(256) : 0);
        struct rs_nvtx_payload p[2];
        for (int k = 0; k < 2; k++)
            p[k] = (struct rs_nvtx_payload){any(8) ? ids[any(id_count)] : type(),
                                            any(8) ? bytes : RS_NVTX_SIZE_UNKNOWN, end - bytes};
        struct rs_nvtx_what what = {0};
        rs_nvtx_payloads_read(NULL, p, 2, &what);
        fields += what.fields ? what.fields->n : 0;
        assert_true(!what.fields || what.fields->n <= RS_NVTX_FIELDS_MAX);
        assert_true(rs_nvtx_fields_slots(what.fields) <= RS_NVTX_FIELDS_MAX);
        rs_nvtx_fields_release(what.fields);
    }
    print_message("%llu fields\n", (unsigned long long)fields);
    assert_true(fields > ROUNDS / 20); /* it isn't all nonsense */
    struct rs_nvtx_what all[RS_NVTX_BLOCKS] = {0};
    static const int one = 1;
    struct rs_nvtx_payload p = {RS_NVTX_INT, sizeof one, &one};
    for (unsigned i = 0; i < RS_NVTX_BLOCKS; i++) { /* all blocks are there again */
        rs_nvtx_payloads_read(NULL, &p, 1, &all[i]);
        assert_non_null(all[i].fields);
    }
    for (unsigned i = 0; i < RS_NVTX_BLOCKS; i++)
        rs_nvtx_fields_release(all[i].fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_of_any_layout_are_read_within_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
