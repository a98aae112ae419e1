/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool concerns_me(const struct rt_jobs *j, const struct rt_order *order)
{
    for (uint32_t i = 0; i < order->addressee_count; i++)
        if (order->addressees[i] == j->sets->fabric->rank)
            return true;
    return order->addressee_count == 0;
}

/* An order and the operations of this rank that it is about. */
struct job {
    struct rt_set *set;
    struct rt_order order;
    struct rt_operation **operations;
};

/* The last rank to join is in the order alone. */
static int find_or_stand_in(struct rt_jobs *j, const struct rt_set *set,
                            const struct rt_tensor *tensor, struct rt_operation **ret)
{
    struct rt_operation *o = rt_table_find(j->table, tensor->set, tensor->name);
    if (!o && !rt_table_find(j->table, tensor->set, RT_JOIN_NAME))
        return -EPROTO;
    if (!o) {
        o = rt_operation_stand_in(tensor, set->n);
        if (!o)
            return -ENOMEM;
        rt_phase_negotiate(&o->phases, &o->tensor);
    }
    if (tensor->kind == RT_JOIN)
        o->tensor.root = tensor->root;
    *ret = o;
    return 0;
}

static void finish(struct rt_jobs *j, struct rt_operation *o, const struct rt_order *order)
{
    if (o->stand_in) {
        rt_phase_done(&o->phases);
        rt_operation_free(o);
    } else {
        rt_table_finish(j->table, o, order->error, order->text);
        j->sets->under_way--;
    }
}

static int begin_job(struct rt_jobs *j, struct job *job)
{
    job->operations = calloc(job->order.n + 1, sizeof *job->operations);
    if (!job->operations)
        return -ENOMEM;
    for (uint32_t i = 0; i < job->order.n; i++) {
        struct rt_operation *o;
        int error = find_or_stand_in(j, job->set, &job->order.tensors[i], &o);
        if (error)
            return error;
        job->operations[i] = o;
        rt_phase_agreed(&o->phases, &o->tensor);
    }
    return 0;
}

/* It fails on all ranks alike. What is waited for is the number of the set. */
static int change_sets(struct rt_jobs *j, struct job *job)
{
    struct rt_operation *o = job->operations[0];
    char *message = j->message;
    const size_t bytes = sizeof j->message;
    int result = -EINVAL, error = 0;
    if (o->tensor.kind == RT_REMOVE_SET)
        error = rt_sets_remove(j->sets, (int)o->tensor.count, &result, message, bytes);
    else if (o->ranks)
        error = rt_sets_add(j->sets, o->ranks, o->rank_count, &result, message, bytes);
    else
        snprintf(message, bytes, "no process set can have %.200s", o->tensor.shape);
    if (error)
        return error;
    job->order.error = result;
    free(job->order.text); /* the empty one of an order without error */
    job->order.text = NULL;
    if (result < 0)
        job->order.text = strdup(*message ? message : strerror(-result));
    *message = 0;
    return 0;
}

static int do_job(struct rt_jobs *j, struct job *job)
{
    const enum rt_kind kind = job->order.tensors[0].kind;
    int error = 0;
    if (kind == RT_SHUTDOWN)
        j->ended = true;
    else if (!job->order.error && rt_changes_sets(kind))
        error = change_sets(j, job);
    else if (!job->order.error)
        error = rt_execute(&job->set->executor, job->operations, job->order.n);
    if (error || j->ended)
        return error; /* the table is closed, then */
    for (uint32_t i = 0; i < job->order.n; i++) {
        finish(j, job->operations[i], &job->order);
        job->operations[i] = NULL;
    }
    return 0;
}

/* All that came together are agreed at once; then one after the other is done. */
static int carry_out(struct rt_jobs *j, struct job *jobs, unsigned n)
{
    int error = 0;
    for (unsigned i = 0; i < n && !error; i++)
        error = begin_job(j, &jobs[i]);
    for (unsigned i = 0; i < n && !error; i++)
        error = do_job(j, &jobs[i]);
    return error;
}

static void free_jobs(struct job *jobs, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (uint32_t k = 0; jobs[i].operations && k < jobs[i].order.n; k++)
            if (jobs[i].operations[k] && jobs[i].operations[k]->stand_in)
                rt_operation_free(jobs[i].operations[k]);
        rt_order_clear(&jobs[i].order);
        free(jobs[i].operations);
    }
    free(jobs);
}

static int add_job(struct job **jobs, unsigned *n, struct rt_set *set, struct rt_order *order)
{
    struct job *grown = realloc(*jobs, (*n + 1) * sizeof *grown);
    if (!grown) {
        rt_order_clear(order);
        return -ENOMEM;
    }
    *jobs = grown;
    grown[(*n)++] = (struct job){.set = set, .order = *order};
    return 0;
}

int rt_jobs_obey(struct rt_jobs *j, const struct rt_bytes *message)
{
    struct rt_reader reader = {message->data, message->n};
    struct job *jobs = NULL;
    unsigned n = 0;
    int error = 0;
    while (reader.left > 0 && !error) {
        struct rt_order order;
        struct rt_set *set;
        error = rt_sets_get_order(j->sets, &reader, &order, &set);
        if (!error && concerns_me(j, &order))
            error = add_job(&jobs, &n, set, &order);
        else if (!error)
            rt_order_clear(&order);
    }
    if (!error)
        error = carry_out(j, jobs, n);
    free_jobs(jobs, n);
    return error;
}
