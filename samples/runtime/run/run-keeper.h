/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run-keeper.h - the parent of a host's agent: where the agent is killed, it ends what its ranks
 * have started, at any depth.
 *
 * Where the keeper is killed the agent ends all, in order; so does it where rt-run is. Only if both
 * are killed at the same time what ranks have started stays; the ranks themselves end. It has
 * another name than rt-run, so that killing all of that name leaves it.
 */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

/* Runs the agent in a child. Returns its exit status, once nothing is left. */
int run_keeper(int (*agent)(void));

#endif
