/* SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt-convert.h"
#include "rt-describe.h"
#include "rt-fusion.h"
#include "rt-index.h"
#include "rt-runtime.h"
#include "rt-wire.h"

static int take_options(struct rt_operation *o, const struct rt_options *options)
{
    struct rt_tensor *t = &o->tensor;
    if (!options)
        return 0;
    t->set = options->set;
    t->priority = options->priority;
    if ((unsigned)options->compression >= RT_COMPRESSION_COUNT)
        return rt_fail(-EINVAL, "tensor %s: unknown compression %d", t->name,
                       (int)options->compression);
    if (t->members > 0 && options->dimensions > 0)
        return rt_fail(-EINVAL, "tensor %s: a group has no shape", t->name);
    if (rt_describe_shape(t, options, rt_rows_may_differ(t->kind) ? o->rows : t->count))
        return rt_fail(
            -EINVAL, "tensor %s: its shape has more than %d dimensions, or doesn't give its count",
            t->name, RT_DIMENSIONS_MAX);
    return 0;
}

static int add_to_table(struct rt_operation *o)
{
    rt_phase_negotiate(&o->phases, &o->tensor);
    int handle = rt_table_add(rt_self.table, o);
    if (handle >= 0)
        return handle;
    rt_phase_done(&o->phases);
    char title[RT_TITLE_MAX];
    const char *name = rt_tensor_title(&o->tensor, title);
    rt_fail(handle,
            handle == -EEXIST ? "tensor %s: not done since it was handed over" : "tensor %s", name);
    char *broken = rt_table_dup_broken_text(rt_self.table);
    if (broken)
        rt_fail(handle, "tensor %s: %s", name, broken);
    free(broken);
    if (handle == -ESHUTDOWN)
        rt_fail(handle, "tensor %s: the runtime has ended", name);
    if (handle == -ENOMEM)
        rt_fail(handle, "tensor %s: no memory, or too many handles that nobody has waited for",
                name);
    if (handle == -EBUSY)
        rt_fail(handle, "tensor %s: this rank has joined, and not all others have", name);
    return handle;
}

/* Takes the operation, which may be NULL. */
int rt_hand_over(struct rt_operation *o, const struct rt_options *options)
{
    if (!o)
        return rt_fail(-ENOMEM, "no memory");
    int handle = take_options(o, options);
    if (handle == 0)
        handle = add_to_table(o);
    if (handle < 0)
        rt_operation_free(o);
    return handle;
}

/* ---- the calls ---- */

static int check(const char *name, uint64_t count, enum rt_type type)
{
    if (!name)
        return rt_fail(-EINVAL, "a tensor without a name");
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "tensor %s: the runtime is not running", name);
    if (strlen(name) > RT_NAME_MAX || strncmp(name, RT_RESERVED, strlen(RT_RESERVED)) == 0 ||
        !*name)
        return rt_fail(-EINVAL,
                       "tensor '%.40s': a name has 1 to %d bytes and doesn't begin with %s", name,
                       RT_NAME_MAX, RT_RESERVED);
    if ((unsigned)type >= RT_TYPE_COUNT)
        return rt_fail(-EINVAL, "tensor %s: unknown type %d", name, (int)type);
    if (count > UINT64_MAX / 64)
        return rt_fail(-EINVAL, "tensor %s: %llu elements", name, (unsigned long long)count);
    return 0;
}

static int check_in_set(const char *name, uint64_t count, enum rt_type type,
                        const struct rt_options *options, struct rt_set_view *ret)
{
    int error = check(name, count, type);
    return error ? error : rt_look_at_set(name, options ? options->set : RT_GLOBAL_SET, ret);
}

/* Where there is nothing to read or write none is needed. */
static int check_buffer(const char *name, const void *buffer, uint64_t count)
{
    return buffer || count == 0 ? 0
                                : rt_fail(-EINVAL, "tensor %s: no buffer (NULL) for %llu elements",
                                          name, (unsigned long long)count);
}

static int check_parts(const char *name, const struct rt_parts *ret)
{
    return ret ? 0 : rt_fail(-EINVAL, "tensor %s: nowhere to return its parts (NULL)", name);
}

