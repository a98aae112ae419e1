/* SPDX-License-Identifier: Apache-2.0 */
#include "run-front.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rt-net.h"
#include "run-front-parts.h"
#include "run-hosts.h"

const char *run_front_host(const struct run_front *f, int host)
{
    return f->o->hosts[host].name;
}

void run_front_tell_all(struct run_front *f, enum run_kind kind, int value, const char *text)
{
    for (int h = 0; h < f->o->host_count; h++)
        if (f->places[h].pid > 0 && !f->places[h].is_gone)
            run_wire_send(&f->places[h].wire, kind, -1, value, text, text ? strlen(text) + 1 : 0);
}

/* ---- begin ---- */

static bool all_places(const struct run_front *f, bool ready)
{
    for (int h = 0; h < f->o->host_count; h++) {
        const struct run_place *p = &f->places[h];
        if (p->pid > 0 && !p->is_gone && !(ready ? p->is_ready : p->is_there))
            return false;
    }
    return true;
}

static void hand_out_jobs(struct run_front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct run_buffer job = {0};
        if (f->places[h].pid <= 0)
            continue;
        run_host_pack(f->o, h, f->job, &job);
        run_wire_send(&f->places[h].wire, RUN_JOB, -1, 0, job.data + job.at, job.bytes);
        run_buffer_clear(&job);
    }
}

/* A host whose ssh is slow takes nothing from RT_START_TIMEOUT. */
static void step(struct run_front *f)
{
    if (f->phase < RUN_RUNNING && f->can_not_start) {
        if (all_places(f, false))
            run_front_close(f);
        return;
    }
    if (f->phase == RUN_CALLING && all_places(f, false)) {
        f->phase = RUN_READYING;
        hand_out_jobs(f);
    }
    if (f->phase == RUN_READYING && all_places(f, true)) {
        f->phase = RUN_RUNNING;
        f->next_ns = UINT64_MAX;
        f->may_feed = true;
        run_front_tell_all(f, RUN_START, f->port, f->address);
    }
}

static void start_places(struct run_front *f)
{
    for (int h = 0; h < f->o->host_count; h++) {
        struct run_place *p = &f->places[h];
        p->host = h;
        if (f->o->hosts[h].ranks == 0)
            continue;
        p->pid = run_host_start(f->o, h, &f->before, &p->wire);
        if (p->pid > 0)
            continue;
        run_output_say(&f->output, "host %s: %s", run_front_host(f, h), strerror(-(int)p->pid));
        f->status = 1;
        run_front_close(f);
        return;
    }
}

/* ---- from begin to end ---- */

enum { POLLED_SIGNALS, POLLED_INPUT, POLLED_OUTPUT, POLLED_PLACES = POLLED_OUTPUT + 2 };

static int timeout_of(const struct run_front *f)
{
    const uint64_t now = rt_now_ns();
    if (f->next_ns == UINT64_MAX)
        return -1;
    return now >= f->next_ns ? 0 : (int)((f->next_ns - now) / 1000000) + 1;
}

static void wait_for_news(struct run_front *f)
{
    struct pollfd *p = f->polled;
    const bool room = run_output_pending(&f->output) < RUN_OUTPUT_MAX;
    int n = POLLED_PLACES;
    p[POLLED_SIGNALS] = (struct pollfd){.fd = f->signals, .events = POLLIN};
    p[POLLED_INPUT] = (struct pollfd){.fd = run_front_takes_input(f) ? 0 : -1, .events = POLLIN};
    run_output_poll(&f->output, p + POLLED_OUTPUT);
    for (int h = 0; h < f->o->host_count; h++) {
        const struct run_place *place = &f->places[h];
        const bool is_there = place->pid > 0 && !place->is_gone;
        p[n++] = (struct pollfd){.fd = is_there && room ? place->wire.in : -1, .events = POLLIN};
        p[n++] = (struct pollfd){.fd = is_there && place->wire.output.bytes ? place->wire.out : -1,
                                 .events = POLLOUT};
    }
    poll(p, (nfds_t)n, timeout_of(f));
}

static bool is_done(const struct run_front *f)
{
    for (int h = 0; h < f->o->host_count; h++)
        if (f->places[h].pid > 0 && !f->places[h].is_gone)
            return false;
    return f->phase == RUN_CLOSING && run_output_pending(&f->output) == 0;
}

static void serve(struct run_front *f)
{
    while (!is_done(f)) {
        wait_for_news(f);
        if (f->polled[POLLED_SIGNALS].revents)
            run_front_take_signals(f);
        if (f->polled[POLLED_INPUT].revents)
            run_front_feed(f);
        for (int h = 0; h < f->o->host_count; h++)
            if (f->polled[POLLED_PLACES + h * 2].revents)
                run_front_hear(f, &f->places[h]);
        step(f);
        if (rt_now_ns() >= f->next_ns)
            run_front_go_further(f);
        for (int h = 0; h < f->o->host_count; h++)
            if (f->places[h].pid > 0)
                run_wire_flush(&f->places[h].wire); /* who is gone is heard of */
        if (run_output_flush(&f->output) == -EPIPE) {
            run_front_fail(f, 128 + SIGPIPE);
            f->next_ns = 0;
        }
        run_front_stop(f);
    }
}

static void name_job(struct run_front *f)
{
    unsigned char bytes[16] = {0};
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        memcpy(bytes, &(uint64_t){rt_now_ns()}, sizeof(uint64_t));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(f->job + i * 2, 3, "%02x", bytes[i]);
}

int run_front(const struct run_options *o)
{
    struct run_front f = {.o = o, .left = o->size};
    f.places = calloc((size_t)o->host_count, sizeof *f.places);
    f.ranks = calloc((size_t)o->size, sizeof *f.ranks);
    f.polled = calloc((size_t)o->host_count * 2 + POLLED_PLACES, sizeof *f.polled);
    f.next_ns = rt_now_ns() + (uint64_t)o->start_s * RUN_SECOND_NS;
    if (!f.places || !f.ranks || !f.polled || run_output_init(&f.output, o->size, o->tags_output) ||
        run_front_watch_signals(&f)) {
        fputs("rt-run: no memory, or no descriptors\n", stderr);
        return 1;
    }
    name_job(&f);
    start_places(&f);
    serve(&f);
    for (int h = 0; h < o->host_count; h++)
        if (f.places[h].pid > 0)
            run_wire_release(&f.places[h].wire);
    run_output_release(&f.output);
    free(f.places);
    free(f.ranks);
    free(f.polled);
    return f.status;
}
