/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-worker.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rt-bells.h"
#include "rt-clock.h"
#include "rt-file.h"
#include "rt-jobs.h"
#include "rt-lifeline.h"
#include "rt-nvtx.h"
#include "rt-pace.h"

#define COORDINATOR 0
#define NEWS_MS     1000 /* of a death travel longer than the end of what the dead took part in */

struct rt_worker {
    struct rt_config config;
    struct rt_table *table;
    struct rt_fabric *fabric;
    char (*hosts)[RT_HOST_MAX]; /* by rank */
    struct rt_lifeline *lifeline;
    struct rt_sets sets;
    struct rt_jobs jobs;
    bool refused; /* why the start failed rank 0 has told all */
    struct rt_bells *bells;
    struct rt_pace pace;
    uint64_t looked_ns, warned_ns; /* for what takes too long, and when that was said */
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest: set up once, then only read */
    pthread_cond_t ready;
    bool started;
    int error;
    char message[1024];
};

/* ---- a cycle ---- */

static bool coordinates(const struct rt_worker *w)
{
    return w->fabric->rank == COORDINATOR;
}

static int send(struct rt_worker *w, int to, const struct rt_bytes *message)
{
    int error = w->fabric->ops->send(w->fabric, to, message);
    rt_bells_ring(w->bells, to);
    return error;
}

/* 1: something was announced. */
static int announce(struct rt_worker *w, uint64_t now)
{
    struct rt_bytes message = {0};
    if (!rt_table_has_new(w->table) || !rt_pace_may_announce(&w->pace, now, w->sets.under_way > 0))
        return 0;
    rt_timeline_cycle();
    rt_pace_announced(&w->pace, now);
    int error = rt_sets_announce(&w->sets, &message);
    if (!error && coordinates(w))
        error = rt_sets_hear(&w->sets, COORDINATOR, &message);
    else if (!error && message.n > 0)
        error = send(w, COORDINATOR, &message);
    free(message.data);
    return error ? error : 1;
}

/* 1: something has come. */
static int receive_all(struct rt_worker *w)
{
    int from, got = 0, any = 0;
    struct rt_bytes message;
    while (!w->jobs.ended && (got = w->fabric->ops->receive(w->fabric, &from, &message)) > 0) {
        int error = coordinates(w) ? rt_sets_hear(&w->sets, from, &message)
                                   : rt_jobs_obey(&w->jobs, &message);
        free(message.data);
        if (error)
            return error;
        any = 1;
    }
    return w->jobs.ended || got == 0 ? any : got;
}

/* 1: there was something to tell, if only to this rank itself. */
static int tell(struct rt_worker *w, const struct rt_bytes *messages)
{
    int error = 0;
    bool any = false;
    for (int r = 0; r < w->fabric->size && !error; r++) {
        any = any || messages[r].n > 0;
        if (r != COORDINATOR && messages[r].n > 0)
            error = send(w, r, &messages[r]);
    }
    /* a long message goes out only while this rank looks after MPI: not while it works by NCCL, for
     * which the others would be missing */
    if (!error)
        error = w->fabric->ops->flush(w->fabric);
    return error ? error : any;
}

/* Decides, tells the others, and obeys. 1: there was something to decide. */
static int coordinate(struct rt_worker *w)
{
    struct rt_bytes *messages = calloc((size_t)w->fabric->size, sizeof *messages);
    int error = messages ? rt_sets_decide(&w->sets, messages) : -ENOMEM;
    const int told = error ? error : tell(w, messages);
    if (told > 0 && messages[COORDINATOR].n > 0)
        error = rt_jobs_obey(&w->jobs, &messages[COORDINATOR]);
    for (int r = 0; r < w->fabric->size && messages; r++)
        free(messages[r].data);
    free(messages);
    return error ? error : told;
}

/* ---- what takes too long ---- */

/* How often rank 0 looks, although it may have nothing to do itself: others may wait for it. 0:
 * never. */
