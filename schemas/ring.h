/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the memory a traced process shares with its future: rings that outlive it on tmpfs.
 *
 * Model: a process has one control file (number 0) and one ring file per thread (1, 2, ...), named
 * "<prefix>.<number>" where <prefix> stands under "ring.prefix" in the capture's META block and in
 * the control file. The producer (the thread) moves `head`, the consumer (the drain thread, or
 * `merge` once the process is dead) moves `tail`; both count slots since the start, so that
 * head - tail is what is still to be written. Everything between them is whole: a slot is published
 * by a release store of `head` after its 48 bytes.
 *
 * Ownership: the process makes and at a clean end removes the files; whoever recovers them after a
 * death appends what they hold to the capture, then removes them. A process is dead when no process
 * of `pid` has the start time `pid_start`.
 */
#ifndef RS_SCHEMAS_RING_H
#define RS_SCHEMAS_RING_H

#include "rsc.h"

#define RS_RING_MAGIC 0x474e4952u /* "RING" in file order */
#define RS_RING_VERSION 1u
#define RS_RING_PATH_MAX 1024

/* The block of events being written: what the two counters say once it stands in the capture. So
 * recovery does not repeat it where the process died before it had moved them. */
struct rs_ring_write {
    uint64_t capture_bytes;      /* atomic, stored last; 0 none */
    uint64_t tail;               /* of the ring */
    uint32_t thread;             /* of the ring: its running number */
    uint32_t next_sequence;
};

#define RS_RING_SWITCHES 64u

/* Number 0. Then `defs_capacity` bytes of struct rs_def records from byte RS_RING_DEFS_OFFSET. */
#define RS_RING_DEFS_OFFSET 8192u
struct rs_ring_process {
    uint32_t magic, version;
    int32_t pid;
    uint32_t thread_count;       /* atomic: ring files made so far, numbered 1..thread_count */
    uint64_t pid_start;          /* field 22 of /proc/<pid>/stat */
    uint64_t defs_capacity;
    uint64_t defs_used;          /* atomic, release: whole records only */
    uint64_t defs_written;       /* of those, bytes that stand in the capture file */
    uint64_t capture_bytes;      /* atomic: length of the capture file after the last whole block */
    uint32_t next_sequence;      /* of the block after that */
    uint32_t end_reason;         /* enum rs_end_reason: its process ends in this way, 0 unknown; where
                                    the capture has no END, it had no room for all events */
    struct rs_anchor first_anchor, last_anchor;
    char prefix[RS_RING_PATH_MAX];
    char capture[RS_RING_PATH_MAX]; /* absolute path of the .rsc; empty: no event yet */
    struct rs_ring_write writing;
    uint64_t alive_tick;         /* atomic: the drain thread's last look, about 0.1 s old at most while
                                    the process runs; 0 none yet */
    uint64_t full_tick;          /* the capture has reached its limit since then, and takes no more events;
                                    0 it has not */
    uint64_t replace_bytes;      /* atomic: a file of that length is about to take the capture's place, or
                                    has: then it is as long, and shorter than capture_bytes. 0 none */
    uint64_t left_out;           /* events that such files left out */
    uint32_t switch_count;       /* atomic: switches of capture so far; number i stands at i % RS_RING_SWITCHES */
    uint32_t switches_written;   /* of those, in the capture: at most RS_RING_SWITCHES fewer */
    struct rs_switch switches[RS_RING_SWITCHES];
};

/* Events that the consumer took from a ring and left out: the capture had reached its limit. */
struct rs_ring_skip {
    uint64_t tail;               /* up to there, not further */
    uint64_t count;              /* 0 none */
    uint64_t first_tick, last_tick;
};

/* A thread's ring. Slots follow at byte RS_RING_SLOTS_OFFSET. */
#define RS_RING_SLOTS_OFFSET 4096u
struct rs_ring_thread {
    uint32_t magic, version;
    uint32_t thread;             /* running number in the process, from 0 */
    uint32_t tid;
    uint64_t slot_count;         /* a power of two */
    uint64_t spare0[5];
    /* written by the producer */
    uint64_t head;               /* atomic, release */
    uint64_t dropped;            /* atomic: events dropped */
    uint64_t hole_first;         /* tick of the first event of the hole now open, 0 none */
    uint64_t hole_count;
    uint64_t events;             /* the consumer's: of them in the capture */
    uint64_t spare1[3];
    /* written by the consumer */
    uint64_t tail;               /* atomic, release */
    uint64_t spare2[7];
    struct rs_open open;         /* atomic by convention: `op` is stored last and cleared first */
    /* written by the consumer: a death while it changes one leaves the other */
    struct rs_ring_skip skip[2];
    uint64_t skip_now;           /* atomic: which of them counts */
};

static_assert(sizeof(struct rs_ring_process) <= RS_RING_DEFS_OFFSET, "control head");
static_assert(offsetof(struct rs_ring_thread, head) == 64, "producer line");
static_assert(offsetof(struct rs_ring_thread, tail) == 128, "consumer line");
static_assert(sizeof(struct rs_ring_thread) <= RS_RING_SLOTS_OFFSET, "ring head");

#endif
