/* SPDX-License-Identifier: Apache-2.0 */
#include "activity.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* ---- one record ---- */

static bool parse_kernel(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_kernel k;
    memcpy(&k, record, sizeof(k));
    *ret = (struct rs_activity){.op = RS_OP_KERNEL,
                                .name = k.name,
                                .start_ns = k.start,
                                .end_ns = k.end,
                                .device = k.device,
                                .context = k.context,
                                .stream = k.stream,
                                .correlation = k.correlation,
                                .graph = k.graph,
                                .graph_node = k.graph_node};
    return true;
}

static bool parse_memcpy(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_memcpy c;
    memcpy(&c, record, sizeof(c));
    *ret = (struct rs_activity){.op = RS_OP_COPY,
                                .what = c.copy,
                                .start_ns = c.start,
                                .end_ns = c.end,
                                .bytes = c.bytes,
                                .device = c.device,
                                .context = c.context,
                                .stream = c.stream,
                                .correlation = c.correlation,
                                .graph = c.graph,
                                .graph_node = c.graph_node};
    return true;
}

static bool parse_memcpy2(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_memcpy2 c;
    memcpy(&c, record, sizeof(c));
    *ret = (struct rs_activity){.op = RS_OP_COPY,
                                .what = c.copy,
                                .start_ns = c.start,
                                .end_ns = c.end,
                                .bytes = c.bytes,
                                .device = c.device,
                                .context = c.context,
                                .stream = c.stream,
                                .correlation = c.correlation,
                                .graph = c.graph,
                                .graph_node = c.graph_node};
    return true;
}

static bool parse_memset(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_memset s;
    memcpy(&s, record, sizeof(s));
    *ret = (struct rs_activity){.op = RS_OP_SET,
                                .start_ns = s.start,
                                .end_ns = s.end,
                                .bytes = s.bytes,
                                .device = s.device,
                                .context = s.context,
                                .stream = s.stream,
                                .correlation = s.correlation,
                                .graph = s.graph,
                                .graph_node = s.graph_node};
    return true;
}

static bool parse_api(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_api a;
    memcpy(&a, record, sizeof(a));
    *ret = (struct rs_activity){.op = RS_OP_HOST_CALL,
                                .function = a.function,
                                .failed = a.result != 0,
                                .start_ns = a.start,
                                .end_ns = a.end,
                                .device = RS_CUPTI_NO_ID,
                                .context = RS_CUPTI_NO_ID,
                                .stream = RS_CUPTI_NO_ID,
                                .correlation = a.correlation,
                                .thread = a.thread};
    return true;
}

static bool parse_sync(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_sync s;
    memcpy(&s, record, sizeof(s));
    *ret = (struct rs_activity){.op = RS_OP_SYNC,
                                .what = (uint16_t)s.type,
                                .start_ns = s.start,
                                .end_ns = s.end,
                                .device = RS_CUPTI_NO_ID,
                                .context = s.context,
                                .stream = s.stream,
                                .correlation = s.correlation};
    return true;
}

static bool parse_graph(const void *record, struct rs_activity *ret)
{
    struct rs_cupti_graph g;
    memcpy(&g, record, sizeof(g));
    *ret = (struct rs_activity){.op = RS_OP_GRAPH,
                                .start_ns = g.start,
                                .end_ns = g.end,
                                .device = g.device,
                                .context = g.context,
                                .stream = g.stream,
                                .correlation = g.correlation,
                                .graph = g.graph};
    return true;
}

