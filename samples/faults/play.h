/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.h - the inside of the faults' library: what begin starts, and ways to spend time.
 */
#ifndef RT_FAULT_PLAY_H
#define RT_FAULT_PLAY_H

#include "rt-fault.h"

/* Between begin and end: the faults of this process, for what isn't told (hooks). Else NULL. */
const struct rt_faults *rt_faults_of_process(void);

/* ---- play.c ---- */

/* Sleeps to the end, whatever interrupts. */
void rt_faults_sleep(int64_t ns);
/* Works until the thread has had so much processor time more. */
void rt_faults_work(int64_t ns);

/* ---- parse.c ---- */

/* "host1", as on-hosts says it, is 1; -1: another name, or NULL. */
int rt_faults_host_number(const char *name);
/* RT_HOST_RANKS; 0: not set, -1: no number from 1. */
int rt_faults_host_ranks(void);

/* ---- play-files.c ---- */

/* The next reads of this thread, or its next fsync, take so much longer, in all. */
void rt_faults_delay_reads(int64_t ns);
void rt_faults_delay_sync(int64_t ns);
/* What of it none of them took; it is theirs no longer. */
int64_t rt_faults_take_delay(void);

/* ---- play-process.c ---- */

/* contend and comm-steals-cpu; 0 or a negative errno. */
int rt_faults_share_core(const struct rt_faults *f);
void rt_faults_leave_core(void);

#endif
