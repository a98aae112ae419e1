/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-hosts.h - starts an agent on a host, and writes down the job for it.
 */
#ifndef RUN_HOSTS_H
#define RUN_HOSTS_H

#include <signal.h>
#include <sys/types.h>

#include "run-options.h"
#include "run-wire.h"

/* Starts rt-run --agent, on another host through the shell's words o->ssh, at the other end of
 * *ret. `signals` is the mask that it begins with. Returns its process, or a negative errno. */
pid_t run_host_start(const struct run_options *o, int host, const sigset_t *signals,
                     struct run_wire *ret);
/* Where rt-run is, here and there. */
const char *run_host_program(void);
/* Adds host's RUN_JOB to *ret. `job` names it. */
void run_host_pack(const struct run_options *o, int host, const char *job, struct run_buffer *ret);

#endif
