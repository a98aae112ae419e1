/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-phase.h"

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

void rt_phase_negotiate(struct rt_phases *p, const struct rt_tensor *tensor)
{
    if (!domain)
        return;
    char title[RT_TITLE_MAX];
    p->category = rt_nvtx_category(domain, rt_tensor_title(tensor, title));
    p->whole = rt_nvtx_start(domain, rt_timeline_negotiation(tensor), p->category);
}

void rt_phase_agreed(struct rt_phases *p, const struct rt_tensor *tensor)
{
    const char *operation = rt_timeline_operation(tensor);
    rt_nvtx_end(domain, p->whole);
    p->whole = rt_nvtx_start(domain, operation, p->category);
    p->timeline = rt_timeline_begin(tensor, operation);
    rt_phase_activity(p, "QUEUE");
}

void rt_phase_activity(struct rt_phases *p, const char *activity)
{
    rt_nvtx_end(domain, p->activity);
    p->activity = activity ? rt_nvtx_start(domain, activity, p->category) : 0;
    rt_timeline_activity(p->timeline, activity);
}

void rt_phase_done(struct rt_phases *p)
{
    rt_phase_activity(p, 0);
    rt_nvtx_end(domain, p->whole);
    p->whole = 0;
    rt_timeline_end(p->timeline);
    p->timeline = NULL;
}
