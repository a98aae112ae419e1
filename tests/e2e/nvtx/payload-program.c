/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of NVTX's extension, sound ones and hostile ones, around an MPI program of one rank.
 * What must be recorded stands in test-payloads.py. */
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static nvtxDomainHandle_t domain;

static uint64_t schema_of(const char *name, uint64_t type, const nvtxPayloadSchemaEntry_t *entries,
                          size_t n, size_t bytes, uint64_t id)
{
    nvtxPayloadSchemaAttr_t a = {0};
    a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                  NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                  (bytes ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE : 0) |
                  (id ? NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID : 0);
    a.name = name;
    a.type = type;
    a.entries = entries;
    a.numEntries = n;
    a.payloadStaticSize = bytes;
    a.schemaId = id;
    return nvtxPayloadSchemaRegister(domain, &a);
}
#define STATIC(name, entries, bytes)                                                               \
    schema_of(name, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, COUNT(entries), bytes, 0)

/* A range of that name with one payload. */
static void range(const char *name, uint64_t schema, const void *data, size_t bytes)
{
    nvtxPayloadData_t payload = {schema, bytes, data};
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = name;
    a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    a.reserved0 = 1;
    a.payload.ullValue = (uint64_t)(uintptr_t)&payload;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePop(domain);
}

static uint64_t colours(void)
{
    static const nvtxPayloadEnum_t values[] = {
        {"none", 0, 0}, {"red", 1, 1}, {"green", 2, 1}, {"all", 7, 0}};
    nvtxPayloadEnumAttr_t a = {0};
    a.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                  NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
    a.name = "colours";
    a.entries = values;
    a.numEntries = COUNT(values);
    a.sizeOfEnum = sizeof(int);
    return nvtxPayloadEnumRegister(domain, &a);
}

struct inner {
    int16_t x;
    double y;
};
struct all {
    int8_t small;
    uint64_t large;
    float real;
    char text[4]; /* full: not terminated */
    const char *pointer;
    struct inner inner;
    int dims[3];
    int colour, mixed, unknown;
};

static void all_kinds(void)
{
    static const nvtxPayloadSchemaEntry_t inner[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT16, "x", NULL, 0, 0, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "y", NULL, 0, 0, NULL, NULL}}; /* where C puts it */
    uint64_t colour = colours(), nested = STATIC("inner", inner, 0);
#define AT(member) offsetof(struct all, member), NULL, NULL
    nvtxPayloadSchemaEntry_t entries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "small", NULL, 0, AT(small)},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "large", NULL, 0, AT(large)},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_FLOAT, "real", NULL, 0, AT(real)},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", NULL, 4, AT(text)},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "pointer", NULL, 0, AT(pointer)},
        {0, nested, "inner", NULL, 0, AT(inner)},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_INT, "dims", NULL, 3,
         AT(dims)},
        {0, colour, "colour", NULL, 0, AT(colour)},
        {0, colour, "mixed", NULL, 0, AT(mixed)},
        {0, colour, "unknown", NULL, 0, AT(unknown)},
        {NVTX_PAYLOAD_ENTRY_FLAG_HIDE, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "hidden", NULL, 0, AT(small)},
    };
    struct all v = {-3, 1ull << 63, 1.5f, {'f', 'u', 'l', 'l'}, "behind", {-7, 2.25}, {4, 5, 6},
                    2,  3,          9};
    uint64_t id = STATIC("everything", entries, sizeof v);
    range("all kinds", id, &v, sizeof v);
    range("size unknown", id, &v, SIZE_MAX);
    range("cut", id, &v, offsetof(struct all, text) + 2); /* shorter than the layout says */
    v.pointer = (const char *)8;
    range("wild pointer", id, &v, sizeof v);
}

/* A length in another entry, text to its zero, and what is behind them found by its length. */
static void dynamic(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "n", NULL, 0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "bytes", NULL,
         0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text",
         NULL, 0, 0, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT8, "last", NULL, 0, 0, NULL, NULL},
    };
    uint64_t id = schema_of("dynamic", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, entries, COUNT(entries), 0,
                            NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1);
    static const uint8_t good[] = {2, 11, 12, 'o', 'k', 0, 77};
    static const uint8_t long_array[] = {200, 11, 12};
    static const uint8_t endless[] = {0, 'n', 'o', 'e', 'n', 'd'};
    range("dynamic", id, good, sizeof good);
    range("longer than it is", id, long_array, sizeof long_array);
    range("not terminated", id, endless, sizeof endless);
}

