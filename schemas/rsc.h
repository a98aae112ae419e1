/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rsc.h - the records of a Ringscope capture file (.rsc), as plain structs.
 *
 * Model: a capture is a run of blocks. A block is a struct rs_block followed by payload_bytes of
 * payload, padded to 8 bytes. Every block has its own checksums and time span, so that a file that
 * was cut or damaged still reads block by block, and the last N MiB read alone: definitions are
 * written again at the start of every segment.
 *
 * Units: times are ticks of the process's clock (META "clock.source"); anchors turn them into
 * nanoseconds. Byte order is the writer's; every supported machine is little-endian.
 * Versioning: see capture-format.md.
 */
#ifndef RS_SCHEMAS_RSC_H
#define RS_SCHEMAS_RSC_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define RS_BLOCK_MAGIC 0x42435352u /* "RSCB" in file order */
#define RS_FORMAT_MAJOR 1
#define RS_FORMAT_MINOR 5
#define RS_BLOCK_PAYLOAD_MAX (1u << 24)

enum rs_block_kind {
    RS_BLOCK_META = 1,     /* payload: key NUL value NUL ...; the first block of a file is one */
    RS_BLOCK_DEFS = 2,     /* payload: struct rs_def records */
    RS_BLOCK_EVENTS = 3,   /* payload: 48-byte slots of one thread, in order of commit */
    RS_BLOCK_CLOCK = 4,    /* payload: struct rs_anchor and struct rs_clock_probe, by their kind */
    RS_BLOCK_OPEN = 5,     /* payload: struct rs_open: what one thread was in at this moment */
    RS_BLOCK_SWITCH = 7,   /* payload: struct rs_switch: when capture was switched off and on */
    RS_BLOCK_END = 6,      /* payload: struct rs_end: the last block of a capture that was closed */
};

enum rs_block_flags {
    RS_BLOCK_REPEATED = 1u << 0,  /* definitions written before, again for a new segment */
    RS_BLOCK_RECOVERED = 1u << 1, /* written by `merge` from the ring of a dead process */
};

/* A block's head. header_crc covers the bytes before it, payload_crc the payload (CRC-32C). */
struct rs_block {
    uint32_t magic;
    uint8_t major, minor;
    uint16_t kind;
    uint32_t payload_bytes;
    uint32_t sequence;     /* 0, 1, 2 ... in this file; a gap means lost blocks */
    uint32_t thread;       /* the process's running number of the thread: EVENTS, OPEN */
    uint32_t flags;        /* enum rs_block_flags */
    uint64_t first_tick;   /* time span of the payload, 0 and 0 where it has none */
    uint64_t last_tick;
    uint64_t dropped;      /* EVENTS: events this thread has dropped since the process began */
    uint64_t events;       /* EVENTS: in the payload, but for holes of rings; 0 where nobody counted */
    uint32_t payload_crc;
    uint32_t header_crc;
};

/*
 * Events: one slot, or one slot and the extension slots that follow it at once.
 * What a field means for an operation stands in the operation tables, in the folder ops.
 */
enum rs_event_flags {
    RS_EVENT_EXT = 1u << 0,      /* at least one extension slot follows */
    RS_EVENT_FAILED = 1u << 1,   /* the call returned an error */
    RS_EVENT_DEVICE = 1u << 2,   /* execution on the device, not the call on the host */
    RS_EVENT_CAPTURED = 1u << 3, /* called while a stream was captured into a graph */
    RS_EVENT_IN_PLACE = 1u << 4, /* the send buffer is the receive buffer */
    RS_EVENT_GROUPED = 1u << 5,  /* runs until the outermost group end */
    RS_EVENT_NULL_PEER = 1u << 6, /* peer is the null process: no message */
    RS_EVENT_NO_SEQ = 1u << 7,   /* the tracer did not number this collective */
    RS_EVENT_LIMIT = 1u << 9,    /* HOLE: the capture's size limit left them out */
    RS_EVENT_OPEN = 1u << 8,     /* had not ended when the capture ended; `end` is the last time known */
};

struct rs_event {
    uint16_t op;       /* a number of the ops tables, or enum rs_builtin_op */
    uint16_t flags;    /* enum rs_event_flags */
    int32_t peer;      /* root, or peer rank in `comm` (destination, source); -1 none, -2 any */
    uint64_t start;    /* ticks */
    uint64_t end;      /* ticks */
    uint64_t count;    /* elements as passed; -v forms: this rank's own send total */
    uint32_t comm;     /* RS_DEF_COMM id; 0 none */
    uint32_t dtype;    /* RS_DEF_DTYPE id; 0 none */
    uint32_t seq;      /* collective: its number on `comm`; message: its tag (as int32_t) */
    uint32_t redop;    /* RS_DEF_REDOP id; 0 none */
};

