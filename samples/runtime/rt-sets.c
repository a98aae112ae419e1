/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COORDINATOR 0
#define FIRST_TAG   1

/* Whether a rank can have the set, and why not. */
struct rt_set_vote {
    int32_t error;
    char message[200];
};

void rt_sets_init(struct rt_sets *s)
{
    pthread_mutex_init(&s->lock, NULL);
}

static int place_of(const struct rt_set *set, int rank)
{
    for (int i = 0; i < set->n; i++)
        if (set->ranks[i] == rank)
            return i;
    return -1;
}

static void empty(struct rt_set *set, bool in_step)
{
    rt_executor_release(&set->executor);
    if (in_step)
        rt_groups_release(&set->groups);
    rt_member_free(set->member);
    rt_coordinator_free(set->coordinator);
    set->member = NULL;
    set->coordinator = NULL;
}

static void free_list_entry(struct rt_set *set)
{
    free(set->ranks);
    free(set);
}

static void free_set(struct rt_set *set, bool in_step)
{
    if (!set)
        return;
    empty(set, in_step);
    free_list_entry(set);
}

/* Without what ranks have of it together. */
static struct rt_set *new_set(const struct rt_sets *s, const int *ranks, int n)
{
    struct rt_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->id = s->next_id;
    set->n = n;
    set->ranks = malloc((size_t)n * sizeof *set->ranks);
    if (!set->ranks) {
        free(set);
        return NULL;
    }
    memcpy(set->ranks, ranks, (size_t)n * sizeof *set->ranks);
    set->place = place_of(set, s->fabric->rank);
    while (s->taken[set->tags])
        set->tags++;
    return set;
}

/* A rank may have announced its shutdown together with the set. */
static int tell_of_those_who_left(const struct rt_sets *s, struct rt_coordinator *c)
{
    int error = 0;
    for (int r = 0; r < s->fabric->size && !error; r++)
        if (rt_coordinator_has_left(s->list[0]->coordinator, r))
            error = rt_coordinator_leave(c, r);
    return error;
}

static int make_coordinator(const struct rt_sets *s, struct rt_set *set)
{
    const uint64_t threshold = s->config->fusion_threshold;
    const uint32_t capacity = s->config->cache_capacity;
    if (s->fabric->rank != COORDINATOR)
        return 0;
    set->coordinator = set->id == 0 ? rt_coordinator_new(set->n, threshold, capacity)
                                    : rt_coordinator_new_of(set->ranks, set->n, s->fabric->size,
                                                            threshold, capacity);
    if (!set->coordinator)
        return -ENOMEM;
    return set->id == 0 ? 0 : tell_of_those_who_left(s, set->coordinator);
}

/* What this rank has of its own. */
static int prepare(const struct rt_sets *s, struct rt_set *set)
{
    int error = make_coordinator(s, set);
    if (error || set->place < 0)
        return error;
    set->member = rt_member_new();
    return set->member ? 0 : -ENOMEM;
}

/* What the ranks of the set have together. */
static int connect_set(const struct rt_sets *s, struct rt_set *set, char *message,
                       size_t message_bytes)
{
    if (set->place < 0)
        return 0;
    int error = rt_groups_init(&set->groups, s->fabric, set->ranks, set->n, s->hosts,
                               FIRST_TAG + set->tags * RT_GROUPS_TAGS, s->config->hierarchical,
                               message, message_bytes);
    return error
               ? error
               : rt_executor_init(&set->executor, &set->groups, s->config, message, message_bytes);
}

static int make_room(struct rt_sets *s)
{
    const int room = s->room * 2 + 4;
    if (s->count < s->room)
        return 0;
    pthread_mutex_lock(&s->lock);
    struct rt_set **grown = realloc(s->list, (size_t)room * sizeof(*grown));
    if (grown) {
        s->list = grown;
        s->room = room;
    }
    pthread_mutex_unlock(&s->lock);
    return grown ? 0 : -ENOMEM;
}

static void put_into_list(struct rt_sets *s, struct rt_set *set)
{
    pthread_mutex_lock(&s->lock);
    s->list[s->count++] = set;
    s->taken[set->tags] = true;
    s->next_id = set->id + 1;
    pthread_mutex_unlock(&s->lock);
}

static void take_out_of_list(struct rt_sets *s, const struct rt_set *set)
{
    pthread_mutex_lock(&s->lock);
    int kept = 0;
    for (int i = 0; i < s->count; i++)
        if (s->list[i] != set)
            s->list[kept++] = s->list[i];
    s->count = kept;
    s->taken[set->tags] = false;
    pthread_mutex_unlock(&s->lock);
}

int rt_sets_add_all(struct rt_sets *s, bool *ret_refused, char *message, size_t message_bytes)
{
    const int size = s->fabric->size;
    int *ranks = malloc((size_t)size * sizeof *ranks);
    for (int r = 0; r < size && ranks; r++)
        ranks[r] = r;
    struct rt_set *set = ranks ? new_set(s, ranks, size) : NULL;
    s->votes = calloc((size_t)size, sizeof *s->votes);
    free(ranks);
    if (!set || !s->votes || make_room(s)) {
        free_set(set, false);
        return -ENOMEM;
    }
    put_into_list(s, set);
    int error = prepare(s, set);
    if (!error)
        error = connect_set(s, set, message, message_bytes);
    *ret_refused = set->executor.refused;
    return error;
}