static const struct kind {
    uint32_t kind;
    size_t least_bytes;
    bool (*parse)(const void *record, struct rs_activity *ret);
} kinds[] = {
    {RS_CUPTI_CONCURRENT_KERNEL, sizeof(struct rs_cupti_kernel), parse_kernel},
    {RS_CUPTI_KERNEL, sizeof(struct rs_cupti_kernel), parse_kernel},
    {RS_CUPTI_MEMCPY, sizeof(struct rs_cupti_memcpy), parse_memcpy},
    {RS_CUPTI_MEMCPY2, sizeof(struct rs_cupti_memcpy2), parse_memcpy2},
    {RS_CUPTI_MEMSET, sizeof(struct rs_cupti_memset), parse_memset},
    {RS_CUPTI_RUNTIME, sizeof(struct rs_cupti_api), parse_api},
    {RS_CUPTI_DRIVER, sizeof(struct rs_cupti_api), parse_api},
    {RS_CUPTI_SYNCHRONIZATION, sizeof(struct rs_cupti_sync), parse_sync},
    {RS_CUPTI_GRAPH_TRACE, sizeof(struct rs_cupti_graph), parse_graph},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static const struct kind *find_kind(uint32_t kind)
{
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static uint32_t kind_of(const void *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof(kind));
    return kind;
}

bool rs_activity_parse(const void *record, struct rs_activity *ret)
{
    uint32_t number = kind_of(record);
    const struct kind *kind = find_kind(number);
    if (!kind || !kind->parse(record, ret))
        return false;
    ret->kind = number;
    return true;
}

size_t rs_activity_least_bytes(uint32_t kind)
{
    const struct kind *k = find_kind(kind);
    return k ? k->least_bytes : 0;
}

/* ---- a buffer ---- */

static bool is_timed(const struct rs_activity *a)
{
    return a->start_ns != 0 && a->end_ns >= a->start_ns;
}

static void hand_on(const void *record, rs_activity_sink *sink, void *data,
                    struct rs_activity_counts *counts)
{
    struct rs_activity a;
    counts->read++;
    if (!rs_activity_parse(record, &a))
        return;
    if (is_timed(&a))
        sink(&a, data);
    else
        counts->untimed++;
}

/* A record ends where the next one begins, the last one with the buffer: so a record is handed on
 * once the walk has come past it. */
int rs_activities_read(uint8_t *buffer, size_t valid_bytes, rs_cupti_next *next,
                       rs_activity_sink *sink, void *data, struct rs_activity_counts *counts)
{
    void *at = NULL, *after;
    if (next(buffer, valid_bytes, &at) != RS_CUPTI_SUCCESS)
        return 0;
    for (; at; at = after) {
        after = at;
        if (next(buffer, valid_bytes, &after) != RS_CUPTI_SUCCESS)
            after = NULL;
        const uint8_t *from = at, *to = after ? after : buffer + valid_bytes;
        if (to < from || (size_t)(to - from) < rs_activity_least_bytes(kind_of(at)))
            return -EPROTO;
        hand_on(at, sink, data, counts);
    }
    return 0;
}

void rs_activity_write(struct rs_thread *t, const struct rs_activity *a, uint32_t name,
                       uint64_t start, uint64_t end)
{
    if (!rs_room(t, 2))
        return;
    uint16_t flags = RS_EVENT_EXT | (a->failed ? RS_EVENT_FAILED : 0);
    flags |= a->op == RS_OP_HOST_CALL || a->op == RS_OP_SYNC ? 0 : RS_EVENT_DEVICE;
    struct rs_range_event *e = rs_slot(t, 0);
    *e = (struct rs_range_event){.op = a->op,
                                 .flags = flags,
                                 .name = name,
                                 .start = start,
                                 .end = end,
                                 .payload = a->bytes,
                                 .payload_type = a->bytes ? 1 : 0};
    struct rs_ext_device *x = rs_slot(t, 1);
    *x = (struct rs_ext_device){.op = RS_EXT_DEVICE,
                                .what = a->what,
                                .correlation = a->correlation,
                                .device = a->device,
                                .context = a->context,
                                .stream = a->stream,
                                .graph = a->graph,
                                .graph_node = a->graph_node,
                                .thread = a->thread};
    rs_commit(t, 2);
}

/* ---- names ---- */

static const char *const copy_names[] = {
    "copy",      "copy HtoD", "copy DtoH", "copy HtoA", "copy AtoH", "copy AtoA",
    "copy AtoD", "copy DtoA", "copy DtoD", "copy HtoH", "copy PtoP",
};
static const char *const sync_names[] = {
    "wait",
    "wait for an event",
    "stream waits for an event",
    "wait for a stream",
    "wait for a context",
};

const char *rs_activity_name(const struct rs_activity *a)
{
    size_t copies = sizeof(copy_names) / sizeof(*copy_names);
    size_t waits = sizeof(sync_names) / sizeof(*sync_names);
    switch (a->op) {
    case RS_OP_COPY:
        return copy_names[a->what < copies ? a->what : 0];
    case RS_OP_SET:
        return "set";
    case RS_OP_SYNC:
        return sync_names[a->what < waits ? a->what : 0];
    case RS_OP_GRAPH:
        return "graph";
    default:
        return a->name ? a->name : "kernel";
    }
}

static size_t without(const char *name, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n > m && memcmp(name + n - m, end, m) == 0 ? n - m : n;
}

size_t rs_activity_plain_name(const char *name)
{
    size_t n = strlen(name), digits = n;
    while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
        digits--;
    if (digits < n && digits > 2 && name[digits - 1] == 'v' && name[digits - 2] == '_')
        n = digits - 2;
    return without(name, without(name, n, "_ptsz"), "_ptds");
}

bool rs_activity_is_idle_talk(const char *name)
{
    static const char *const words[] = {"Get",         "Query",     "Peek",
                                        "IsCapturing", "SetDevice", "SetCurrent",
                                        "CtxPush",     "CtxPop",    "DriverEntryPoint"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}