/* Built-in operations, below the numbers that the ops tables use. Ranges, marks, counters. */
enum rs_builtin_op {
    RS_OP_NONE = 0,
    RS_OP_HOLE = 1,       /* events were dropped from `start` to `end`: `count` of them */
    RS_OP_RANGE = 2,      /* NVTX push/pop: struct rs_range_event */
    RS_OP_SPAN = 3,       /* NVTX start/end, perhaps across threads: struct rs_range_event */
    RS_OP_MARK = 4,       /* NVTX mark, user mark: struct rs_range_event, end == start */
    RS_OP_COUNTER = 5,    /* struct rs_counter_event */
    RS_OP_KERNEL = 6,     /* a device kernel: struct rs_range_event, name = kernel. As all below
                             but IO with a struct rs_ext_device */
    RS_OP_IO = 7,         /* file I/O: struct rs_range_event, payload = bytes,
                             name = path, category = the call */
    RS_OP_COPY = 8,       /* a copy by a device: payload = bytes */
    RS_OP_SET = 9,        /* memory set by a device: payload = bytes */
    RS_OP_SYNC = 10,      /* a host or stream waits for a device: name says for what */
    RS_OP_GRAPH = 11,     /* a graph that a device ran, as one */
    RS_OP_HOST_CALL = 12, /* a call of the CUDA runtime or driver on the host: name = function */
    RS_OP_FIRST_API = 64,
    RS_OP_EXT = 0xff00,   /* and above: extension slots, enum rs_ext_kind */
};

struct rs_range_event { /* the same 48 bytes, for RANGE, SPAN, MARK */
    uint16_t op;
    uint16_t flags;
    uint32_t name;      /* RS_DEF_STRING id */
    uint64_t start;
    uint64_t end;
    uint64_t payload;   /* bits of the payload, by payload_type */
    uint32_t domain;    /* RS_DEF_STRING id of the domain's name; 0 the default domain */
    uint32_t category;  /* RS_DEF_STRING id of the category's name; 0 none */
    uint32_t color;     /* ARGB; 0 none */
    uint16_t payload_type; /* 0 none, 1 u64, 2 i64, 3 f64 */
    uint16_t depth;     /* RANGE: nesting on this thread, 0 outermost */
};

struct rs_counter_event {
    uint16_t op;
    uint16_t flags;
    uint32_t name;      /* RS_DEF_STRING id */
    uint64_t start;     /* tick of the sample */
    uint64_t end;
    double value;       /* the tracer's own: the rate since the sample before; bytes of memory */
    uint32_t unit;      /* RS_DEF_STRING id */
    uint32_t spare[3];
};

enum rs_ext_kind {
    RS_EXT_REQUEST = 0xff01, /* struct rs_ext_request: a nonblocking start */
    RS_EXT_STATUS = 0xff02,  /* struct rs_ext_status: what a receive, probe or file access got */
    RS_EXT_DONE = 0xff03,    /* struct rs_ext_done: requests that a completion call finished */
    RS_EXT_SECOND = 0xff04,  /* struct rs_ext_second: the receive side of Sendrecv, Allgather, ... */
    RS_EXT_STREAM = 0xff05,  /* struct rs_ext_stream: NCCL call */
    RS_EXT_PLACE = 0xff06,   /* struct rs_ext_place: where in a window or file */
    RS_EXT_DEVICE = 0xff07,  /* struct rs_ext_device: what CUPTI told */
    RS_EXT_FIELDS = 0xff08,  /* struct rs_ext_fields: of an NVTX range's or mark's payloads, of an
                                NCCL execution's proxy steps */
};

struct rs_ext_request {
    uint16_t op, spare16;
    uint32_t spare32;
    uint64_t request; /* raw handle; a value used again is a new request */
    uint64_t spare[4];
};

struct rs_ext_status {
    uint16_t op, spare16;
    int32_t source;   /* rank in the event's communicator; -1 null; -3 file */
    int32_t tag;
    uint32_t spare32;
    uint64_t bytes;   /* received, read or written, UINT64_MAX unknown */
    uint64_t spare[3];
};

#define RS_EXT_DONE_MAX 2
struct rs_ext_done {
    uint16_t op;
    uint16_t n;       /* 1..RS_EXT_DONE_MAX of the entries below; more follow in further slots */
    uint32_t spare;
    struct {
        uint64_t request; /* raw handle as it was before the call */
        int32_t source;   /* as in struct rs_ext_status; -3 where no status was asked for */
        int32_t tag;
    } done[RS_EXT_DONE_MAX];
    uint64_t spare64;
};