static int check_reduction(const char *name, enum rt_kind kind, enum rt_type type, enum rt_op op)
{
    if (op == RT_ADASUM && (kind != RT_ALLREDUCE || !rt_type_is_float(type)))
        return rt_fail(-EINVAL, "tensor %s: adasum is for allreduces of floats, not for %s of %s",
                       name, rt_kind_name(kind), rt_type_name(type));
    return (unsigned)op <= RT_ADASUM
               ? 0
               : rt_fail(-EINVAL, "tensor %s: unknown reduction %d", name, (int)op);
}

static int check_rows(const char *name, uint64_t rows, uint64_t row_count)
{
    if (row_count == 0)
        return rt_fail(-EINVAL, "tensor %s: rows of no elements", name);
    if (row_count > UINT64_MAX / 64 || rows > UINT64_MAX / 64 / row_count)
        return rt_fail(-EINVAL, "tensor %s: %llu rows of %llu elements", name,
                       (unsigned long long)rows, (unsigned long long)row_count);
    return 0;
}

/* As a tensor has it: 0 for none. */
static uint8_t compression_of(enum rt_type type, const struct rt_options *options)
{
    enum rt_compression c = options ? options->compression : RT_COMPRESSION_DEFAULT;
    if (c == RT_COMPRESSION_DEFAULT)
        c = rt_self.compression;
    return (type == RT_FLOAT32 || type == RT_FLOAT64) && c != RT_COMPRESSION_NONE ? (uint8_t)c : 0;
}

static struct rt_operation *new_reduction(enum rt_kind kind, const char *name, enum rt_type type,
                                          enum rt_op op, double prescale, double postscale,
                                          const struct rt_options *options)
{
    struct rt_operation *o = rt_operation_new(kind, name);
    if (o) {
        o->tensor.type = (uint8_t)type;
        o->tensor.op = (uint8_t)op;
        o->tensor.prescale = prescale;
        o->tensor.postscale = postscale;
        o->tensor.compression = compression_of(type, options);
    }
    return o;
}

int rt_allreduce_async(const char *name, const void *in, void *out, uint64_t count,
                       enum rt_type type, enum rt_op op, double prescale, double postscale,
                       const struct rt_options *options)
{
    struct rt_set_view set;
    int error = check_in_set(name, count, type, options, &set);
    if (!error)
        error = check_reduction(name, RT_ALLREDUCE, type, op);
    if (!error)
        error = check_buffer(name, in, count);
    if (!error)
        error = check_buffer(name, out, count);
    if (error)
        return error;
    struct rt_operation *o =
        new_reduction(RT_ALLREDUCE, name, type, op, prescale, postscale, options);
    if (o) {
        o->tensor.count = count;
        o->in = in;
        o->out = out;
    }
    return rt_hand_over(o, options);
}

static int fill_group(struct rt_operation *o, const struct rt_group_member *members, unsigned n)
{
    uint64_t bytes = 0, count = 0;
    o->members = malloc(n * sizeof *o->members);
    if (!o->members)
        return rt_fail(-ENOMEM, "no memory");
    for (unsigned i = 0; i < n; i++) {
        count += members[i].count; /* no overflow: each, and the sum before, was small enough */
        int error = check(o->tensor.name, members[i].count, o->tensor.type);
        if (!error)
            error = check(o->tensor.name, count, o->tensor.type);
        if (!error)
            error = check_buffer(o->tensor.name, members[i].in, members[i].count);
        if (!error)
            error = check_buffer(o->tensor.name, members[i].out, members[i].count);
        if (error)
            return error;
        o->members[i] = (struct rt_member){members[i].in, members[i].out, members[i].count};
        o->tensor.count = members[i].count;
        bytes += rt_fusion_bytes(&o->tensor);
    }
    o->tensor.members = n;
    o->tensor.count = bytes / rt_type_bytes(rt_wire_type(&o->tensor));
    rt_describe_group(&o->tensor, o->members, n);
    return 0;
}

