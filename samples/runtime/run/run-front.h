/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-front.h - a job from begin to end: agents are started on all hosts, told of the job, and told
 * to start their ranks when every host is ready; then output, input and signals are passed on,
 * until all ranks have ended.
 */
#ifndef RUN_FRONT_H
#define RUN_FRONT_H

#include "run-options.h"

/* Returns rt-run's exit status. */
int run_front(const struct run_options *o);

#endif
