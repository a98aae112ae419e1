/* SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-convert.h"
#include "rt-describe.h"
#include "rt-runtime.h"

#define CHANGE RT_RESERVED "process-set"

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static struct rt_sets *sets(void)
{
    return rt_worker_sets(rt_self.worker);
}

/* ---- which there are ---- */

/* As far as there is room for them. */
static void say_ranks(int set, char *ret, size_t bytes)
{
    const int room = rt_self.topology.size;
    int *ranks = malloc((size_t)room * sizeof *ranks);
    const int n = ranks ? rt_sets_copy_ranks(sets(), set, ranks, room) : -ENOMEM;
    snprintf(ret, bytes, "others");
    if (n >= 0)
        rt_describe_ranks(ranks, n, ret, bytes);
    free(ranks);
}

static int look(const char *what, int set, struct rt_set_view *ret)
{
    bool removed;
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "%sthe runtime is not running", what);
    int error = rt_sets_look(sets(), set, ret, &removed);
    return error
               ? rt_fail(error,
                         removed ? "%sprocess set %d was removed" : "%sthere is no process set %d",
                         what, set)
               : 0;
}

static int look_inside(const char *what, int set, struct rt_set_view *ret)
{
    char ranks[200];
    int error = look(what, set, ret);
    if (error || ret->rank >= 0)
        return error;
    say_ranks(set, ranks, sizeof ranks);
    return rt_fail(-EPERM, "%srank %d is not in process set %d, which has %s", what,
                   rt_self.topology.rank, set, ranks);
}

int rt_look_at_set(const char *name, int set, struct rt_set_view *ret)
{
    char what[RT_NAME_MAX + 16];
    snprintf(what, sizeof what, "tensor %s: ", name);
    return look_inside(what, set, ret);
}

int rt_process_set_included(int set)
{
    struct rt_set_view view;
    int error = look("", set, &view);
    return error ? error : view.rank >= 0;
}

int rt_process_set_rank(int set)
{
    struct rt_set_view view;
    int error = look_inside("", set, &view);
    return error ? error : view.rank;
}

int rt_process_set_size(int set)
{
    struct rt_set_view view;
    int error = look("", set, &view);
    return error ? error : view.size;
}

int rt_process_set_ranks(int set, int *ret, int room)
{
    struct rt_set_view view;
    int error = look("", set, &view);
    if (!error && !ret && room > 0)
        error = rt_fail(-EINVAL, "process set %d: nowhere to return its ranks (NULL)", set);
    return error ? error : rt_sets_copy_ranks(sets(), set, ret, room);
}

uint64_t rt_process_set_rows_of(int set, uint64_t rows, int place)
{
    struct rt_set_view view;
    return look("", set, &view) || place < 0 || place >= view.size
               ? 0
               : rt_part_count(rows, view.size, place);
}

/* ---- changes ---- */

static int compare(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool may_be_a_set(const int *ranks, int n)
{
    bool good = n > 0;
    for (int i = 0; i < n && good; i++)
        good = ranks[i] >= 0 && ranks[i] < rt_self.topology.size &&
               (i == 0 || ranks[i] != ranks[i - 1]);
    return good;
}

/* What can't be a set is handed over, too: others may say another one, and wait. */
static int describe(struct rt_operation *o, const int *ranks, int n)
{
    struct rt_tensor *t = &o->tensor;
    if (n > rt_self.topology.size) {
        snprintf(t->shape, sizeof t->shape, "%d ranks of %d", n, rt_self.topology.size);
        return 0;
    }
    n = ranks && n > 0 ? n : 0;
    o->ranks = malloc(((size_t)n + 1) * sizeof *o->ranks);
    if (!o->ranks)
        return -ENOMEM;
    if (n > 0)
        memcpy(o->ranks, ranks, (size_t)n * sizeof *ranks);
    o->rank_count = n;
    qsort(o->ranks, (size_t)n, sizeof *o->ranks, compare);
    rt_describe_ranks(o->ranks, n, t->shape, sizeof t->shape);
    if (!may_be_a_set(o->ranks, n)) {
        free(o->ranks);
        o->ranks = NULL;
    }
    return 0;
}

static int change(struct rt_operation *o)
{
    pthread_mutex_lock(&one_at_a_time);
    int handle = rt_hand_over(o, NULL);
    int result = handle < 0 ? handle : rt_wait(handle);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int rt_add_process_set(const int *ranks, int n)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_add_process_set: the runtime is not running");
    struct rt_operation *o = rt_operation_new(RT_ADD_SET, CHANGE);
    if (!o || describe(o, ranks, n)) {
        rt_operation_free(o);
        return rt_fail(-ENOMEM, "rt_add_process_set: no memory");
    }
    return change(o);
}

int rt_remove_process_set(int set)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_remove_process_set: the runtime is not running");
    struct rt_operation *o = rt_operation_new(RT_REMOVE_SET, CHANGE);
    if (o) {
        o->tensor.count = (uint64_t)set;
        snprintf(o->tensor.shape, sizeof o->tensor.shape, "%d", set);
    }
    return change(o);
}
