/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-sets.h - the process sets of a job: their ranks, and what the background thread has for each.
 *
 * Model: every rank knows all sets; one that is in a set has its groups and its side of the
 * agreement, rank 0 a coordinator for each, also where it is not in it. All ranks add and remove
 * sets in the same sequence, as rank 0's orders are, so that all number them alike. Set 0 has all
 * ranks and stays. What ranks tell each other of all sets goes in one message, and rank 0 orders
 * what is ready in any set in one sequence: two ranks that are in the same sets carry out their
 * orders in the same sequence, and none waits for another in a circle.
 *
 * Threads: the background thread; rt_sets_look and those after it any. Errors: negative errno; of
 * what ranks do together, they are no longer in step then, and the runtime can only end.
 */
#ifndef RT_SETS_H
#define RT_SETS_H

#include <pthread.h>

#include "rt-coordinator.h"
#include "rt-execute.h"
#include "rt-member.h"

#define RT_SETS_MAX 8192 /* at a time: as MPI surely has tags for them */

struct rt_set {
    int id;
    int *ranks; /* ascending */
    int n;
    int place; /* this rank's among them; -1: it isn't in the set, and the next three are empty */
    struct rt_groups groups;
    struct rt_executor executor;
    struct rt_member *member;
    struct rt_coordinator *coordinator; /* on rank 0 */
    int tags;                           /* which of RT_SETS_MAX runs of tags is its own */
};

struct rt_sets {
    struct rt_fabric *fabric; /* borrowed, as the next three */
    const char (*hosts)[RT_HOST_MAX];
    const struct rt_config *config;
    struct rt_table *table;
    struct rt_set_vote *votes; /* by rank: room for what they agree about */
    unsigned under_way;        /* operations of this rank: announced, not done */
    pthread_mutex_t lock;      /* of the list for other threads: the background thread changes it */
    struct rt_set **list;      /* by id, ascending; the first is that of all ranks */
    int count, room;
    int next_id;
    bool taken[RT_SETS_MAX]; /* runs of tags */
};

void rt_sets_init(struct rt_sets *s);
/* The set of all ranks; together. *ret_refused: why it failed rank 0 has told all. */
int rt_sets_add_all(struct rt_sets *s, bool *ret_refused, char *message, size_t message_bytes);
/* Together; `ranks` ascending. *ret: the id, else an error, the same on all ranks, and the message.
 */
int rt_sets_add(struct rt_sets *s, const int *ranks, int n, int *ret, char *message,
                size_t message_bytes);
/* Together; what this rank has not done in the set fails. *ret as above: 0, -ENOENT, -EINVAL. */
int rt_sets_remove(struct rt_sets *s, int id, int *ret, char *message, size_t message_bytes);
/* Frees all but what other threads may still look at. Ranks that are not in step would wait for
 * each other for ever: then what they have together stays. */
void rt_sets_end(struct rt_sets *s, bool in_step);
void rt_sets_release(struct rt_sets *s);

struct rt_set *rt_sets_find(const struct rt_sets *s, int id); /* NULL: none */
/* On rank 0: others may wait for it although it has nothing to do itself. */
bool rt_sets_are_without_me(const struct rt_sets *s);

/* ---- what ranks tell each other (rt-sets-talk.c) ---- */

/* Appends what was handed over since, in all sets. */
int rt_sets_announce(struct rt_sets *s, struct rt_bytes *to);
/* On rank 0: what `from` has announced. */
int rt_sets_hear(struct rt_sets *s, int from, const struct rt_bytes *message);
/* On rank 0: appends what it orders now to the messages of the ranks that it is for. */
int rt_sets_decide(struct rt_sets *s, struct rt_bytes *to);
/* Reads the next order of such a message. */
int rt_sets_get_order(struct rt_sets *s, struct rt_reader *from, struct rt_order *ret,
                      struct rt_set **ret_set);
/* As rt-coordinator.h says of one, of all. */
void rt_sets_set_time(struct rt_sets *s, uint64_t now_ns);
unsigned rt_sets_say_stalled(const struct rt_sets *s, uint64_t after_ns, struct rt_bytes *text);
int rt_sets_give_up(struct rt_sets *s, uint64_t after_ns);

/* ---- from any thread ---- */

struct rt_set_view {
    int rank, size; /* -1: this rank isn't in it */
};

/* -ENOENT, and *ret_removed: there was one. */
int rt_sets_look(struct rt_sets *s, int id, struct rt_set_view *ret, bool *ret_removed);
/* The place in the set of a rank of the job; -1. */
int rt_sets_place(struct rt_sets *s, int id, int rank);
/* Its ranks, at most `room` of them. -ENOENT, else how many there are. */
int rt_sets_copy_ranks(struct rt_sets *s, int id, int *ret, int room);

#endif
