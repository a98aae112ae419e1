/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - what a traced process reads from its environment: one table, for the tracer that
 * obeys it, for `ringscope run` that offers it, and for README's, which a check compares.
 *
 * A setting that is empty is not set. A wrong one counts as not set, and the capture says so (META
 * "setting.NAME"); of a list, the words that are known count. RINGSCOPE_TEST_CLOCK exists in test
 * builds only.
 */
#ifndef RS_SCHEMAS_SETTINGS_H
#define RS_SCHEMAS_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#define RS_SETTING_PREFIX "RINGSCOPE_"

/* A word's bit is its place in the list of words. */
#define RS_TRACE_WORDS "nccl,mpi,nvtx,io,counters,cuda,gloo"
#define RS_TRACE_DEFAULT "nccl,mpi,nvtx,io,gloo"
enum rs_part {
    RS_PART_NCCL = 1 << 0,
    RS_PART_MPI = 1 << 1,
    RS_PART_NVTX = 1 << 2,
    RS_PART_IO = 1 << 3,
    RS_PART_COUNTERS = 1 << 4,
    RS_PART_CUDA = 1 << 5,
    RS_PART_GLOO = 1 << 6
};

#define RS_EXPORT_WORDS "chrome,sqlite,none"
enum rs_export_kind { RS_EXPORT_CHROME = 1 << 0, RS_EXPORT_SQLITE = 1 << 1 };

#define RS_KEEP_WORDS "first,last"
enum rs_keep { RS_KEEP_FIRST = 1 << 0, RS_KEEP_LAST = 1 << 1 };

enum rs_setting_type {
    RS_SETTING_path,
    RS_SETTING_text,
    RS_SETTING_number,
    RS_SETTING_bytes,
    RS_SETTING_list,
    RS_SETTING_window,
    RS_SETTING_steps,
    RS_SETTING_signal,
    RS_SETTING_clock
};

/* X(name, type, words that a list may hold, default, help) */
#define RS_SETTINGS(X)                                                                             \
    X(DIR, path, NULL, "ringscope-<program>-<run id>",                                             \
      "the run folder; need not be shared between hosts")                                          \
    X(TRACE, list, RS_TRACE_WORDS, RS_TRACE_DEFAULT, "what to record; known besides: counters, cuda")    \
    X(EXPORT, list, RS_EXPORT_WORDS, "chrome,sqlite",                                              \
      "what each process makes of its capture at a clean end, or none")                            \
    X(SIZE_LIMIT, bytes, NULL, "none",                                                             \
      "how large a process's capture gets, in bytes, from 64K; K, M or G may follow")              \
    X(KEEP, list, RS_KEEP_WORDS, "first",                                                          \
      "which events a capture at its limit holds: first or last")                                  \
    X(START, window, NULL, "0",                                                                     \
      "record from so many seconds after the first call on; FROM-TO: until TO")                    \
    X(STEPS, steps, NULL, "all", "record these steps of the program, as 10-12,50 or 100-")         \
    X(SIGNAL, signal, NULL, "none",                                                                \
      "a signal that switches recording off and on: USR1, USR2, or a number from 34 to 64")        \
    X(RUN_ID, text, NULL, "from the launcher",                                                     \
      "equal on all ranks of a run, different between runs")                                       \
    X(RANK, number, NULL, "from the launcher, MPI or NCCL", "this process's rank")                 \
    X(HOST, text, NULL, "the host's name", "the host this rank counts as being on")                \
    X(VERBOSE, number, NULL, "0",                                                                  \
      "1: a line on stderr where the capture is made, and for each wrong setting")
#ifdef RS_TEST_CLOCK
#define RS_SETTINGS_OF_TESTS(X)                                                                    \
    X(TEST_CLOCK, clock, NULL, "none", "ns[,ppm]: this clock's offset and drift")
#else
#define RS_SETTINGS_OF_TESTS(X)
#endif

#define RS_SIZE_LIMIT_LEAST ((uint64_t)64 << 10)

enum rs_setting {
#define RS_SETTING_NUMBER(name, type, words, fallback, help) RS_SETTING_##name,
    RS_SETTINGS(RS_SETTING_NUMBER) RS_SETTINGS_OF_TESTS(RS_SETTING_NUMBER)
#undef RS_SETTING_NUMBER
        RS_SETTING_COUNT
};

/* Which of `words` (at most 32, commas between) stand in `list`: bit i for word i. *ret_unknown is
 * the first entry of the list that is none of them, *ret_bytes its length; NULL where all are
 * known. */
uint32_t rs_words_find(const char *words, const char *list, const char **ret_unknown,
                       size_t *ret_bytes);

#endif
