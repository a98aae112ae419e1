/* SPDX-License-Identifier: Apache-2.0 */
/* Who gives no answer, though its connection is whole. */
#include <stdio.h>
#include <sys/socket.h>

#include "rt-clock.h"
#include "rt-lifeline-parts.h"
#include "rt-process.h"

#define LOOKS    4 /* without an answer, until that is said */
#define LEAST_NS 250000000u
#define MOST_NS  3600000000000u /* as poll takes it */

static uint64_t interval_ns(const struct rt_lifeline *l)
{
    const uint64_t wanted = l->user.warning_ns / LOOKS;
    return wanted < LEAST_NS ? LEAST_NS : wanted > MOST_NS ? MOST_NS : wanted;
}

int rt_lifeline_rest_ms(const struct rt_lifeline *l)
{
    const uint64_t passed = rt_now_ns() - l->looked_ns, interval = interval_ns(l);
    if (l->user.warning_ns == 0 || l->known)
        return -1;
    return passed >= interval ? 0 : (int)((interval - passed) / 1000000) + 1;
}

/* Counted in looks: a stop of this process counts as one at most. */
static int begin_text(const struct rt_lifeline *l, int rank, char *ret, size_t bytes,
                      const char *what)
{
    return snprintf(ret, bytes, "rank %d (%.255s, process %d) %s %.1f s", rank, l->hosts[rank],
                    l->peers[rank].pid, what,
                    (double)(l->peers[rank].silent * interval_ns(l)) * 1e-9);
}

static void say_silent(const struct rt_lifeline *l, int rank)
{
    const struct peer *p = &l->peers[rank];
    const char state = p->start ? rt_process_state(p->pid, p->start) : 0;
    char text[RT_LIFELINE_TEXT_MAX];
    const int n = begin_text(l, rank, text, sizeof text, "has given no answer for");
    if (state == 'T' || state == 't')
        snprintf(text + n, sizeof text - (size_t)n,
                 ": it is stopped, by a signal or a debugger; others wait for it");
    else if (state)
        snprintf(
            text + n, sizeof text - (size_t)n,
            ": its process is in state %c, with no time on a processor, or frozen; others wait "
            "for it",
            state);
    else
        snprintf(text + n, sizeof text - (size_t)n,
                 ": it is stopped, by a signal or a debugger, or without a processor, or its host "
                 "is cut off; others wait for it");
    l->user.warn(l->user.data, text);
}

void rt_lifeline_look(struct rt_lifeline *l)
{
    const char question = RT_QUESTION;
    if (rt_lifeline_rest_ms(l) != 0)
        return;
    l->looked_ns = rt_now_ns();
    for (int r = 0; r < l->size; r++) {
        struct peer *p = &l->peers[r];
        if (p->fd < 0 || p->left)
            continue;
        if (p->asked && ++p->silent % LOOKS == 0)
            say_silent(l, r);
        if (!p->asked)
            send(p->fd, &question, 1, MSG_NOSIGNAL);
        p->asked = true;
    }
}

void rt_lifeline_answered(struct rt_lifeline *l, int rank)
{
    struct peer *p = &l->peers[rank];
    char text[RT_LIFELINE_TEXT_MAX];
    if (p->silent >= LOOKS) {
        begin_text(l, rank, text, sizeof text, "answers again, after");
        l->user.warn(l->user.data, text);
    }
    p->asked = false;
    p->silent = 0;
}