int rt_grouped_allreduce_async(const char *name, const struct rt_group_member *members, unsigned n,
                               enum rt_type type, enum rt_op op, double prescale, double postscale,
                               const struct rt_options *options)
{
    struct rt_set_view set;
    int error = check_in_set(name, 0, type, options, &set);
    if (!error)
        error = check_reduction(name, RT_ALLREDUCE, type, op);
    if (!error && (n == 0 || !members))
        error = rt_fail(-EINVAL, "group %s: no tensors", name);
    if (error)
        return error;
    struct rt_operation *o =
        new_reduction(RT_ALLREDUCE, name, type, op, prescale, postscale, options);
    error = o ? fill_group(o, members, n) : 0;
    if (error) {
        rt_operation_free(o);
        return error;
    }
    return rt_hand_over(o, options);
}

int rt_reducescatter_async(const char *name, const void *in, void *out, uint64_t rows,
                           uint64_t row_count, enum rt_type type, enum rt_op op, double prescale,
                           double postscale, const struct rt_options *options)
{
    struct rt_set_view set;
    int error = check_in_set(name, rows, type, options, &set);
    if (!error)
        error = check_reduction(name, RT_REDUCESCATTER, type, op);
    if (!error)
        error = check_rows(name, rows, row_count);
    if (!error)
        error = check_buffer(name, in, rows * row_count);
    if (!error)
        error = check_buffer(name, out, rt_part_count(rows, set.size, set.rank) * row_count);
    if (error)
        return error;
    struct rt_operation *o =
        new_reduction(RT_REDUCESCATTER, name, type, op, prescale, postscale, options);
    if (o) {
        o->tensor.count = rows;
        o->tensor.row_count = row_count;
        o->in = in;
        o->out = out;
    }
    return rt_hand_over(o, options);
}

uint64_t rt_rows_of(uint64_t rows, int rank)
{
    return rt_self.worker && rank >= 0 && rank < rt_self.topology.size
               ? rt_part_count(rows, rt_self.topology.size, rank)
               : 0;
}

static struct rt_operation *new_gathering(enum rt_kind kind, const char *name, const void *in,
                                          uint64_t row_count, enum rt_type type,
                                          struct rt_parts *ret)
{
    struct rt_operation *o = rt_operation_new(kind, name);
    if (o) {
        o->tensor.type = (uint8_t)type;
        o->tensor.row_count = row_count;
        o->in = in;
        o->parts = ret;
    }
    return o;
}

int rt_allgather_async(const char *name, const void *in, uint64_t rows, uint64_t row_count,
                       enum rt_type type, struct rt_parts *ret, const struct rt_options *options)
{
    struct rt_set_view set;
    int error = check_in_set(name, rows, type, options, &set);
    if (!error)
        error = check_rows(name, rows, row_count);
    if (!error)
        error = check_buffer(name, in, rows * row_count);
    if (!error)
        error = check_parts(name, ret);
    if (error)
        return error;
    struct rt_operation *o = new_gathering(RT_ALLGATHER, name, in, row_count, type, ret);
    if (o)
        o->rows = rows;
    return rt_hand_over(o, options);
}

int rt_alltoall_async(const char *name, const void *in, const uint64_t *splits, uint64_t row_count,
                      enum rt_type type, struct rt_parts *ret, const struct rt_options *options)
{
    uint64_t rows = 0;
    struct rt_set_view set = {0};
    int error = check_in_set(name, 0, type, options, &set);
    if (!error)
        error = check_parts(name, ret);
    if (!error && !splits)
        error = rt_fail(-EINVAL, "tensor %s: no splits (NULL)", name);
    for (int r = 0; !error && r < set.size; r++) {
        rows += splits[r]; /* no overflow: each, and the sum before, was small enough */
        error = check_rows(name, splits[r], row_count);
        if (!error)
            error = check_rows(name, rows, row_count);
    }
    if (!error)
        error = check_buffer(name, in, rows * row_count);
    if (error)
        return error;
    const size_t bytes = (size_t)set.size * sizeof *splits;
    struct rt_operation *o = new_gathering(RT_ALLTOALL, name, in, row_count, type, ret);
    if (o)
        o->splits = malloc(bytes);
    if (!o || !o->splits) {
        rt_operation_free(o);
        return rt_fail(-ENOMEM, "no memory");
    }
    memcpy(o->splits, splits, bytes);
    o->rows = rows;
    return rt_hand_over(o, options);
}