/* The extension's own calls: the message is in the payload, and more comes at the end. */
static void own_calls(void)
{
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message", NULL, 0,
         0, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "n", NULL, 0, 0, NULL, NULL},
    };
    struct {
        const char *message;
        int n;
    } v = {"pushed", 1}, w = {NULL, 2};
    uint64_t id = STATIC("call", entries, sizeof v);
    nvtxPayloadData_t first = {id, sizeof v, &v}, second = {id, sizeof w, &w};
    int level = nvtxRangePushPayload(domain, &first, 1), left;
    left = nvtxRangePopPayload(domain, &second, 1);
    printf("levels %d %d\n", level, left);
    v.message = "started";
    nvtxRangeId_t span = nvtxRangeStartPayload(domain, &first, 1);
    w.message = "renamed";
    nvtxRangeEndPayload(domain, span, &second, 1);
    nvtxRangeEndPayload(domain, span, &second, 1);
    v.message = "marked";
    nvtxMarkPayload(domain, &first, 1);
    nvtxPayloadData_t both[2] = {{NVTX_PAYLOAD_ENTRY_TYPE_INT32, sizeof v.n, &v.n}, first};
    v.message = "two payloads";
    nvtxMarkPayload(domain, both, 2);
}

/* At the end of a page behind which nothing may be read. */
static char *edge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
        exit(1);
    return p + page - bytes;
}

static void hostile_layouts(void)
{
    uint64_t own = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 7;
    char *data = memset(edge(32), 'x', 32), *text = memset(edge(8), 'y', 8);
    memcpy(data, &text, sizeof text);
    nvtxPayloadSchemaEntry_t entries[] = {
        {NVTX_PAYLOAD_ENTRY_FLAG_POINTER, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "past the page", NULL, 0,
         0, NULL, NULL},
        {0, own, "itself", NULL, 0, 0, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "far", NULL, 0, UINT64_MAX - 3, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "huge", NULL,
         UINT64_MAX / 2, 8, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "no such",
         NULL, 99, 8, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32,
         "wide", NULL, 0, 8, NULL, NULL},
        {7 << 4, NVTX_PAYLOAD_ENTRY_TYPE_INT, "of no kind", NULL, 3, 8, NULL, NULL},
        {0, 63, "of no type", NULL, 0, 8, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE, NVTX_PAYLOAD_ENTRY_TYPE_INT, "elsewhere", NULL,
         0, 8, NULL, NULL},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT8, (const char *)16, NULL, 0, 15, NULL, NULL},
    };
    uint64_t id =
        schema_of("hostile", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, COUNT(entries), 16, own);
    range("hostile", id, data, 32);
    range("hostile, cut", id, data + 31, 1);
    range("hostile, of no length", id, data, 0);
    range("hostile, nowhere", id, NULL, 32);
    range("hostile, too long", id, data, SIZE_MAX);
    range("of no layout", 12345678901, data, 16);
    range("invalid", 0, data, 16);
    printf("refused %d %d %d\n", schema_of("none", 1, NULL, 3, 8, 0) == 0,
           schema_of("empty", 1, entries, 0, 8, 0) == 0,
           schema_of("endless", 1, entries, SIZE_MAX / 64, 8, 0) == 0);
    nvtxPayloadSchemaRegister(domain, NULL);
    nvtxPayloadEnumRegister(domain, NULL);
    nvtxMarkPayload(domain, NULL, 5);
}

/* More fields than are kept; more ranges open than have a place. All blocks come back. */
static void too_much(void)
{
    static char names[60][8];
    static uint8_t values[60];
    nvtxPayloadSchemaEntry_t entries[60] = {0};
    for (int i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        entries[i].type = NVTX_PAYLOAD_ENTRY_TYPE_UINT8;
        entries[i].name = names[i];
        values[i] = (uint8_t)i;
    }
    uint64_t id = STATIC("many", entries, sizeof values);
    range("many fields", id, values, sizeof values);
    nvtxPayloadData_t payload = {id, sizeof values, values};
    static nvtxRangeId_t spans[1000];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(spans); i++)
            spans[i] = nvtxRangeStartPayload(domain, &payload, 1);
        for (size_t i = 0; i < COUNT(spans); i++)
            nvtxRangeEndPayload(domain, spans[i], NULL, 0);
    }
    range("after them", id, values, 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    domain = nvtxDomainCreateA("payloads");
    all_kinds();
    dynamic();
    own_calls();
    hostile_layouts();
    too_much();
    MPI_Finalize();
    return 0;
}