static uint64_t stall_look_ns(const struct rt_worker *w)
{
    const uint64_t warning = w->config.stall_warning_ns, shutdown = w->config.stall_shutdown_ns;
    const uint64_t first = warning && (!shutdown || warning < shutdown) ? warning : shutdown;
    return first > 8000000000u ? 1000000000u : (first + 7) / 8;
}

static void warn(struct rt_worker *w, uint64_t now)
{
    struct rt_bytes text = {0};
    if (!w->config.stall_warning_ns || now - w->warned_ns < w->config.stall_warning_ns)
        return;
    if (rt_sets_say_stalled(&w->sets, w->config.stall_warning_ns, &text) > 0 && !text.failed) {
        fprintf(stderr, "rt: some ranks wait for tensors that others have not handed over:\n%s",
                (char *)text.data);
        w->warned_ns = now;
    }
    free(text.data);
}

static int look_for_stalls(struct rt_worker *w, uint64_t now)
{
    const uint64_t every = stall_look_ns(w);
    rt_sets_set_time(&w->sets, now);
    if (every == 0 || now - w->looked_ns < every)
        return 0;
    w->looked_ns = now;
    warn(w, now);
    return w->config.stall_shutdown_ns ? rt_sets_give_up(&w->sets, w->config.stall_shutdown_ns) : 0;
}

/* ---- cycles ---- */

/* 1: something was done. */
static int cycle(struct rt_worker *w, uint64_t now)
{
    int error = coordinates(w) ? look_for_stalls(w, now) : 0;
    const int told = error ? error : announce(w, now);
    const int heard = told < 0 ? told : receive_all(w);
    const int done = heard < 0 || !coordinates(w) ? heard : coordinate(w);
    return done < 0 ? done : told | heard | done;
}

/* Nothing was to do after the bell's `number` was read. */
static void rest(struct rt_worker *w, uint32_t number)
{
    const struct rt_pace_work work = {
        .new_ones = rt_table_has_new(w->table),
        /* of sets without rank 0 it isn't told where the others can't ring */
        .under_way = w->sets.under_way > 0 || (coordinates(w) && rt_sets_are_without_me(&w->sets)),
        .sending = w->fabric->ops->is_sending(w->fabric),
    };
    uint64_t rest_ns = rt_pace_rest_ns(&w->pace, rt_now_ns(), work);
    const uint64_t look_ns = coordinates(w) ? stall_look_ns(w) : 0;
    if (look_ns > 0 && rest_ns > look_ns)
        rest_ns = look_ns;
    if (rest_ns > 0)
        rt_bells_wait(w->bells, number, rest_ns);
    else
        sched_yield();
    if (rt_bells_number(w->bells) != number)
        rt_pace_active(&w->pace, rt_now_ns());
}

static int run_cycles(struct rt_worker *w)
{
    int done = 0;
    while (done >= 0 && !w->jobs.ended) {
        const uint32_t number = rt_bells_number(w->bells);
        done = cycle(w, rt_now_ns());
        if (done > 0)
            rt_pace_active(&w->pace, rt_now_ns());
        else if (done == 0 && !w->jobs.ended)
            rest(w, number);
    }
    return done < 0 ? done : 0;
}

/* ---- a rank's death ---- */

#define GRACE_S 1 /* for the program, to end by itself */

/* In the lifeline's thread; the background thread may be in a call that never returns. */
static void rank_died(void *data, const char *text)
{
    struct rt_worker *w = data;
    const struct timespec grace = {.tv_sec = GRACE_S};
    fprintf(stderr, "rt: rank %d: %s\n", w->fabric->rank, text);
    rt_table_break(w->table, -ECONNRESET, text);
    if (!w->config.exits_on_death)
        return;
    nanosleep(&grace, NULL);
    fprintf(stderr, "rt: rank %d: ends, as it has not done so in %d s by itself (RT_ON_DEATH)\n",
            w->fabric->rank, GRACE_S);
    _exit(1);
}

