/* SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-worker.h"

#define RESERVED "rt." /* names of the runtime's own operations begin so */

static struct {
    struct rt_worker *worker; /* NULL: not running */
    struct rt_table *table;
    struct rt_topology topology;
} self;

static _Thread_local char last_error[4096];

const char *rt_error(void)
{
    return last_error;
}

__attribute__((format(printf, 2, 3))) static int fail(int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return error;
}

int rt_init(void)
{
    struct rt_config config;
    char message[1024];
    if (self.worker)
        return fail(-EALREADY, "rt_init: already running");
    int error = rt_config_read(&config, message, sizeof message);
    if (error)
        return fail(error, "%s", message);
    self.table = rt_table_new();
    if (!self.table)
        return fail(-ENOMEM, "rt_init: no memory");
    rt_phases_init();
    self.worker =
        rt_worker_new(&config, self.table, &self.topology, &error, message, sizeof message);
    if (self.worker)
        return 0;
    rt_phases_release();
    rt_table_free(self.table);
    return fail(error, "rt_init: %s", message);
}

static struct rt_operation *make(enum rt_kind kind, const char *name)
{
    struct rt_operation *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->tensor.kind = kind;
    o->tensor.prescale = o->tensor.postscale = 1;
    snprintf(o->tensor.name, sizeof o->tensor.name, "%s", name);
    return o;
}

/* Takes the operation, which may be NULL. */
static int hand_over(struct rt_operation *o)
{
    if (!o)
        return fail(-ENOMEM, "no memory");
    rt_phase_negotiate(&o->phases, &o->tensor);
    int handle = rt_table_add(self.table, o);
    if (handle >= 0)
        return handle;
    rt_phase_done(&o->phases);
    fail(handle, handle == -EEXIST ? "tensor %s: not done since it was handed over" : "tensor %s",
         o->tensor.name);
    if (handle == -ESHUTDOWN)
        fail(handle, "tensor %s: the runtime has ended", o->tensor.name);
    free(o);
    return handle;
}

int rt_shutdown(void)
{
    if (!self.worker)
        return fail(-ESHUTDOWN, "rt_shutdown: not running");
    int handle = hand_over(make(RT_SHUTDOWN, RESERVED "shutdown"));
    int error = handle < 0 ? handle : rt_wait(handle);
    if (handle == -ENOMEM)
        return error; /* the others don't know: still running */
    rt_worker_join(self.worker);
    rt_phases_release();
    rt_table_free(self.table);
    memset(&self, 0, sizeof self);
    return error;
}

int rt_rank(void)
{
    return self.worker ? self.topology.rank : -ESHUTDOWN;
}
int rt_size(void)
{
    return self.worker ? self.topology.size : -ESHUTDOWN;
}
int rt_local_rank(void)
{
    return self.worker ? self.topology.local_rank : -ESHUTDOWN;
}
int rt_local_size(void)
{
    return self.worker ? self.topology.local_size : -ESHUTDOWN;
}
int rt_cross_rank(void)
{
    return self.worker ? self.topology.cross_rank : -ESHUTDOWN;
}
int rt_cross_size(void)
{
    return self.worker ? self.topology.cross_size : -ESHUTDOWN;
}

static int check(const char *name, uint64_t count, enum rt_type type)
{
    if (!self.worker)
        return fail(-ESHUTDOWN, "tensor %s: the runtime is not running", name);
    if (strlen(name) > RT_NAME_MAX || strncmp(name, RESERVED, strlen(RESERVED)) == 0 || !*name)
        return fail(-EINVAL, "tensor '%.40s': a name has 1 to %d bytes and doesn't begin with %s",
                    name, RT_NAME_MAX, RESERVED);
    if ((unsigned)type >= RT_TYPE_COUNT)
        return fail(-EINVAL, "tensor %s: unknown type %d", name, (int)type);
    if (count > UINT64_MAX / 64)
        return fail(-EINVAL, "tensor %s: %llu elements", name, (unsigned long long)count);
    return 0;
}

int rt_allreduce_async(const char *name, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, double prescale, double postscale)
{
    int error = check(name, count, type);
    if (error)
        return error;
    if ((unsigned)op >= RT_OP_COUNT)
        return fail(-EINVAL, "tensor %s: unknown reduction %d", name, (int)op);
    struct rt_operation *o = make(RT_ALLREDUCE, name);
    if (o) {
        o->tensor.type = (uint8_t)type;
        o->tensor.op = (uint8_t)op;
        o->tensor.count = count;
        o->tensor.prescale = prescale;
        o->tensor.postscale = postscale;
        o->in = in;
        o->out = out;
    }
    return hand_over(o);
}

int rt_broadcast_async(const char *name, void *data, uint64_t count, enum rt_type type, int root)
{
    int error = check(name, count, type);
    if (error)
        return error;
    if (root < 0 || root >= self.topology.size)
        return fail(-EINVAL, "tensor %s: root %d, of %d ranks", name, root, self.topology.size);
    struct rt_operation *o = make(RT_BROADCAST, name);
    if (o) {
        o->tensor.type = (uint8_t)type;
        o->tensor.count = count;
        o->tensor.root = root;
        o->in = o->out = data;
    }
    return hand_over(o);
}

int rt_barrier_async(void)
{
    if (!self.worker)
        return fail(-ESHUTDOWN, "barrier: the runtime is not running");
    return hand_over(make(RT_BARRIER, RESERVED "barrier"));
}

int rt_poll(int handle)
{
    if (!self.worker)
        return fail(-ESHUTDOWN, "rt_poll: the runtime is not running");
    int state = rt_table_poll(self.table, handle);
    return state < 0 ? fail(state, "rt_poll: no handle %d", handle) : state;
}

int rt_wait(int handle)
{
    if (!self.worker)
        return fail(-ESHUTDOWN, "rt_wait: the runtime is not running");
    char *text = NULL;
    int result = rt_table_wait(self.table, handle, &text);
    if (result < 0)
        fail(result, "%s", text ? text : strerror(-result));
    free(text);
    return result;
}

int rt_broadcast_parameters(const struct rt_parameter *parameters, unsigned n, int root)
{
    int *handles = malloc((n + 1) * sizeof *handles);
    if (!handles)
        return fail(-ENOMEM, "rt_broadcast_parameters: no memory");
    int error = 0;
    unsigned begun = 0;
    while (begun < n && !error) {
        const struct rt_parameter *p = &parameters[begun];
        int handle = rt_broadcast_async(p->name, p->data, p->count, p->type, root);
        if (handle < 0)
            error = handle;
        else
            handles[begun++] = handle;
    }
    for (unsigned i = 0; i < begun; i++) {
        int result = rt_wait(handles[i]);
        error = error ? error : result;
    }
    free(handles);
    return error;
}
