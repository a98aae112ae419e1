/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"

#include <string.h>
#include <sys/mman.h>

#include "profiler-abi.h"

#define STEPS   8192u
#define SUMS    4096u
#define IS_STEP ((uint64_t)1 << 63) /* no execution's handle gets that far */

struct step {
    uint64_t handle; /* atomic; 0 free, or while it is being filled */
    uint32_t sums;
    int32_t state; /* NCCL's, -1 none yet; NET of a network event */
    uint64_t since_ns, bytes;
};
#define NET -2

struct sums {
    uint32_t handle; /* atomic */
    struct rs_proxy_sums sum;
};

static struct pools {
    struct step steps[STEPS];
    struct sums sums[SUMS];
} * pools;                         /* atomic */
static uint64_t next_step = STEPS; /* atomic */
static uint32_t next_sums = SUMS;  /* atomic */

bool rs_proxy_init(void)
{
    struct pools *none = NULL;
    if (__atomic_load_n(&pools, __ATOMIC_ACQUIRE))
        return true;
    void *p = mmap(NULL, sizeof *pools, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (!__atomic_compare_exchange_n(&pools, &none, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        munmap(p, sizeof *pools);
    return true;
}

/* ---- sums ---- */

uint32_t rs_proxy_sums_new(void)
{
    struct pools *p = __atomic_load_n(&pools, __ATOMIC_ACQUIRE);
    if (!p)
        return 0;
    uint32_t handle = __atomic_fetch_add(&next_sums, 1, __ATOMIC_RELAXED);
    if (handle < SUMS) /* it has come round */
        handle = __atomic_add_fetch(&next_sums, SUMS, __ATOMIC_RELAXED);
    struct sums *s = &p->sums[handle % SUMS];
    __atomic_store_n(&s->handle, 0, __ATOMIC_RELEASE);
    memset(&s->sum, 0, sizeof s->sum);
    __atomic_store_n(&s->handle, handle, __ATOMIC_RELEASE);
    return handle;
}

static struct rs_proxy_sums *find_sums(uint32_t handle)
{
    struct pools *p = __atomic_load_n(&pools, __ATOMIC_ACQUIRE);
    struct sums *s = p && handle ? &p->sums[handle % SUMS] : NULL;
    return s && __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE) == handle ? &s->sum : NULL;
}

bool rs_proxy_sums_get(uint32_t handle, struct rs_proxy_sums *ret)
{
    const struct rs_proxy_sums *s = find_sums(handle);
    if (s)
        *ret = *s;
    return s && find_sums(handle) == s;
}

static void add(uint64_t *to, uint64_t what)
{
    __atomic_fetch_add(to, what, __ATOMIC_RELAXED);
}

/* ---- steps and network events ---- */

static uint64_t begin(uint32_t sums, int32_t state, uint64_t bytes)
{
    struct pools *p = __atomic_load_n(&pools, __ATOMIC_ACQUIRE);
    if (!p || !sums)
        return 0;
    uint64_t handle = IS_STEP | __atomic_fetch_add(&next_step, 1, __ATOMIC_RELAXED);
    struct step *s = &p->steps[handle % STEPS];
    __atomic_store_n(&s->handle, 0, __ATOMIC_RELEASE);
    s->sums = sums;
    s->state = state;
    s->since_ns = rs_tick_monotonic();
    s->bytes = bytes;
    __atomic_store_n(&s->handle, handle, __ATOMIC_RELEASE);
    return handle;
}

static struct step *find_step(uint64_t handle)
{
    struct pools *p = __atomic_load_n(&pools, __ATOMIC_ACQUIRE);
    struct step *s = p && (handle & IS_STEP) ? &p->steps[handle % STEPS] : NULL;
    return s && __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE) == handle ? s : NULL;
}

uint64_t rs_proxy_step(uint32_t sums)
{
    return begin(sums, -1, 0);
}

uint64_t rs_proxy_net(uint64_t step, uint64_t bytes)
{
    const struct step *s = find_step(step);
    return s && s->state != NET ? begin(s->sums, NET, bytes) : 0;
}

static uint64_t *wait_of(struct rs_proxy_sums *sum, int state)
{
    switch (state) {
    case RS_PROFILE_STEP_SEND_GPU_WAIT:
    case RS_PROFILE_STEP_RECV_GPU_WAIT:
        return &sum->gpu_wait_ns;
    case RS_PROFILE_STEP_SEND_PEER_WAIT:
        return &sum->peer_wait_ns;
    case RS_PROFILE_STEP_SEND_WAIT:
    case RS_PROFILE_STEP_RECV_WAIT:
    case RS_PROFILE_STEP_RECV_FLUSH_WAIT:
        return &sum->net_wait_ns;
    default:
        return NULL;
    }
}

static void leave_state(struct step *s, struct rs_proxy_sums *sum, uint64_t now_ns)
{
    uint64_t *wait = wait_of(sum, s->state);
    if (wait && now_ns > s->since_ns)
        add(wait, now_ns - s->since_ns);
    s->since_ns = now_ns;
}

void rs_proxy_state(uint64_t step, int state, uint64_t bytes)
{
    struct step *s = find_step(step);
    struct rs_proxy_sums *sum = s && s->state != NET ? find_sums(s->sums) : NULL;
    if (!sum)
        return;
    leave_state(s, sum, rs_tick_monotonic());
    s->state = state;
    s->bytes = bytes > s->bytes ? bytes : s->bytes;
}

bool rs_proxy_stop(uint64_t handle)
{
    if (!(handle & IS_STEP))
        return false;
    struct step *s = find_step(handle);
    struct rs_proxy_sums *sum = s ? find_sums(s->sums) : NULL;
    uint64_t now_ns = rs_tick_monotonic();
    if (sum && s->state == NET) {
        add(&sum->net_events, 1);
        add(&sum->net_bytes, s->bytes);
        add(&sum->net_ns, now_ns > s->since_ns ? now_ns - s->since_ns : 0);
    } else if (sum) {
        leave_state(s, sum, now_ns);
        add(&sum->steps, 1);
        add(&sum->bytes, s->bytes);
    }
    if (s)
        __atomic_store_n(&s->handle, 0, __ATOMIC_RELEASE);
    return true;
}

/* ---- the record ---- */

unsigned rs_proxy_slots(const struct rs_proxy_sums *sums)
{
    if (sums->net_events)
        return RS_PROXY_SLOTS_MAX;
    return sums->steps ? RS_PROXY_SLOTS_MAX - 1 : 0;
}

#define FIELDS 8

/* The same for the life of the process. */
static uint32_t name_of(unsigned field)
{
    static const char *const names[FIELDS] = {"proxy steps",
                                              "proxy bytes",
                                              "waited for the GPU (ns)",
                                              "waited for the peer (ns)",
                                              "waited for the network (ns)",
                                              "network events",
                                              "network bytes",
                                              "network (ns)"};
    static uint32_t ids[FIELDS]; /* atomic */
    uint32_t id = __atomic_load_n(&ids[field], __ATOMIC_RELAXED);
    if (id)
        return id;
    id = rs_core->string(names[field], strlen(names[field]));
    __atomic_store_n(&ids[field], id, __ATOMIC_RELAXED);
    return id;
}

void rs_proxy_put(struct rs_thread *t, unsigned at, const struct rs_proxy_sums *sums)
{
    const uint64_t values[FIELDS] = {sums->steps,        sums->bytes,       sums->gpu_wait_ns,
                                     sums->peer_wait_ns, sums->net_wait_ns, sums->net_events,
                                     sums->net_bytes,    sums->net_ns};
    unsigned fields = sums->net_events ? FIELDS : 5;
    for (unsigned i = 0; i < fields; i++) {
        struct rs_ext_fields *x = rs_slot(t, at + i / RS_EXT_FIELDS_MAX);
        unsigned k = i % RS_EXT_FIELDS_MAX;
        if (k == 0)
            *x = (struct rs_ext_fields){.op = RS_EXT_FIELDS};
        x->field[k].value = values[i];
        x->field[k].name = name_of(i);
        x->type[k] = 1;
        x->n++;
    }
}