/* Likewise: the background thread may wait for that rank, and look for no stalls. */
static void warn_of_rank(void *data, const char *text)
{
    const struct rt_worker *w = data;
    fprintf(stderr, "rt: rank %d: %s\n", w->fabric->rank, text);
}

/* ---- the thread ---- */

/* How allreduces go. */
struct way {
    uint8_t hierarchical, is_planned, deterministic;
    struct rt_plan plan;
};

/* It is as rank 0's environment says, also in sets without it: ranks of which only some would meet
 * in NCCL would wait for ever. */
static int agree(struct rt_worker *w)
{
    struct rt_config *c = &w->config;
    const struct way mine = {c->hierarchical, c->is_planned, c->deterministic, c->plan};
    struct way *all = calloc((size_t)w->fabric->size, sizeof *all);
    int error = all ? w->fabric->ops->allgather(w->fabric, &mine, all, sizeof mine) : -ENOMEM;
    if (!error) {
        c->hierarchical = all[0].hierarchical;
        c->is_planned = all[0].is_planned;
        c->deterministic = all[0].deterministic;
        c->plan = all[0].plan;
    }
    free(all);
    return error;
}

static int connect_ranks(struct rt_worker *w)
{
    int error;
    w->fabric = rt_fabric_new(&error, w->message, sizeof w->message);
    if (!w->fabric)
        return error;
    error = rt_groups_hosts(w->fabric, &w->hosts);
    if (error) {
        snprintf(w->message, sizeof w->message, "can't hear of the ranks' hosts: %s",
                 strerror(-error));
        return error;
    }
    const struct rt_lifeline_user user = {.timeout_s = w->config.host_timeout_s,
                                          .warning_ns = w->config.stall_warning_ns,
                                          .died = rank_died,
                                          .warn = warn_of_rank,
                                          .data = w};
    w->lifeline = rt_lifeline_new(w->fabric, (const char(*)[RT_HOST_MAX])w->hosts, &user, &error,
                                  w->message, sizeof w->message);
    if (!w->lifeline)
        return error;
    if (w->fabric->ops->started)
        w->fabric->ops->started(w->fabric);
    error = agree(w);
    if (!error)
        w->bells = rt_bells_new(w->fabric, (const char(*)[RT_HOST_MAX])w->hosts, &error);
    return error;
}

