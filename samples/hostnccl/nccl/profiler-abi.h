/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler-abi.h - the binary interface of NCCL's profiler plug-ins, versions 1 to 6, in own words.
 *
 * Facts from the public headers (definitions.md section 6); the assertions below pin the layouts
 * for 64-bit machines. A plug-in exports data symbols ncclProfiler_v1 to ncclProfiler_v6, each a
 * table {name, init, startEvent, stopEvent, recordEventState, finalize}. Only what the stand-in
 * sends is spelled out: no proxy, network or copy-engine events.
 */
#ifndef HOSTNCCL_PROFILER_ABI_H
#define HOSTNCCL_PROFILER_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profiler_event {
    PROFILE_GROUP = 1 << 0,
    PROFILE_COLL = 1 << 1,
    PROFILE_P2P = 1 << 2,
    PROFILE_KERNEL_CH = 1 << 6,
    PROFILE_GROUP_API = 1 << 8,
    PROFILE_COLL_API = 1 << 9,
    PROFILE_P2P_API = 1 << 10,
    PROFILE_KERNEL_LAUNCH = 1 << 11,
    /* what needs a parent or child needs these as well: NCCL starts an event if it, or anything
     * that hangs on it, is asked for */
    PROFILE_BELOW_TASK = PROFILE_KERNEL_CH | 1 << 3 | 1 << 4 | 1 << 7, /* proxy op, step, network */
};

enum profiler_state {
    STATE_KERNEL_CH_STOP = 22,
    STATE_GROUP_START_API_STOP = 23,
    STATE_GROUP_END_API_START = 24,
};

typedef void profiler_log_fn(int level, unsigned long flags, const char *file, int line,
                             const char *format, ...);

/* Types differ by version in what the `void *` stand for. */
struct profiler_table {
    const char *name;
    void (*init)(void);
    int (*start_event)(void *context, void **handle, void *descriptor);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, void *arguments);
    int (*finalize)(void *context);
};

typedef int profiler_init_v1_fn(void **context, int *mask);
typedef int profiler_init_v4_fn(void **context, int *mask, const char *name, uint64_t hash,
                                int nodes, int ranks, int rank, profiler_log_fn *log);
typedef int profiler_init_v5_fn(void **context, uint64_t hash, int *mask, const char *name,
                                int nodes, int ranks, int rank, profiler_log_fn *log);

union profiler_state_v4 { /* and later */
    size_t transfer_size;
    int appended;
    void *data;
    struct {
        uint64_t timer;
    } kernel_ch;
};

/* v1 to v3 begin alike; v1 has numbers where later ones have texts. */
struct profiler_event_v1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            uint8_t func;
            const void *in;
            void *out;
            size_t count;
            int root;
            uint8_t datatype;
            uint32_t op;
            size_t traffic_bytes;
            uint8_t channels, warps, algorithm, protocol;
            int is_collnet, is_nvls;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            uint8_t func;
            void *buffer;
            uint8_t datatype;
            size_t count;
            int peer;
        } p2p;
    };
};

struct profiler_event_v2 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *datatype;
            size_t traffic_bytes;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
    };
};

struct profiler_event_v3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t hash, seq;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *name;
            uint64_t hash;
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
        } p2p;
        struct {
            uint8_t channel;
        } kernel_ch;
    };
};

struct profiler_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            uint64_t seq;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
        } coll;
        struct {
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t timer;
        } kernel_ch;
    };
};

/* v6 is v5 with more members in the union, none longer than `coll`. */
struct profiler_event_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool captured;
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool captured;
        } p2p_api;
        struct {
            void *stream;
        } kernel_launch;
        struct {
            uint64_t seq;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *datatype;
            uint8_t channels, warps;
            const char *algorithm, *protocol;
            void *parent_group;
        } coll;
        struct {
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t channels;
            void *parent_group;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t timer;
        } kernel_ch;
    };
};

#if UINTPTR_MAX == UINT64_MAX
static_assert(sizeof(struct profiler_table) == 48, "table");
static_assert(offsetof(struct profiler_event_v1, coll) == 24, "v1 head");
static_assert(sizeof(struct profiler_event_v1) == 120, "v1");
static_assert(offsetof(struct profiler_event_v1, coll.datatype) == 84, "v1 datatype");
static_assert(offsetof(struct profiler_event_v1, coll.traffic_bytes) == 96, "v1 traffic");
static_assert(offsetof(struct profiler_event_v1, coll.is_collnet) == 108, "v1 collnet");
static_assert(sizeof(struct profiler_event_v2) == 128, "v2");
static_assert(offsetof(struct profiler_event_v2, coll.algorithm) == 112, "v2 algorithm");
static_assert(sizeof(struct profiler_event_v3) == 120, "v3");
static_assert(sizeof(struct profiler_event_v4) == 104, "v4");
static_assert(offsetof(struct profiler_event_v4, coll.algorithm) == 88, "v4 algorithm");
static_assert(offsetof(struct profiler_event_v4, kernel_ch.timer) == 32, "v4 timer");
static_assert(offsetof(struct profiler_event_v5, coll.parent_group) == 104, "v5 group");
static_assert(offsetof(struct profiler_event_v5, p2p.parent_group) == 64, "v5 p2p group");
static_assert(sizeof(struct profiler_event_v5) == 112, "v5 and v6");
#endif

#endif
