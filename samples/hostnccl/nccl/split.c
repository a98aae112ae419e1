/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators out of others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What a rank of the parent tells the others: an array of int32, as rt_coll sends. */
struct split_word {
    int32_t color, key;
};

struct make_job {
    ncclComm_t parent;
    ncclComm_t *handle; /* the caller's; NULL again if this fails, unless it looks meanwhile */
    ncclComm_t comm;    /* NULL: no colour */
    struct split_word mine;
    bool *excluded; /* by rank of the parent; a shrink's */
};

/* ---- splitting: all ranks of the parent ---- */

/* Place of this rank among those of its colour, by key, then by rank in the parent; `ret_leader` is
 * the first one's rank in the parent. */
static int place_in_color(const struct split_word *words, int size, int rank, int *ret_size,
                          int *ret_leader)
{
    int place = 0, leader = rank;
    *ret_size = 0;
    for (int r = 0; r < size; r++) {
        if (words[r].color != words[rank].color)
            continue;
        ++*ret_size;
        place += words[r].key < words[rank].key || (words[r].key == words[rank].key && r < rank);
        if (words[r].key < words[leader].key || (words[r].key == words[leader].key && r < leader))
            leader = r;
    }
    *ret_leader = leader;
    return place;
}

static int exchange(ncclComm_t parent, const void *mine, void *all, size_t bytes)
{
    return rt_allgather_ring(&parent->control.base, mine, all,
                             (uint64_t)parent->size * (bytes / sizeof(int32_t)), RT_INT32);
}

static ncclResult_t fail_with(ncclComm_t parent, const char *call, int error)
{
    char text[sizeof parent->async_text];
    ncclResult_t result = hostnccl_comm_describe(parent, error, text, sizeof text);
    return hostnccl_fail(result, "%s: %s", call, text);
}

/* Everybody takes part in both exchanges, with a colour or without. */
static ncclResult_t split_ids(struct make_job *job, struct split_word *words, ncclUniqueId *ids,
                              int *ret_leader)
{
    ncclComm_t parent = job->parent;
    ncclUniqueId mine = {{0}};
    ncclResult_t result = ncclSuccess;
    int error = exchange(parent, &job->mine, words, sizeof job->mine);
    if (error == 0 && job->comm) {
        job->comm->rank =
            place_in_color(words, parent->size, parent->rank, &job->comm->size, ret_leader);
        if (*ret_leader == parent->rank)
            result = hostnccl_region_make(&mine);
    }
    if (error == 0)
        error = exchange(parent, &mine, ids, sizeof mine);
    return error == 0 ? result : fail_with(parent, "ncclCommSplit", error);
}

static ncclResult_t agree_on_split(struct make_job *job, ncclUniqueId *ret_id)
{
    size_t size = (size_t)job->parent->size;
    struct split_word *words = calloc(size, sizeof *words);
    ncclUniqueId *ids = calloc(size, sizeof *ids);
    int leader = 0;
    ncclResult_t result = words && ids ? split_ids(job, words, ids, &leader)
                                       : hostnccl_fail(ncclSystemError, "out of memory");
    if (result == ncclSuccess)
        *ret_id = ids[leader];
    free(words);
    free(ids);
    return result;
}

/* ---- shrinking: the ranks that stay ---- */

/* What the first of those that stay tells the others: they must mean the same ranks. */
struct shrink_word {
    ncclUniqueId id;
    uint64_t excluded; /* a hash of their numbers */
};

static uint64_t hash_excluded(const struct make_job *job)
{
    uint64_t hash = 14695981039346656037u;
    for (int r = 0; r < job->parent->size; r++)
        hash = (hash ^ job->excluded[r]) * 1099511628211u;
    return hash;
}

static int tell(struct rt_transport *t, const struct make_job *job, const struct shrink_word *word)
{
    int error = 0;
    for (int r = 0; r < t->size && !error; r++) {
        struct rt_request request;
        if (r == t->rank || job->excluded[r])
            continue;
        error = t->ops->send(t, word, sizeof *word, r, &request);
        if (!error)
            error = t->ops->wait(t, &request, 1);
    }
    return error;
}

static int hear(struct rt_transport *t, int from, struct shrink_word *ret)
{
    struct rt_request request;
    int error = t->ops->recv(t, ret, sizeof *ret, from, &request);
    return error ? error : t->ops->wait(t, &request, 1);
}

static ncclResult_t agree_on_shrink(struct make_job *job, ncclUniqueId *ret_id)
{
    struct rt_transport *t = &job->parent->rescue.base;
    struct shrink_word word = {.excluded = hash_excluded(job)};
    int leader = 0, error;
    while (job->excluded[leader])
        leader++;
    if (leader == t->rank) {
        ncclResult_t result = hostnccl_region_make(&word.id);
        if (result != ncclSuccess)
            return result;
        error = tell(t, job, &word);
    } else {
        error = hear(t, leader, &word);
    }
    if (error)
        return fail_with(job->parent, "ncclCommShrink", error);
    if (word.excluded != hash_excluded(job))
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclCommShrink: rank %d excludes others than rank %d", t->rank,
                             leader);
    *ret_id = word.id;
    return ncclSuccess;
}

/* ---- both ---- */

static void set_made_from(ncclComm_t comm, ncclComm_t parent)
{
    pthread_mutex_lock(&comm->lock);
    comm->made_from = parent;
    pthread_mutex_unlock(&comm->lock);
}

