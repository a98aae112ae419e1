/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-agent.h - rt-run --agent: starts the ranks of one host, by order of the rt-run at the other
 * end of its input and output, and ends them when that is gone.
 */
#ifndef RUN_AGENT_H
#define RUN_AGENT_H

/* Returns the exit status. */
int run_agent(void);

#endif
