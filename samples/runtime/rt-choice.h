/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-choice.h - how an allreduce goes over the ranks, by its size; and the file that says it, which
 * rt_tune measures and writes.
 *
 * A plan, as text: "ring" and the other names of rt-coll.h, over all ranks; "hierarchical:NAME",
 * reduce-scatter and allgather inside hosts, that algorithm between them ("hierarchical":
 * "hierarchical:auto", which goes piece by piece between two hosts that are alike);
 * "two-level-ring".
 *
 * The file is text, "#" begins a comment:
 *
 *   ringscope-allreduce-table 1
 *   topology MPI 2,2                      # the word of what connects ranks; the ranks of each host
 *   costs 4e-06 2e-10 3e-05 9e-09 1e-10   # seconds: a message and a byte inside a host, the same
 *                                         # between hosts, and reducing a byte
 *   measured 64 1048576                   # bytes, from and to; may be missing
 *   up-to 4096 recursive-doubling         # bytes, in ascending order
 *   beyond hierarchical:ring
 *   topology ...
 *
 * For a run of a topology that the file has, its lines hold. For another one of the same transport
 * what costs least by rt-cost.h with the costs of the first section. Without a file:
 * rt_choice_default. A file that is not of this form is refused, with its line.
 *
 * Threads: none of its own. Errors: a negative errno and a message.
 */
#ifndef RT_CHOICE_H
#define RT_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "rt-coll.h"

enum rt_plan_kind { RT_PLAN_FLAT, RT_PLAN_HIERARCHICAL, RT_PLAN_TWO_LEVEL_RING };

struct rt_plan {
    uint32_t kind;      /* enum rt_plan_kind */
    uint32_t algorithm; /* rt_algorithm_at's */
};

#define RT_PLAN_TEXT_MAX 64
/* -EINVAL: no such plan. */
int rt_plan_parse(const char *text, struct rt_plan *ret);
void rt_plan_text(struct rt_plan plan, char text[RT_PLAN_TEXT_MAX]);
#define RT_PLAN_NAMES                                                                              \
    "auto, hierarchical, two-level-ring, ring, recursive-doubling, halving-doubling, tree, "       \
    "double-tree, flat, or hierarchical:NAME with one of the last six"

#define RT_CHOICE_STEPS_MAX 40

/* Plain data: it can go to other ranks as it is. Steps in ascending order; the last has no end. */
struct rt_choice {
    uint32_t n;
    uint64_t measured_from, measured_to; /* bytes; 0: not known, or predicted */
    struct rt_choice_step {
        struct rt_plan plan;
        uint64_t up_to; /* bytes */
    } steps[RT_CHOICE_STEPS_MAX];
};

struct rt_plan rt_choice_at(const struct rt_choice *c, uint64_t bytes);
/* Always that one. */
struct rt_choice rt_choice_of(struct rt_plan plan);
/* hierarchical:auto where hosts have several ranks, or are two, else auto. */
struct rt_choice rt_choice_default(const struct rt_layout *layout);
/* For RT_DETERMINISTIC: what gives an element the same bits whatever else is in the buffer. */
struct rt_choice rt_choice_same_bits(void);
/* Appends a step; what is chosen again takes no room. -E2BIG. */
int rt_choice_add(struct rt_choice *c, uint64_t up_to, struct rt_plan plan);

#define RT_CHOICE_PLANS_MAX 16
/* Picks one of `plans` for each size, in ascending order: seconds[size * plans + plan], all above
 * 0. What one loses by is 1 less than its time over the quickest's; a change from one size to the
 * next counts as RT_CHOICE_CHANGE; the sum is least. So what was quickest by chance at a single
 * size, or by little, isn't taken, and what loses by more than two changes never is. */
#define RT_CHOICE_CHANGE 0.02
void rt_choice_pick(const double *seconds, unsigned sizes, unsigned plans, unsigned *ret);

struct rt_costs {
    struct rt_cost inside, across;
};
double rt_plan_cost(struct rt_plan plan, const struct rt_layout *layout, const struct rt_costs *c,
                    uint64_t bytes);
/* What costs least. */
struct rt_choice rt_choice_predict(const struct rt_layout *layout, const struct rt_costs *c);
/* From `i` = 0 on, all plans for that layout; false past the last. */
bool rt_plan_at(const struct rt_layout *layout, unsigned i, struct rt_plan *ret);

#define RT_TOPOLOGY_TEXT_MAX 1024
/* "MPI 2,2". Many hosts: cut short, with their number. */
void rt_topology_text(const char *word, const struct rt_layout *layout,
                      char text[RT_TOPOLOGY_TEXT_MAX]);

/* Where the file is looked for: RT_TABLE, else $XDG_CONFIG_HOME (or ~/.config)
 * /ringscope/allreduce.table; "" for RT_TABLE=none. *ret_must: RT_TABLE names it, so that it must
 * be there. */
void rt_choice_path(char *ret, size_t bytes, bool *ret_must);
/* -ENOENT: no such file. *ret_found: the file has this topology, else it was predicted. */
int rt_choice_read(const char *path, const char *topology, const struct rt_layout *layout,
                   struct rt_choice *ret, bool *ret_found, char *message, size_t message_bytes);
/* Puts the section into the file, in place of one of the same topology, or after the others; at
 * once: a reader sees the file as it was or as it is. Makes the file and its folder. */
int rt_choice_write(const char *path, const char *topology, const struct rt_costs *costs,
                    const struct rt_choice *c, char *message, size_t message_bytes);

#endif
