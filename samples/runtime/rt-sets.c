/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COORDINATOR 0
#define FIRST_TAG   1

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

static int make_coordinator(const struct rt_sets *s, struct rt_set *set)
{
    const uint64_t threshold = s->config->fusion_threshold;
    const uint32_t capacity = s->config->cache_capacity;
    if (s->fabric->rank != COORDINATOR)
        return 0;
    set->coordinator = set->id == 0 ? rt_coordinator_new(set->n, threshold, capacity)
                                    : rt_coordinator_new_of(set->ranks, set->n, s->fabric->size,
                                                            threshold, capacity);
    return set->coordinator ? 0 : -ENOMEM;
}

/* What this rank has of its own, and its groups. */
static int connect_set(const struct rt_sets *s, struct rt_set *set, char *message,
                       size_t message_bytes)
{
    int error = make_coordinator(s, set);
    if (error || set->place < 0)
        return error;
    set->member = rt_member_new();
    return set->member ? rt_groups_init(&set->groups, s->fabric, set->ranks, set->n, s->hosts,
                                        FIRST_TAG + set->tags * RT_GROUPS_TAGS,
                                        s->config->hierarchical, message, message_bytes)
                       : -ENOMEM;
}

static int choose(const struct rt_sets *s, struct rt_set *set, char *message, size_t message_bytes)
{
    return set->place < 0
               ? 0
               : rt_executor_init(&set->executor, &set->groups, s->config, message, message_bytes);
}

static int put_into_list(struct rt_sets *s, struct rt_set *set)
{
    int error = 0;
    pthread_mutex_lock(&s->lock);
    if (s->count == s->room) {
        const int room = s->room * 2 + 4;
        struct rt_set **grown = realloc(s->list, (size_t)room * sizeof(*grown));
        if (grown) {
            s->list = grown;
            s->room = room;
        }
        error = grown ? 0 : -ENOMEM;
    }
    if (!error) {
        s->list[s->count++] = set;
        s->taken[set->tags] = true;
        s->next_id = set->id + 1;
    }
    pthread_mutex_unlock(&s->lock);
    return error;
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
    int error = set ? put_into_list(s, set) : -ENOMEM;
    free(ranks);
    if (error) {
        free_set(set, true);
        return error;
    }
    error = connect_set(s, set, message, message_bytes);
    if (!error)
        error = choose(s, set, message, message_bytes);
    *ret_refused = set->executor.refused;
    return error;
}

/* ---- together ---- */

struct told {
    int32_t error;
    char message[200];
};

/* The same on all ranks: the first one's that failed, and what it said. Who hears nothing of the
 * others, which may wait for it, is out of step. */
static int agree(struct rt_sets *s, int error, char *message, size_t message_bytes)
{
    struct told mine = {.error = error};
    struct told *all = calloc((size_t)s->fabric->size, sizeof *all);
    if (!all) {
        s->is_out_of_step = true;
        return -ENOMEM;
    }
    snprintf(mine.message, sizeof mine.message, "%.199s", *message ? message : strerror(-error));
    error = s->fabric->ops->allgather(s->fabric, &mine, all, sizeof mine);
    s->is_out_of_step = error != 0;
    for (int r = 0; r < s->fabric->size && !error; r++) {
        error = all[r].error;
        if (error)
            snprintf(message, message_bytes, "no process set was added: rank %d: %s", r,
                     all[r].message);
    }
    free(all);
    return error;
}

int rt_sets_add(struct rt_sets *s, const int *ranks, int n, char *message, size_t message_bytes)
{
    *message = 0;
    if (s->count == RT_SETS_MAX) {
        snprintf(message, message_bytes, "there are %d process sets already: remove some",
                 RT_SETS_MAX);
        return -ENOSPC;
    }
    struct rt_set *set = new_set(s, ranks, n);
    int error = set ? connect_set(s, set, message, message_bytes) : -ENOMEM;
    error = agree(s, error, message, message_bytes);
    if (!error) {
        error = choose(s, set, message, message_bytes);
        if (!error)
            error = put_into_list(s, set);
        const bool listed = !error;
        error = agree(s, error, message, message_bytes);
        if (error && listed)
            take_out_of_list(s, set);
    }
    if (!error)
        return set->id;
    free_set(set, !s->is_out_of_step);
    return error;
}

/* Nobody goes on before all are here: then the tags are free. */
int rt_sets_remove(struct rt_sets *s, int id, char *message, size_t message_bytes)
{
    struct rt_set *set = rt_sets_find(s, id);
    const uint8_t here = 1;
    *message = 0;
    if (!set || id == 0) {
        snprintf(message, message_bytes,
                 !set && id > 0 && id < s->next_id ? "process set %d was removed before"
                 : id == 0                         ? "process set %d, of all ranks, stays"
                                                   : "there is no process set %d",
                 id);
        return id == 0 ? -EINVAL : -ENOENT;
    }
    uint8_t *all = malloc((size_t)s->fabric->size);
    int error = all ? s->fabric->ops->allgather(s->fabric, &here, all, 1) : -ENOMEM;
    free(all);
    if (error) {
        s->is_out_of_step = true;
        return error;
    }
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