/* The end of a connection is noticed before that of the process it was of. */
static void name_gone(struct rt_worker *w, int error)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    char text[400];
    if (!*w->message)
        snprintf(w->message, sizeof w->message, "the runtime can't start: %s", strerror(-error));
    if (!w->fabric || !w->fabric->ops->find_gone)
        return;
    for (int i = 0; i < (error == -ECONNRESET ? 50 : 1); i++) {
        if (w->fabric->ops->find_gone(w->fabric, text, sizeof text)) {
            snprintf(w->message, sizeof w->message, "the runtime can't start: %s", text);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static void ring_own(void *data)
{
    struct rt_worker *w = data;
    rt_bells_ring(w->bells, w->fabric->rank);
}

static bool is_crowded(const struct rt_worker *w)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 ||
           w->sets.list[0]->groups.topology.local_size > CPU_COUNT(&set);
}

/* It isn't worth a run that it can't be written; and the caller hears of no error. Before any rank
 * is heard. */
static void open_timeline(const struct rt_config *config)
{
    int error = config->timeline ? rt_timeline_open(config->timeline, config->mark_cycles) : 0;
    if (error)
        fprintf(stderr, "timeline %s: %s; it is not written\n", config->timeline,
                rt_file_why(error));
}

static int set_up(struct rt_worker *w)
{
    int error = connect_ranks(w);
    if (error) {
        name_gone(w, error);
        return error;
    }
    w->sets.fabric = w->fabric;
    w->sets.hosts = (const char(*)[RT_HOST_MAX])w->hosts;
    w->sets.config = &w->config;
    w->sets.table = w->table;
    w->jobs = (struct rt_jobs){.table = w->table, .sets = &w->sets};
    error = rt_sets_add_all(&w->sets, &w->refused, w->message, sizeof w->message);
    if (error)
        return error;
    rt_pace_init(&w->pace, w->config.cycle_ns, is_crowded(w), rt_bells_are_whole(w->bells));
    rt_table_set_bell(w->table, ring_own, w);
    if (coordinates(w))
        open_timeline(&w->config);
    return 0;
}

static void tell_started(struct rt_worker *w, int error)
{
    pthread_mutex_lock(&w->lock);
    w->started = true;
    w->error = error;
    pthread_cond_signal(&w->ready);
    pthread_mutex_unlock(&w->lock);
}

static const char *reason(const struct rt_worker *w, int error)
{
    const char *known = *w->jobs.message ? w->jobs.message : error == -EIO ? rt_inside_error() : "";
    return *known ? known : strerror(-error);
}

/* After an error that no death is behind: the others would wait for this rank for ever. */
static void fail(struct rt_worker *w, int error)
{
    char text[600];
    rt_lifeline_cut(w->lifeline, reason(w, error));
    snprintf(text, sizeof text, "the runtime has failed: %.500s", reason(w, error));
    rt_table_close(w->table, error, text);
}

/* All together, in step. */
static void disconnect(struct rt_worker *w)
{
    rt_lifeline_free(w->lifeline);
    rt_sets_end(&w->sets, true);
    rt_bells_free(w->bells);
    w->fabric->ops->free(w->fabric);
    free(w->hosts);
}

/* The worker is freed soon: nobody may look at it any more. */
static int begin(struct rt_worker *w)
{
    int error = set_up(w);
    if (w->refused)
        disconnect(w);
    else if (error)
        rt_lifeline_cut(w->lifeline, NULL);
    return error;
}

/* After a failure ranks are no longer in step: the fabric is left as it is, its end could wait for
 * ever. */
static void *background(void *data)
{
    struct rt_worker *w = data;
    rt_nvtx_name_thread("rt background");
    int error = begin(w);
    tell_started(w, error);
    if (error)
        return NULL;
    error = run_cycles(w);
    if (error && !rt_lifeline_wait(w->lifeline, NEWS_MS))
        fail(w, error);
    if (error) {
        rt_sets_end(&w->sets, false);
    } else {
        rt_table_close(w->table, 0, NULL);
        disconnect(w);
    }
    return NULL;
}

static int start_and_wait(struct rt_worker *w)
{
    int error = pthread_create(&w->thread, NULL, background, w);
    if (error) {
        snprintf(w->message, sizeof w->message,
                 "can't start a thread: %s (limits: ulimit -u, ulimit -v)", strerror(error));
        return -error;
    }
    pthread_mutex_lock(&w->lock);
    while (!w->started)
        pthread_cond_wait(&w->ready, &w->lock);
    error = w->error;
    pthread_mutex_unlock(&w->lock);
    if (error)
        pthread_join(w->thread, NULL);
    return error;
}

static void free_worker(struct rt_worker *w)
{
    rt_sets_release(&w->sets);
    pthread_cond_destroy(&w->ready);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct rt_worker *rt_worker_new(const struct rt_config *config, struct rt_table *table,
                                struct rt_topology *ret_topology, int *ret_error, char *message,
                                size_t message_bytes)
{
    struct rt_worker *w = calloc(1, sizeof *w);
    *ret_error = -ENOMEM;
    snprintf(message, message_bytes, "%s", strerror(ENOMEM));
    if (!w)
        return NULL;
    w->config = *config;
    w->table = table;
    rt_sets_init(&w->sets);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->ready, NULL);
    *ret_error = start_and_wait(w);
    if (*ret_error) {
        snprintf(message, message_bytes, "%s", *w->message ? w->message : strerror(-*ret_error));
        free_worker(w);
        return NULL;
    }
    *ret_topology = w->sets.list[0]->groups.topology;
    return w;
}

struct rt_sets *rt_worker_sets(struct rt_worker *w)
{
    return &w->sets;
}

void rt_worker_join(struct rt_worker *w)
{
    pthread_join(w->thread, NULL);
    free_worker(w);
}