static ncclResult_t make(struct make_job *job)
{
    ncclUniqueId id;
    ncclResult_t result = job->excluded ? agree_on_shrink(job, &id) : agree_on_split(job, &id);
    if (!job->comm)
        return result;
    set_made_from(job->comm, NULL);
    if (result == ncclSuccess)
        result = hostnccl_comm_connect(job->comm, &id);
    if (result == ncclSuccess)
        hostnccl_profiler_open(job->comm);
    return result;
}

static void free_job(struct make_job *job)
{
    if (job)
        free(job->excluded);
    free(job);
}

static ncclResult_t run_make(void *argument)
{
    struct make_job *job = argument;
    ncclComm_t parent = job->parent;
    bool background = hostnccl_in_background(&(struct hostnccl_job){.comms = {parent, job->comm}});
    ncclResult_t result = make(job);
    if (result != ncclSuccess && job->comm && !background) {
        *job->handle = NULL;
        hostnccl_comm_free(job->comm);
    }
    free_job(job);
    return result;
}

/* Takes `job`; the size and rank of a split's communicator come later. */
static ncclResult_t start(struct make_job *job, bool is_member, int size, int rank,
                          const ncclConfig_t *config)
{
    struct hostnccl_settings settings;
    ncclResult_t result = hostnccl_settings_read(config, &job->parent->settings, &settings);
    if (result == ncclSuccess && is_member) {
        job->comm = hostnccl_comm_new(&settings, job->parent->device);
        if (!job->comm)
            result = hostnccl_fail(ncclSystemError, "out of memory");
    }
    if (result != ncclSuccess) {
        free_job(job);
        return result;
    }
    if (job->comm) {
        job->comm->size = size;
        job->comm->rank = rank;
        job->comm->made_from = job->parent;
    }
    *job->handle = job->comm;
    return hostnccl_group_job(&(struct hostnccl_job){run_make, job, {job->parent, job->comm}});
}

static ncclResult_t split(ncclComm_t parent, int color, int key, ncclComm_t *newcomm,
                          const ncclConfig_t *config)
{
    ncclResult_t result = hostnccl_comm_manageable(parent);
    if (result != ncclSuccess)
        return result;
    if (!newcomm || color < NCCL_SPLIT_NOCOLOR)
        return hostnccl_fail(ncclInvalidArgument, "ncclCommSplit: colour %d", color);
    struct make_job *job = malloc(sizeof *job);
    if (!job)
        return hostnccl_fail(ncclSystemError, "out of memory");
    *job = (struct make_job){.parent = parent, .handle = newcomm, .mine = {color, key}};
    return start(job, color != NCCL_SPLIT_NOCOLOR, 0, 0, config);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    return hostnccl_group_note(split(comm, color, key, newcomm, config));
}
HOSTNCCL_WEAK(CommSplit);

/* Which ranks go, and what is left of the parent for this one. */
static ncclResult_t read_excluded(ncclComm_t parent, const int *list, int count, bool *ret)
{
    if (!list || count < 1 || count >= parent->size)
        return hostnccl_fail(ncclInvalidArgument, "ncclCommShrink: %d of %d ranks excluded", count,
                             parent->size);
    for (int i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] >= parent->size || list[i] == parent->rank || ret[list[i]])
            return hostnccl_fail(
                ncclInvalidArgument, "ncclCommShrink: rank %d of %d can't be excluded by rank %d%s",
                list[i], parent->size, parent->rank,
                list[i] >= 0 && list[i] < parent->size && ret[list[i]] ? " twice" : "");
        ret[list[i]] = true;
    }
    return ncclSuccess;
}

/* With NCCL_SHRINK_ABORT whatever error the parent has. */
static ncclResult_t check_shrink(ncclComm_t parent, ncclComm_t *newcomm, int flags)
{
    bool aborts = flags & NCCL_SHRINK_ABORT;
    ncclResult_t result = hostnccl_comm_valid(parent);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&parent->lock);
    bool made = parent->connected && parent->busy == 0 && !parent->finalized;
    pthread_mutex_unlock(&parent->lock);
    if (!aborts || !made)
        result = hostnccl_comm_manageable(parent);
    if (result == ncclSuccess && (!newcomm || (flags & ~NCCL_SHRINK_ABORT)))
        result = hostnccl_fail(ncclInvalidArgument, "ncclCommShrink: newcomm %p, flags %d",
                               (void *)newcomm, flags);
    return result;
}

static ncclResult_t shrink(ncclComm_t parent, const int *list, int count, ncclComm_t *newcomm,
                           const ncclConfig_t *config, int flags)
{
    ncclResult_t result = check_shrink(parent, newcomm, flags);
    if (result != ncclSuccess)
        return result;
    struct make_job *job = malloc(sizeof *job);
    bool *excluded = calloc((size_t)parent->size, sizeof *excluded);
    if (!job || !excluded) {
        free(job);
        free(excluded);
        return hostnccl_fail(ncclSystemError, "out of memory");
    }
    *job = (struct make_job){.parent = parent, .handle = newcomm, .excluded = excluded};
    result = read_excluded(parent, list, count, excluded);
    if (result != ncclSuccess) {
        free_job(job);
        return result;
    }
    int rank = parent->rank;
    for (int r = 0; r < parent->rank; r++)
        rank -= excluded[r];
    if (flags & NCCL_SHRINK_ABORT) {
        hostnccl_comm_stop(parent);
        hostnccl_comm_await_plans(parent);
    }
    return start(job, true, parent->size - count, rank, config);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    return hostnccl_group_note(
        shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}
HOSTNCCL_WEAK(CommShrink);
