/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler-abi.h - what NCCL hands a profiler plug-in, versions 1 to 6 (from the
 * public headers of its ext-profiler): only the events that are asked for. Layouts are those of
 * 64-bit machines.
 */
#ifndef RS_TRACER_NCCL_PROFILER_ABI_H
#define RS_TRACER_NCCL_PROFILER_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rs_profile_type {
    RS_PROFILE_GROUP = 1,
    RS_PROFILE_COLL = 2,
    RS_PROFILE_P2P = 4,
    RS_PROFILE_PROXY_OP = 8,
    RS_PROFILE_PROXY_STEP = 16,
    RS_PROFILE_KERNEL_CH = 64,
    RS_PROFILE_NET_PLUGIN = 128,
    RS_PROFILE_GROUP_API = 256,
    RS_PROFILE_COLL_API = 512,
    RS_PROFILE_P2P_API = 1024,
};

enum rs_profile_state { /* of those that are read here */
                        RS_PROFILE_STEP_SEND_GPU_WAIT =
                            8, /* of steps; from v4 the argument is the bytes, size_t */
                        RS_PROFILE_STEP_SEND_WAIT = 9,
                        RS_PROFILE_STEP_RECV_WAIT = 10,
                        RS_PROFILE_STEP_RECV_FLUSH_WAIT = 11,
                        RS_PROFILE_STEP_RECV_GPU_WAIT = 12,
                        RS_PROFILE_STEP_SEND_PEER_WAIT = 20,
                        RS_PROFILE_KERNEL_CH_STOP = 22, /* its argument begins with the timer */
};

/* init differs by version, and is given as the first of these. */
struct rs_profiler_table {
    const char *name;
    void (*init)(void);
    int (*start_event)(void *context, void **handle, void *descriptor);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, void *arguments);
    int (*finalize)(void *context);
};

struct rs_profile_proxy_op {
    int32_t pid;
    uint8_t channel;
    int peer, steps, chunk_size, is_send;
};

struct rs_profile_kernel_ch { /* v3: the channel alone */
    uint8_t channel;
    uint64_t timer;
};

/* From v3. `data` is the network plug-in's own. */
struct rs_profile_net_plugin {
    int64_t id; /* type << 16 | version of the data */
    void *data;
};
enum { RS_PROFILE_NET_IB_1 = 1 << 16 | 1, RS_PROFILE_NET_SOCKET_1 = 2 << 16 | 1 };
struct rs_profile_net_ib {
    uint8_t type; /* 1: of a queue pair */
    int device;
    uint64_t request;
    int opcode, queue_pair;
    size_t length;
};
struct rs_profile_net_socket {
    uint8_t type; /* 1 */
    int fd, op;
    size_t length;
};

/* Their heads are alike but for the width of `type`. */
struct rs_profile_head {
    uint8_t type;
    void *parent;
    int rank;
};
struct rs_profile_head_v5 {
    uint64_t type;
    void *parent;
    int rank;
};

struct rs_profile_coll_v1 {
    const char *name;
    uint64_t hash, seq;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic_bytes;
    uint8_t channels, warps, algorithm, protocol;
    int is_collnet, is_nvls;
};
struct rs_profile_p2p_v1 {
    const char *name;
    uint64_t hash;
    uint8_t func;
    void *buffer;
    uint8_t datatype;
    size_t count;
    int peer;
};

/* v2 and v3 differ behind `datatype`, in nothing that is read here. */
struct rs_profile_coll_v2 {
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
};
struct rs_profile_p2p_v2 {
    const char *name;
    uint64_t hash;
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
};

struct rs_profile_coll_v4 { /* and later */
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
    void *parent_group; /* from v5 */
};
struct rs_profile_p2p_v4 {
    const char *func;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group; /* from v5 */
};

struct rs_profile_coll_api {
    const char *func;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
    bool captured;
};
struct rs_profile_p2p_api {
    const char *func;
    size_t count;
    const char *datatype;
    void *stream;
    bool captured;
};

struct rs_profile_v1 {
    struct rs_profile_head head;
    union {
        struct rs_profile_coll_v1 coll;
        struct rs_profile_p2p_v1 p2p;
        struct rs_profile_proxy_op proxy_op;
    };
};
struct rs_profile_v2 { /* and v3 */
    struct rs_profile_head head;
    union {
        struct rs_profile_coll_v2 coll;
        struct rs_profile_p2p_v2 p2p;
        struct rs_profile_proxy_op proxy_op;
        struct rs_profile_net_plugin net_plugin; /* v3 */
    };
};
struct rs_profile_v4 {
    struct rs_profile_head head;
    union {
        struct rs_profile_coll_v4 coll;
        struct rs_profile_p2p_v4 p2p;
        struct rs_profile_proxy_op proxy_op;
        struct rs_profile_kernel_ch kernel_ch;
        struct rs_profile_net_plugin net_plugin;
    };
};
struct rs_profile_v5 { /* and v6 */
    struct rs_profile_head_v5 head;
    union {
        struct rs_profile_coll_v4 coll;
        struct rs_profile_p2p_v4 p2p;
        struct rs_profile_coll_api coll_api;
        struct rs_profile_p2p_api p2p_api;
        struct rs_profile_proxy_op proxy_op;
        struct rs_profile_kernel_ch kernel_ch;
        struct rs_profile_net_plugin net_plugin;
    };
};

#if UINTPTR_MAX == UINT64_MAX
static_assert(offsetof(struct rs_profile_v1, coll) == 24, "v1 head");
static_assert(offsetof(struct rs_profile_v1, coll.datatype) == 84, "v1 datatype");
static_assert(sizeof(struct rs_profile_v1) == 120, "v1");
static_assert(offsetof(struct rs_profile_v2, coll.datatype) == 88, "v2 datatype");
static_assert(offsetof(struct rs_profile_v4, coll.algorithm) == 88, "v4 algorithm");
static_assert(offsetof(struct rs_profile_v4, p2p.channels) == 60, "v4 p2p channels");
static_assert(offsetof(struct rs_profile_v4, kernel_ch.timer) == 32, "v4 timer");
static_assert(offsetof(struct rs_profile_v5, coll.parent_group) == 104, "v5 group");
static_assert(offsetof(struct rs_profile_v5, p2p.parent_group) == 64, "v5 p2p group");
static_assert(sizeof(struct rs_profile_v5) == 112, "v5 and v6");
#endif

#endif
