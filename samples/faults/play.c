/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end, steps and phases, and the faults that take time there. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "play.h"
#include "rt-fault-hooks.h"
#include "rt-place-names.h"

/* ---- time ---- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void rt_faults_work(int64_t ns)
{
    static volatile double sink;
    const int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    double x = 1;
    do
        for (int i = 0; i < 2000; i++)
            x = x * 1.0000001 + 1e-9;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
    sink = x;
    (void)sink;
}

void rt_faults_sleep(int64_t ns)
{
    const int64_t end = clock_ns(CLOCK_MONOTONIC) + ns;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static int64_t own_ns(const struct rt_faults *f)
{
    return clock_ns(f->program.sleeps ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

void rt_faults_spend(const struct rt_faults *f, int64_t ns)
{
    if (ns <= 0)
        return;
    if (f->program.sleeps)
        rt_faults_sleep(ns);
    else
        rt_faults_work(ns);
}

/* ---- which fault ---- */

static bool concerns(const struct rt_faults *f, const struct rt_fault *fault)
{
    return (fault->rank == RT_FAULT_ANY || fault->rank == f->rank) &&
           (fault->step == RT_FAULT_ANY ||
            fault->step == __atomic_load_n(&f->step, __ATOMIC_RELAXED));
}

const struct rt_fault *rt_faults_find(const struct rt_faults *f, enum rt_fault_kind kind)
{
    for (int i = 0; i < f->n; i++)
        if (f->fault[i].kind == kind && concerns(f, &f->fault[i]))
            return &f->fault[i];
    return NULL;
}

/* Uniform in [0, 1): splitmix64 of what it is drawn for. */
static double draw(const struct rt_faults *f, uint64_t seed)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + (uint64_t)f->step * 0xd1342543de82ef95u +
                 (uint64_t)f->rank * 0xa0761d6478bd642fu + 1;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) / 9007199254740992.0;
}

/* ---- in a step ---- */

void rt_faults_step(struct rt_faults *f, int64_t step)
{
    __atomic_store_n(&f->step, step, __ATOMIC_RELAXED);
    f->step_computed = false;
    const struct rt_fault *fault = rt_faults_find(f, RT_FAULT_DIE);
    if (fault)
        kill(getpid(), fault->signal);
}

static bool is_phase(const struct rt_faults *f, enum rt_fault_phase_kind kind)
{
    return f->phase && f->phase->kind == kind;
}

void rt_faults_phase_begin(struct rt_faults *f, const char *phase)
{
    const struct rt_fault *fault;
    f->phase = f->program.phases;
    while (f->phase && f->phase->name && strcmp(f->phase->name, phase) != 0)
        f->phase++;
    if (f->phase && !f->phase->name)
        f->phase = NULL;
    if (is_phase(f, RT_FAULT_PHASE_LOAD) && (fault = rt_faults_find(f, RT_FAULT_SLOW_LOADER)))
        rt_faults_delay_reads((int64_t)(fault->ms * 1e6));
    if (is_phase(f, RT_FAULT_PHASE_CHECKPOINT) &&
        (fault = rt_faults_find(f, RT_FAULT_SLOW_CHECKPOINT)))
        rt_faults_delay_sync((int64_t)(fault->ms * 1e6));
    f->code_played = false;
    f->part_start_ns = own_ns(f);
}

/* How much longer computing takes, by all faults that make it so: 0.5 is half as much again. */
static double more_of(const struct rt_faults *f)
{
    double factor = 1;
    for (int i = 0; i < f->n; i++) {
        const struct rt_fault *fault = &f->fault[i];
        if (fault->kind == RT_FAULT_SLOW_HOST && fault->host == f->host)
            factor *= fault->factor;
        if (fault->kind == RT_FAULT_IMBALANCE)
            factor *= 1 + fault->spread * draw(f, fault->seed);
    }
    return factor - 1;
}

/* In the first part of the phase: what the phase hands over from part to part is late. */
static void slow_code(struct rt_faults *f)
{
    for (int i = 0; i < f->n && f->phase && !f->code_played; i++) {
        const struct rt_fault *fault = &f->fault[i];
        if (fault->kind == RT_FAULT_SLOW_CODE && concerns(f, fault) &&
            strcmp(f->phase->name, fault->name) == 0)
            rt_faults_spend(f, (int64_t)(fault->ms * 1e6));
    }
    f->code_played = true;
}

void rt_faults_part(struct rt_faults *f)
{
    if (is_phase(f, RT_FAULT_PHASE_COMPUTE) && f->n > 0)
        rt_faults_spend(f, (int64_t)(more_of(f) * (double)(own_ns(f) - f->part_start_ns)));
    slow_code(f);
    f->part_start_ns = own_ns(f);
}

/* Once a step, in its first computing phase. */
static double once_ms(const struct rt_faults *f, const struct rt_fault *fault)
{
    bool plays = fault->kind == RT_FAULT_SLOW_RANK ||
                 (fault->kind == RT_FAULT_JITTER && draw(f, fault->seed) < fault->prob);
    return plays && !f->step_computed && is_phase(f, RT_FAULT_PHASE_COMPUTE) ? fault->ms : 0;
}