struct rs_ext_second {
    uint16_t op, spare16;
    int32_t peer;     /* Sendrecv: source */
    uint64_t count;   /* receive count as passed; -v forms: total of the receive counts */
    uint32_t dtype;
    int32_t tag;      /* Sendrecv: receive tag */
    uint64_t spare[3];
};

struct rs_ext_stream {
    uint16_t op, spare16;
    uint32_t device;
    uint64_t stream;   /* raw cudaStream_t */
    uint64_t send, recv; /* buffers */
    uint64_t spare[2];
};

struct rs_ext_place {
    uint16_t op, spare16;
    uint32_t dtype;    /* window: of the target's side; 0 file */
    int64_t offset;    /* window: displacement in its own units; file: offset in etypes */
    uint64_t count;    /* window: elements at the target */
    uint64_t spare[3];
};

struct rs_ext_device { /* ids are CUPTI's, UINT32_MAX none */
    uint16_t op;
    uint16_t what;       /* CUPTI's number of the copy's direction, of the wait's kind */
    uint32_t correlation; /* of the host's call, and of all that it made a device do; 0 none */
    uint32_t device, context, stream;
    uint32_t graph;      /* 0 none, as below */
    uint64_t graph_node;
    uint32_t thread;     /* HOST_CALL: who called, as in struct rs_def_thread */
    uint32_t spare[3];
};

#define RS_EXT_FIELDS_MAX 2
struct rs_ext_fields {
    uint16_t op;
    uint16_t n;        /* 1..RS_EXT_FIELDS_MAX of the entries below; more follow in further slots */
    uint32_t schema;   /* RS_DEF_STRING id of the layout's name, 0 none */
    struct {
        uint64_t value; /* bits, by `type` */
        uint32_t name;  /* RS_DEF_STRING id: of a nested one "outer.inner", of an array "name[0]" */
        uint32_t text;  /* RS_DEF_STRING id: the text, or what the number means; 0 none */
    } field[RS_EXT_FIELDS_MAX];
    uint16_t type[RS_EXT_FIELDS_MAX]; /* 1 u64, 2 i64, 3 f64, 4 text */
    uint32_t spare;
};

/* Definitions. `bytes` counts the whole record with its tail, a multiple of 8. */
enum rs_def_kind {
    RS_DEF_STRING = 1, /* tail: the text, not terminated, text_bytes long */
    RS_DEF_COMM = 2,   /* struct rs_def_comm, tail: `size` int32 world ranks, by rank in the comm */
    RS_DEF_DTYPE = 3,  /* struct rs_def_type */
    RS_DEF_REDOP = 4,  /* struct rs_def_type, size 0 */
    RS_DEF_THREAD = 5, /* struct rs_def_thread */
    RS_DEF_OP = 6,     /* struct rs_def_op: an operation this process can record */
};

struct rs_def {
    uint16_t kind;
    uint16_t spare;
    uint32_t bytes;
    uint32_t id;       /* ids are dense from 1 within a kind and process, never reused */
    uint32_t text_bytes; /* STRING */
};

/* A window or a file is a communicator too: ranks, and a number for each collective on it. */
enum rs_comm_api { RS_COMM_MPI = 1, RS_COMM_NCCL = 2, RS_COMM_GLOO = 3, RS_COMM_MPI_WINDOW = 4,
                   RS_COMM_MPI_FILE = 5 };

struct rs_def_comm {
    struct rs_def def;
    uint64_t identity;   /* equal on all members: capture-format.md, "Definitions" */
    uint64_t parent;     /* identity of the parent, 0 none */
    uint64_t handle;     /* raw, for people who debug */
    uint64_t tick;       /* when it was made or first seen */
    uint32_t api;        /* enum rs_comm_api */
    int32_t rank;        /* own rank in it */
    int32_t size;
    uint32_t member_count; /* of the tail: `size`, or 0 where members are unknown */
    uint32_t name;       /* RS_DEF_STRING id, 0 none */
    int32_t device;      /* NCCL: CUDA device, else -1 */
};

struct rs_def_type {
    struct rs_def def;
    uint64_t size_bytes; /* of one element */
    uint32_t name;       /* RS_DEF_STRING id */
    uint32_t spare;
};

struct rs_def_thread {
    struct rs_def def;   /* id = thread number + 1 */
    uint64_t tid;
    uint32_t name;       /* RS_DEF_STRING id */
    uint32_t spare;
};

struct rs_def_op {
    struct rs_def def;   /* id = operation number */
    uint32_t name;       /* RS_DEF_STRING id */
    uint16_t klass;      /* enum rs_op_class, ops.h */
    uint16_t api;        /* enum rs_op_api, ops.h */
};

