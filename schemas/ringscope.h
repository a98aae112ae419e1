/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ringscope.h - marks of a program of its own in Ringscope's captures: steps, ranges, marks,
 * counters.
 *
 * Model: nothing is linked. The first call looks whether the tracer is in the process
 * (LD_PRELOAD, `ringscope run`); without it every call does nothing, for the price of one load and
 * a branch. With it the marks stand beside the MPI and NCCL calls of the same capture. As for NVTX,
 * it is the first of these that begins the capture: what was called before is not recorded. Texts
 * are UTF-8, copied before the call returns; 1,024 bytes of each are kept, and each different text
 * is kept once, for the life of the process: put what changes into counters. Threads: any, at any
 * time; a range ends on the thread that began it. Not for signal handlers. Errors: none; errno is
 * kept. C11 and C++17; glibc before 2.34 needs -ldl.
 */
#ifndef RINGSCOPE_H
#define RINGSCOPE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the tracer exports as `ringscope_marks_v1`. It may grow at its end: `bytes` is its size. */
struct ringscope_marks {
    size_t bytes;
    void (*mark)(const char *name);
    void (*range_push)(const char *name);
    void (*range_pop)(void);
    void (*step)(uint32_t number);
    void (*counter)(const char *name, const char *unit, double value);
};

/* The tracer's functions; NULL where it is not in the process. */
static inline const struct ringscope_marks *ringscope_marks_find(void)
{
    static const struct ringscope_marks none = {0, NULL, NULL, NULL, NULL, NULL};
    static const struct ringscope_marks *found;
    const struct ringscope_marks *m = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (m == NULL) {
        /* NULL is RTLD_DEFAULT, a name that strict C11 lacks. */
#ifdef __cplusplus
        m = static_cast<const struct ringscope_marks *>(dlsym(NULL, "ringscope_marks_v1"));
#else
        m = dlsym(NULL, "ringscope_marks_v1");
#endif
        if (m == NULL || m->bytes < sizeof(*m))
            m = &none;
        __atomic_store_n(&found, m, __ATOMIC_RELEASE);
    }
    return m->bytes != 0 ? m : NULL;
}

/* A moment. */
static inline void ringscope_mark(const char *name)
{
    const struct ringscope_marks *m = ringscope_marks_find();
    if (m != NULL)
        m->mark(name);
}

/* A span of time of this thread, recorded when it ends; ranges nest. */
static inline void ringscope_range_push(const char *name)
{
    const struct ringscope_marks *m = ringscope_marks_find();
    if (m != NULL)
        m->range_push(name);
}

/* Ends the innermost range of this thread; without one it does nothing. */
static inline void ringscope_range_pop(void)
{
    const struct ringscope_marks *m = ringscope_marks_find();
    if (m != NULL)
        m->range_pop();
}

/* Step `number` (below 1,000,000,000) begins, and ends where the next one begins: a last call after
 * the loop ends the last step. On all ranks, by one thread of each. Goes before any other source of
 * steps. */
static inline void ringscope_step(uint32_t number)
{
    const struct ringscope_marks *m = ringscope_marks_find();
    if (m != NULL)
        m->step(number);
}

/* A sample. `unit` may be NULL. */
static inline void ringscope_counter(const char *name, const char *unit, double value)
{
    const struct ringscope_marks *m = ringscope_marks_find();
    if (m != NULL)
        m->counter(name, unit, value);
}

#ifdef __cplusplus
}
#endif

#endif
