/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-operation.h"

#include <stdio.h>
#include <stdlib.h>

struct rt_operation *rt_operation_new(enum rt_kind kind, const char *name)
{
    struct rt_operation *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->tensor.kind = (uint8_t)kind;
    o->tensor.prescale = o->tensor.postscale = 1;
    snprintf(o->tensor.name, sizeof o->tensor.name, "%s", name);
    return o;
}

void rt_operation_free(struct rt_operation *o)
{
    if (!o)
        return;
    if (o->stand_in) {
        free(o->out);
        if (o->parts)
            rt_parts_clear(o->parts);
        free(o->parts);
    }
    free(o->members);
    free(o->splits);
    free(o->ranks);
    free(o);
}

/* A group's tensors lie in the buffer as one of their whole length would. */
struct rt_operation *rt_operation_stand_in(const struct rt_tensor *tensor, int ranks)
{
    struct rt_operation *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    uint64_t row = tensor->row_count > 0 ? tensor->row_count : 1;
    o->tensor = *tensor;
    o->stand_in = true;
    o->in = o->out = calloc(tensor->count * row + 1, rt_type_bytes(tensor->type));
    o->splits = calloc((size_t)ranks, sizeof *o->splits);
    o->parts = calloc(1, sizeof *o->parts);
    o->members = tensor->members > 0 ? calloc(tensor->members, sizeof *o->members) : NULL;
    if (!o->in || !o->splits || !o->parts || (tensor->members > 0 && !o->members)) {
        rt_operation_free(o);
        return NULL;
    }
    if (tensor->members > 0)
        o->members[0] = (struct rt_member){o->in, o->out, tensor->count};
    return o;
}

void rt_parts_clear(struct rt_parts *parts)
{
    if (!parts)
        return;
    free(parts->data);
    free(parts->rows);
    *parts = (struct rt_parts){0};
}