/* Clock. */
enum rs_clock_kind { RS_CLOCK_ANCHOR = 1, RS_CLOCK_PROBE = 2 };

struct rs_anchor { /* three clocks at one moment; uncertainty = ticks between the two outer reads */
    uint32_t kind;
    uint32_t spread_ticks;
    uint64_t tick;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
};

struct rs_clock_probe { /* one round trip with another clock domain, the shortest ones kept */
    uint32_t kind;
    int32_t peer;        /* world rank that answered */
    uint64_t sent;       /* own ticks */
    uint64_t peer_received; /* the peer's ticks */
    uint64_t peer_sent;  /* the peer's ticks */
    uint64_t received;   /* own ticks */
};

/* Capture was switched: nothing that began at `tick` or later is recorded, until it is on again. */
enum rs_switch_why {
    RS_SWITCH_TIME = 1,    /* RINGSCOPE_START */
    RS_SWITCH_STEPS = 2,   /* RINGSCOPE_STEPS */
    RS_SWITCH_CONTROL = 3, /* `ringscope control` */
    RS_SWITCH_SIGNAL = 4,  /* RINGSCOPE_SIGNAL */
};

struct rs_switch {
    uint64_t tick;
    uint32_t on;           /* 0: off from here on */
    uint32_t why;          /* enum rs_switch_why */
};

/* What a thread is in: the ring header of a live process, the OPEN block of a dead one. */
#define RS_OPEN_RANGES 14
struct rs_open {
    uint32_t op;         /* 0: in no call. Written last at entry, cleared first at exit */
    uint32_t comm;
    uint32_t seq;        /* collective: number on comm; message: tag */
    int32_t peer;
    uint64_t start;      /* tick */
    uint64_t count;
    uint32_t dtype;
    uint32_t range_depth; /* open NVTX ranges of this thread, may exceed RS_OPEN_RANGES */
    uint64_t spare;
    struct {
        uint64_t start;
        uint32_t name, domain;
    } range[RS_OPEN_RANGES];
};

enum rs_end_reason { RS_END_EXIT = 1, RS_END_FINALIZE = 2, RS_END_QUICK_EXIT = 3, RS_END_EXEC = 4,
                     RS_END_ABORT = 5, RS_END_KILLED = 6 /* written at recovery */,
                     RS_END_RUNNING = 7 /* in no file: a look at a living process */ };

/* How the program stood when an exit ended it. */
enum rs_end_flags {
    RS_END_IN_CALL = 1u << 0,  /* a thread was in a recorded call: MPI exits so on an error */
    RS_END_MPI_LIVE = 1u << 1, /* MPI had begun, and MPI_Finalize was not called */
};

struct rs_end {
    uint32_t reason;
    uint32_t flags;      /* enum rs_end_flags */
    uint64_t tick;
    uint64_t events;     /* recorded over all threads */
    uint64_t dropped;
};

static_assert(sizeof(struct rs_block) == 64, "block");
static_assert(offsetof(struct rs_block, first_tick) == 24, "block span");
static_assert(sizeof(struct rs_event) == 48, "event");
static_assert(offsetof(struct rs_event, count) == 24, "event count");
static_assert(sizeof(struct rs_range_event) == 48, "range");
static_assert(sizeof(struct rs_counter_event) == 48, "counter");
static_assert(sizeof(struct rs_ext_request) == 48, "request");
static_assert(sizeof(struct rs_ext_status) == 48, "status");
static_assert(sizeof(struct rs_ext_done) == 48, "done");
static_assert(sizeof(struct rs_ext_second) == 48, "second");
static_assert(sizeof(struct rs_ext_stream) == 48, "stream");
static_assert(sizeof(struct rs_ext_place) == 48, "place");
static_assert(sizeof(struct rs_ext_device) == 48, "device");
static_assert(sizeof(struct rs_ext_fields) == 48, "fields");
static_assert(sizeof(struct rs_def) == 16, "def");
static_assert(sizeof(struct rs_def_comm) == 72, "comm");
static_assert(sizeof(struct rs_def_type) == 32, "type");
static_assert(sizeof(struct rs_def_thread) == 32, "thread");
static_assert(sizeof(struct rs_def_op) == 24, "op");
static_assert(sizeof(struct rs_anchor) == 32, "anchor");
static_assert(sizeof(struct rs_clock_probe) == 40, "probe");
static_assert(sizeof(struct rs_switch) == 16, "switch");
static_assert(sizeof(struct rs_open) == 48 + 16 * RS_OPEN_RANGES, "open");
static_assert(sizeof(struct rs_end) == 32, "end");

#endif