/* ---- together ---- */

/* *error is that of the first rank that has one, on all ranks alike, and so is the message. */
static int agree(struct rt_sets *s, int *error, char *message, size_t message_bytes)
{
    struct rt_set_vote mine = {.error = *error};
    snprintf(mine.message, sizeof mine.message, "%.199s", *message ? message : strerror(-*error));
    int broken = s->fabric->ops->allgather(s->fabric, &mine, s->votes, sizeof mine);
    *error = 0;
    for (int r = 0; r < s->fabric->size && !broken && !*error; r++) {
        *error = s->votes[r].error;
        if (*error)
            snprintf(message, message_bytes, "no process set was added: rank %d: %s", r,
                     s->votes[r].message);
    }
    return broken;
}

/* Ranks that have it all to themselves can still say no; once they talk to each other one that
 * fails leaves others waiting. But what rank 0 of the set reads in the table it tells all. */
static int make_together(struct rt_sets *s, struct rt_set *set, int *ret, char *message,
                         size_t message_bytes)
{
    int broken = agree(s, ret, message, message_bytes);
    if (broken || *ret)
        return broken;
    *ret = connect_set(s, set, message, message_bytes);
    if (*ret && !set->executor.refused)
        return *ret;
    return agree(s, ret, message, message_bytes);
}

int rt_sets_add(struct rt_sets *s, const int *ranks, int n, int *ret, char *message,
                size_t message_bytes)
{
    *message = 0;
    if (s->count == RT_SETS_MAX) {
        snprintf(message, message_bytes, "there are %d process sets already: remove some",
                 RT_SETS_MAX);
        *ret = -ENOSPC;
        return 0;
    }
    struct rt_set *set = new_set(s, ranks, n);
    *ret = set ? make_room(s) : -ENOMEM;
    if (!*ret)
        *ret = prepare(s, set);
    const int broken = make_together(s, set, ret, message, message_bytes);
    if (broken || *ret) {
        free_set(set, !broken);
        return broken;
    }
    put_into_list(s, set);
    *ret = set->id;
    return 0;
}

/* Nobody goes on before all are here: then the tags are free. */
int rt_sets_remove(struct rt_sets *s, int id, int *ret, char *message, size_t message_bytes)
{
    struct rt_set *set = rt_sets_find(s, id);
    *message = 0;
    *ret = id == 0 ? -EINVAL : set ? 0 : -ENOENT;
    if (*ret) {
        snprintf(message, message_bytes,
                 !set && id > 0 && id < s->next_id ? "process set %d was removed before"
                 : id == 0                         ? "process set %d, of all ranks, stays"
                                                   : "there is no process set %d",
                 id);
        return 0;
    }
    const int broken = agree(s, ret, message, message_bytes);
    if (broken)
        return broken;
    char text[80];
    snprintf(text, sizeof text, "process set %d was removed", id);
    take_out_of_list(s, set);
    s->under_way -= rt_table_fail_set(s->table, id, -ENOENT, text);
    free_set(set, true);
    return 0;
}

void rt_sets_end(struct rt_sets *s, bool in_step)
{
    for (int i = s->count - 1; i >= 0; i--)
        empty(s->list[i], in_step);
}

void rt_sets_release(struct rt_sets *s)
{
    while (s->count > 0)
        free_list_entry(s->list[--s->count]);
    free(s->list);
    free(s->votes);
    s->list = NULL;
    s->room = 0;
    pthread_mutex_destroy(&s->lock);
}

struct rt_set *rt_sets_find(const struct rt_sets *s, int id)
{
    int low = 0, high = s->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (s->list[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->list[low]->id == id ? s->list[low] : NULL;
}

bool rt_sets_are_without_me(const struct rt_sets *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->list[i]->place < 0)
            return true;
    return false;
}

/* ---- from any thread ---- */

int rt_sets_look(struct rt_sets *s, int id, struct rt_set_view *ret, bool *ret_removed)
{
    pthread_mutex_lock(&s->lock);
    const struct rt_set *set = rt_sets_find(s, id);
    if (set)
        *ret = (struct rt_set_view){set->place, set->n};
    *ret_removed = !set && id > 0 && id < s->next_id;
    pthread_mutex_unlock(&s->lock);
    return set ? 0 : -ENOENT;
}

int rt_sets_place(struct rt_sets *s, int id, int rank)
{
    pthread_mutex_lock(&s->lock);
    const struct rt_set *set = rt_sets_find(s, id);
    const int place = set ? place_of(set, rank) : -1;
    pthread_mutex_unlock(&s->lock);
    return place;
}

int rt_sets_copy_ranks(struct rt_sets *s, int id, int *ret, int room)
{
    pthread_mutex_lock(&s->lock);
    const struct rt_set *set = rt_sets_find(s, id);
    const int n = set ? set->n : -ENOENT;
    for (int i = 0; i < n && i < room; i++)
        ret[i] = set->ranks[i];
    pthread_mutex_unlock(&s->lock);
    return n;
}
