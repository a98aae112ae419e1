/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-process.h - is a process of this host still the one it was, and alive?
 *
 * A process is named by its pid and start time (field 22 of /proc/<pid>/stat): pids are used again.
 * A zombie is dead, unless only its first thread has ended. Across pid namespaces nothing is known
 * and everything counts as dead.
 */
#ifndef RT_PROCESS_H
#define RT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* 0 where /proc can't tell. */
uint64_t rt_process_start(int pid);
bool rt_process_alive(int pid, uint64_t start);
/* As ps shows it, of its first thread: T is stopped, t stopped by a debugger. 0: it isn't there. */
char rt_process_state(int pid, uint64_t start);

#endif