int rt_join_async(int *ret_last, const struct rt_options *options)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "join: the runtime is not running");
    if (!ret_last)
        return rt_fail(-EINVAL, "join: nowhere to return who came last (NULL)");
    struct rt_set_view set;
    int error = rt_look_at_set(RT_JOIN_NAME, options ? options->set : RT_GLOBAL_SET, &set);
    if (error)
        return error;
    struct rt_operation *o = rt_operation_new(RT_JOIN, RT_JOIN_NAME);
    if (o)
        o->out = ret_last;
    return rt_hand_over(o, options);
}

int rt_broadcast_async(const char *name, void *data, uint64_t count, enum rt_type type, int root,
                       const struct rt_options *options)
{
    struct rt_set_view set;
    int error = check_in_set(name, count, type, options, &set);
    if (!error)
        error = check_buffer(name, data, count);
    if (error)
        return error;
    if (root < 0 || root >= rt_self.topology.size)
        return rt_fail(-EINVAL, "tensor %s: root %d, of %d ranks", name, root,
                       rt_self.topology.size);
    const int id = options ? options->set : RT_GLOBAL_SET;
    if (rt_sets_place(rt_worker_sets(rt_self.worker), id, root) < 0)
        return rt_fail(-EINVAL, "tensor %s: its root, rank %d, is not in process set %d", name,
                       root, id);
    struct rt_operation *o = rt_operation_new(RT_BROADCAST, name);
    if (o) {
        o->tensor.type = (uint8_t)type;
        o->tensor.count = count;
        o->tensor.root = root;
        o->in = o->out = data;
    }
    return rt_hand_over(o, options);
}

int rt_barrier_async(const struct rt_options *options)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "barrier: the runtime is not running");
    struct rt_set_view set;
    int error = rt_look_at_set(RT_RESERVED "barrier", options ? options->set : RT_GLOBAL_SET, &set);
    return error ? error
                 : rt_hand_over(rt_operation_new(RT_BARRIER, RT_RESERVED "barrier"), options);
}

/* The second of a name may be handed over on ranks where the first is done already, which would
 * then wait for the others. */
static int check_names_differ(const struct rt_parameter *parameters, unsigned n)
{
    struct rt_index names = {0};
    int error = 0;
    for (unsigned i = 0; i < n && !error; i++) {
        const char *name = parameters[i].name;
        if (name && rt_index_find(&names, 0, name))
            error =
                rt_fail(-EEXIST, "rt_broadcast_parameters: two are named %.*s", RT_NAME_MAX, name);
        else if (name && rt_index_add(&names, 0, name, (void *)&parameters[i]))
            error = rt_fail(-ENOMEM, "rt_broadcast_parameters: no memory");
    }
    rt_index_release(&names);
    return error;
}

int rt_broadcast_parameters(const struct rt_parameter *parameters, unsigned n, int root,
                            const struct rt_options *options)
{
    if (n > 0 && !parameters)
        return rt_fail(-EINVAL, "rt_broadcast_parameters: no parameters (NULL)");
    int error = check_names_differ(parameters, n);
    if (error)
        return error;
    int *handles = malloc(((size_t)n + 1) * sizeof *handles);
    if (!handles)
        return rt_fail(-ENOMEM, "rt_broadcast_parameters: no memory");
    unsigned begun = 0;
    while (begun < n && !error) {
        const struct rt_parameter *p = &parameters[begun];
        int handle = rt_broadcast_async(p->name, p->data, p->count, p->type, root, options);
        if (handle < 0)
            error = handle;
        else
            handles[begun++] = handle;
    }
    char *why = error ? strdup(rt_error()) : NULL; /* of the first that failed */
    for (unsigned i = 0; i < begun; i++) {
        int result = rt_wait(handles[i]);
        if (result < 0 && !error)
            why = strdup(rt_error());
        error = error ? error : result;
    }
    if (error)
        rt_fail(error, "%s", why ? why : strerror(-error));
    free(why);
    free(handles);
    return error;
}