void rt_faults_phase_end(struct rt_faults *f)
{
    rt_faults_part(f);
    for (int i = 0; i < f->n; i++) {
        const struct rt_fault *fault = &f->fault[i];
        if (!concerns(f, fault))
            continue;
        rt_faults_spend(f, (int64_t)(once_ms(f, fault) * 1e6));
    }
    f->step_computed |= is_phase(f, RT_FAULT_PHASE_COMPUTE);
    f->phase = NULL;
    int64_t late_ns = rt_faults_take_delay();
    if (late_ns > 0)
        rt_faults_sleep(late_ns);
}

void rt_faults_send(struct rt_faults *f)
{
    const struct rt_fault *fault = rt_faults_find(f, RT_FAULT_LATE_SEND);
    if (fault)
        rt_faults_spend(f, (int64_t)(fault->ms * 1e6));
}

/* ---- begin and end ---- */

static const struct rt_faults *of_process;

const struct rt_faults *rt_faults_of_process(void)
{
    return __atomic_load_n(&of_process, __ATOMIC_ACQUIRE);
}

struct message {
    char *text;
    size_t bytes;
};

__attribute__((format(printf, 3, 4))) static int fail(struct message m, int error,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m.text, m.bytes, format, args);
    va_end(args);
    return error;
}

static void find_place(struct rt_faults *f)
{
    f->rank = 0;
    f->size = 1;
    f->host = rt_faults_host_number(getenv("RT_HOST"));
    for (int i = 0; i < RT_PLACE_NAMES; i++) {
        const struct rt_place_names *n = &rt_place_names[i];
        const char *rank = getenv(n->rank), *size = getenv(n->size);
        if (!size && n->old_size)
            size = getenv(n->old_size);
        if (rank && size && (!n->mark || getenv(n->mark))) {
            f->rank = atoi(rank);
            f->size = atoi(size);
            return;
        }
    }
}

static bool has_phase(const struct rt_faults_program *program, const char *name)
{
    for (const struct rt_fault_phase *p = program->phases; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

static int check(const struct rt_faults *f, const struct rt_fault *fault, struct message m)
{
    const char *name = rt_fault_name(fault->kind);
    bool works = fault->kind == RT_FAULT_CONTEND || fault->kind == RT_FAULT_COMM_STEALS_CPU;
    if (!(f->program.plays & 1u << fault->kind))
        return fail(m, -EINVAL, "RT_FAULT: %s: %s doesn't play it%s", name, f->program.name,
                    works && f->program.sleeps ? " while it sleeps in place of work" : "");
    if (fault->rank >= f->size)
        return fail(m, -EINVAL, "RT_FAULT: %s: rank=%d: the job has ranks 0 to %d", name,
                    fault->rank, f->size - 1);
    if (f->host < 0 && (RT_FAULT_BIT(SLOW_HOST) | RT_FAULT_BITS_SOCKETS) & 1u << fault->kind)
        return fail(m, -EINVAL, "RT_FAULT: %s: this rank is on no logical host: run it by on-hosts",
                    name);
    if (fault->kind == RT_FAULT_SLOW_LINK && fault->flows == 0 && rt_faults_host_ranks() < 0)
        return fail(m, -EINVAL,
                    "RT_FAULT: %s: RT_HOST_RANKS is '%s', expected the ranks on this host, from 1",
                    name, getenv("RT_HOST_RANKS"));
    if (fault->kind == RT_FAULT_SLOW_CODE && !has_phase(&f->program, fault->name))
        return fail(m, -EINVAL, "RT_FAULT: %s: phase=%s: %s has no such phase", name, fault->name,
                    f->program.name);
    return 0;
}

/* What a user would set; what is set already gives way. */
static void set_settings(const struct rt_faults *f)
{
    const struct rt_fault *algorithm = rt_faults_find(f, RT_FAULT_ALGORITHM);
    if (algorithm)
        setenv("RT_ALLREDUCE", algorithm->name, 1);
    if (rt_faults_find(f, RT_FAULT_NO_FUSION))
        setenv("RT_FUSION_THRESHOLD", "0", 1);
}

int rt_faults_begin(struct rt_faults *f, const struct rt_faults_program *program, char *message,
                    size_t message_bytes)
{
    struct message m = {message, message_bytes};
    int error = rt_faults_read(f, message, message_bytes);
    if (error)
        return error;
    f->program = *program;
    find_place(f);
    for (int i = 0; i < f->n && !error; i++)
        error = check(f, &f->fault[i], m);
    if (error)
        return error;
    set_settings(f);
    error = rt_faults_share_core(f);
    if (error)
        return fail(m, error, "RT_FAULT: %s", strerror(-error));
    __atomic_store_n(&of_process, f, __ATOMIC_RELEASE);
    return 0;
}

bool rt_fault_hook_begun(void)
{
    return __atomic_load_n(&of_process, __ATOMIC_ACQUIRE) != NULL;
}

void rt_faults_end(struct rt_faults *f)
{
    __atomic_store_n(&of_process, NULL, __ATOMIC_RELEASE);
    rt_faults_leave_core();
    f->n = 0;
}
