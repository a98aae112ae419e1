/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock-profiler.h - an NCCL profiler plug-in that remembers what it is told.
 *
 * For tests. Compiled once for each version of the interface (MOCK_VERSION); the test opens the
 * same file as hostnccl does and looks at its memory by `mock_profiler`.
 */
#ifndef MOCK_PROFILER_H
#define MOCK_PROFILER_H

#include <stdint.h>

#define MOCK_EVENTS_MAX 256

struct mock_event {
    uint64_t type, seq, hash, timer, stop_timer;
    const struct mock_event *parent, *group;
    char func[24], datatype[24], algorithm[24];
    int rank, root, peer, depth, func_number, datatype_number;
    uint64_t count;
    const void *in, *out, *stream;
    uint32_t states; /* bit per state */
    int stopped, captured;
};

struct mock_init {
    uint64_t hash;
    int ranks, rank, finalized;
    char name[24];
};

struct mock_profiler {
    int version;
    int mask; /* what init asks for; the test may change it before */
    int init_count, event_count;
    struct mock_init inits[8];
    struct mock_event events[MOCK_EVENTS_MAX];
};

/* Exported by the plug-in as data. */
extern struct mock_profiler mock_profiler;

#endif
