/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-pace.h"

#define AWAKE_NS 50000u /* some sleeps and wake-ups */
#define LOOKS    3u     /* MPICH may need several to see what has come */

#define NAP_NS      20000u
#define NAP_MAX_NS  50000u /* where the cycle is shorter */
#define RUNG_NAP_NS 1000000u
#define RUNG_MAX_NS 128000000u /* rung for all that comes: in case that something is missed */

void rt_pace_init(struct rt_pace *p, uint64_t cycle_ns, bool crowded, bool rung)
{
    *p = (struct rt_pace){.cycle_ns = cycle_ns, .crowded = crowded, .rung = rung};
}

bool rt_pace_may_announce(const struct rt_pace *p, uint64_t now_ns, bool under_way)
{
    return !under_way || now_ns - p->announced_ns >= p->cycle_ns;
}

void rt_pace_announced(struct rt_pace *p, uint64_t now_ns)
{
    p->announced_ns = now_ns;
}

void rt_pace_active(struct rt_pace *p, uint64_t now_ns)
{
    p->awake_ns = now_ns + (p->crowded ? 0 : AWAKE_NS);
    p->looks = 0;
    p->nap_ns = 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_nap_ns(struct rt_pace *p, bool rung)
{
    const uint64_t first = rung ? RUNG_NAP_NS : NAP_NS;
    const uint64_t max = rung ? RUNG_MAX_NS : p->cycle_ns > NAP_MAX_NS ? p->cycle_ns : NAP_MAX_NS;
    p->nap_ns = p->nap_ns < first ? first : least(p->nap_ns * 2, max);
    return p->nap_ns;
}

uint64_t rt_pace_rest_ns(struct rt_pace *p, uint64_t now_ns, struct rt_pace_work work)
{
    if (++p->looks < LOOKS || now_ns < p->awake_ns)
        return 0;
    const uint64_t next_ns = p->announced_ns + p->cycle_ns;
    uint64_t rest_ns = RT_PACE_FOREVER;
    if (work.new_ones)
        rest_ns = work.under_way && next_ns > now_ns ? next_ns - now_ns : 0;
    if (rest_ns > 0 && (work.under_way || work.sending))
        rest_ns = least(rest_ns, next_nap_ns(p, p->rung && !work.sending));
    return rest_ns;
}
