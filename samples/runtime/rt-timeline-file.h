/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-timeline-file.h - Horovod's timeline as a file: a JSON array of Chrome trace events, which a
 * thread of its own writes.
 *
 * Model: events are put in the order in which they happen, and written some 50 ms later. After each
 * write the array is closed, and the next one takes the bracket away: the file can be read whenever
 * the process ends; if it is killed in a write, to the event before, as viewers of traces do. A
 * tensor is a "process", named by an event of phase M. Threads: put and close from any, close last.
 * Memory: texts of events are borrowed until close. Errors: what goes wrong after the file was
 * opened is said once, on stderr, as nobody waits for it: then no more is written, and what stands
 * in the file is whole.
 */
#ifndef RT_TIMELINE_FILE_H
#define RT_TIMELINE_FILE_H

#include <stdint.h>

struct rt_timeline_event {
    uint64_t us;      /* since the start */
    uint32_t pid;     /* the tensor; from 1 on */
    char phase;       /* B, E, X: a rank is ready, i: a mark of all, M: names the pid */
    int32_t rank;     /* X */
    const char *name; /* B, i, M */
    const char *args; /* E: members of an object, as JSON; or NULL */
};

struct rt_timeline_file;

/* NULL: *ret_error is a negative errno. */
struct rt_timeline_file *rt_timeline_file_new(const char *path, uint64_t epoch_us, int *ret_error);
void rt_timeline_file_put(struct rt_timeline_file *f, const struct rt_timeline_event *event);
/* Writes what is left. Returns what went wrong, the first time. NULL-safe. */
int rt_timeline_file_close(struct rt_timeline_file *f);

#endif
