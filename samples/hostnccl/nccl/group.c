/* SPDX-License-Identifier: Apache-2.0 */
/* Groups. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define SIM_INFO_MAGIC 0x74685283u

struct job {
    struct job *next;
    struct hostnccl_job what;
    ncclResult_t result;
    char text[400]; /* of an error */
    int device;
    pthread_t thread;
    bool started, background;
};

/* The calling thread's group. */
static __thread struct {
    int depth;
    ncclResult_t error; /* the first of its calls */
    struct hostnccl_op *ops, **ops_end;
    struct job *jobs, **jobs_end;
} group;

ncclResult_t hostnccl_group_note(ncclResult_t result)
{
    if (group.depth > 0 && group.error == ncclSuccess && result != ncclInProgress)
        group.error = result;
    return result;
}

/* ---- jobs ---- */

ncclResult_t hostnccl_group_job(const struct hostnccl_job *job)
{
    bool background = hostnccl_in_background(job);
    if (background)
        hostnccl_background_begin(job);
    struct job *j = group.depth > 0 ? calloc(1, sizeof *j) : NULL;
    if (!j && background)
        return hostnccl_background_start(job);
    if (!j) /* out of memory in a group: it may wait for a rank of this very thread, and be lost */
        return job->run(job->argument);
    j->what = *job;
    cudaGetDevice(&j->device);
    if (!group.jobs)
        group.jobs_end = &group.jobs;
    *group.jobs_end = j;
    group.jobs_end = &j->next;
    return background ? ncclInProgress : ncclSuccess;
}

static void *job_thread(void *argument)
{
    struct job *j = argument;
    cudaSetDevice(j->device);
    j->result = j->what.run(j->what.argument);
    if (j->result != ncclSuccess)
        snprintf(j->text, sizeof j->text, "in a group: %s", pncclGetLastError(NULL));
    return NULL;
}

/* Starts those that others may wait for; the first of the rest is this thread's. */
static void start_jobs(struct job *jobs)
{
    bool mine = false;
    for (struct job *j = jobs; j; j = j->next) {
        j->background = hostnccl_in_background(&j->what);
        if (j->background)
            j->result = hostnccl_background_start(&j->what);
        else if (mine)
            j->started = pthread_create(&j->thread, NULL, job_thread, j) == 0;
        else
            mine = true;
    }
}

/* All at once: they wait for each other. An error comes before what is in progress. */
static ncclResult_t run_jobs(struct job *jobs)
{
    ncclResult_t result = ncclSuccess;
    start_jobs(jobs);
    for (struct job *j = jobs; j; j = j->next)
        if (!j->background && !j->started)
            job_thread(j);
    while (jobs) {
        struct job *next = jobs->next;
        if (jobs->started)
            pthread_join(jobs->thread, NULL);
        if (jobs->result != ncclSuccess && (result == ncclSuccess || result == ncclInProgress)) {
            result = jobs->result;
            if (result != ncclInProgress)
                hostnccl_fail(result, "%s", jobs->text);
        }
        free(jobs);
        jobs = next;
    }
    return result;
}

/* ---- what a group holds ---- */

/* Takes out of `*from` what belongs to the communicator of its first. */
static struct hostnccl_op *take_first_comm(struct hostnccl_op **from)
{
    struct hostnccl_op *taken = NULL, **end = &taken;
    ncclComm_t comm = (*from)->comm;
    while (*from) {
        struct hostnccl_op *op = *from;
        if (op->comm == comm) {
            *from = op->next;
            *end = op;
            op->next = NULL;
            end = &op->next;
        } else {
            from = &op->next;
        }
    }
    return taken;
}

static ncclResult_t launch_all(struct hostnccl_op *ops)
{
    ncclResult_t first = ncclSuccess;
    while (ops) {
        struct hostnccl_op *mine = hostnccl_schedule(take_first_comm(&ops));
        ncclResult_t result = hostnccl_launch(mine, hostnccl_profiler_group_event());
        first = first == ncclSuccess ? result : first;
    }
    return first;
}

/* ---- the interface ---- */

ncclResult_t hostnccl_group_add(const struct hostnccl_op *op)
{
    struct hostnccl_op *copy = malloc(sizeof *copy);
    if (!copy)
        return hostnccl_fail(ncclSystemError, "out of memory");
    *copy = *op;
    copy->next = NULL;
    if (!group.ops)
        group.ops_end = &group.ops;
    *group.ops_end = copy;
    group.ops_end = &copy->next;
    return ncclSuccess;
}

ncclResult_t pncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}
HOSTNCCL_WEAK(GroupStart);

/* At the outermost end: what to do with what the group holds. */
typedef ncclResult_t finish_fn(struct hostnccl_op *ops);

static ncclResult_t end_group(const char *call, finish_fn *finish)
{
    if (group.depth == 0)
        return hostnccl_fail(ncclInvalidUsage, "%s without ncclGroupStart", call);
    hostnccl_profiler_group_end();
    if (--group.depth > 0)
        return ncclSuccess;
    ncclResult_t result = group.error;
    struct hostnccl_op *ops = group.ops;
    struct job *jobs = group.jobs;
    group.error = ncclSuccess;
    group.ops = NULL;
    group.jobs = NULL;
    /* what was asked of other ranks runs, or they would wait for this one */
    ncclResult_t jobs_result = run_jobs(jobs);
    if (result == ncclSuccess && jobs_result != ncclInProgress)
        result = jobs_result;
    if (result == ncclSuccess)
        result = finish(ops);
    else
        hostnccl_ops_free(ops);
    hostnccl_profiler_group_stop();
    return result == ncclSuccess ? jobs_result : result;
}

ncclResult_t pncclGroupEnd(void)
{
    return end_group("ncclGroupEnd", launch_all);
}
HOSTNCCL_WEAK(GroupEnd);

static ncclResult_t forget(struct hostnccl_op *ops)
{
    hostnccl_ops_free(ops);
    return ncclSuccess;
}

/* How long it would take depends on the others and on the processors: it is left unknown. */
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    if (simInfo && simInfo->magic != SIM_INFO_MAGIC)
        return hostnccl_group_note(hostnccl_fail(
            ncclInvalidArgument, "ncclSimInfo_t was not set by NCCL_SIM_INFO_INITIALIZER"));
    ncclResult_t result = end_group("ncclGroupSimulateEnd", forget);
    if (simInfo && simInfo->size >= sizeof *simInfo)
        simInfo->estimatedTime = NCCL_UNDEF_FLOAT;
    return result;
}
HOSTNCCL_WEAK(GroupSimulateEnd);

int hostnccl_group_depth(void)
{
    return group.depth;
}
