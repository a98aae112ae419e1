/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-phase.h"

#include <stdbool.h>

#include "rt-nvtx.h"

static struct rt_nvtx_domain *domain;

void rt_phases_init(void)
{
    domain = rt_nvtx_domain_new("horovod");
}

void rt_phases_release(void)
{
    rt_nvtx_domain_free(domain);
    domain = 0;
}

/* Horovod calls it an operation of its own. */
static bool is_adasum(const struct rt_tensor *tensor)
{
    return tensor->kind == RT_ALLREDUCE && tensor->op == RT_ADASUM;
}

void rt_phase_negotiate(struct rt_phases *p, const struct rt_tensor *tensor)
{
    static const char *const names[] = {"NEGOTIATE_ALLREDUCE", "NEGOTIATE_BROADCAST",
                                        "NEGOTIATE_BARRIER",   "NEGOTIATE_SHUTDOWN",
                                        "NEGOTIATE_ALLGATHER", "NEGOTIATE_REDUCESCATTER",
                                        "NEGOTIATE_ALLTOALL",  "NEGOTIATE_JOIN"};
    if (!domain)
        return;
    p->category = rt_nvtx_category(domain, tensor->name);
    p->whole = rt_nvtx_start(domain, is_adasum(tensor) ? "NEGOTIATE_ADASUM" : names[tensor->kind],
                             p->category);
}

void rt_phase_agreed(struct rt_phases *p, const struct rt_tensor *tensor)
{
    rt_nvtx_end(domain, p->whole);
    p->whole = rt_nvtx_start(domain, is_adasum(tensor) ? "ADASUM" : rt_kind_name(tensor->kind),
                             p->category);
    rt_phase_activity(p, "QUEUE");
}

void rt_phase_activity(struct rt_phases *p, const char *activity)
{
    rt_nvtx_end(domain, p->activity);
    p->activity = activity ? rt_nvtx_start(domain, activity, p->category) : 0;
}

void rt_phase_done(struct rt_phases *p)
{
    rt_phase_activity(p, 0);
    rt_nvtx_end(domain, p->whole);
    p->whole = 0;
}
