/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-wire.h"

#include "rt-convert.h"

enum rt_type rt_wire_type(const struct rt_tensor *tensor)
{
    if (tensor->compression == RT_COMPRESSION_FP16)
        return RT_FLOAT16;
    return tensor->compression == RT_COMPRESSION_BF16 ? RT_BFLOAT16 : (enum rt_type)tensor->type;
}

struct rt_wire rt_wire_of(const struct rt_tensor *tensor, int ranks)
{
    const enum rt_type type = rt_wire_type(tensor);
    struct rt_wire w = {.type = type,
                        .op = (enum rt_op)tensor->op,
                        .own_type = (enum rt_type)tensor->type,
                        .before = tensor->prescale,
                        .after = tensor->postscale,
                        .divisor = 1};
    const int power = rt_average_power(type, ranks);
    if (w.op == RT_AVG && rt_type_is_float(type) && rt_type_bytes(type) <= 2) {
        w.op = RT_SUM;
        w.before /= power;
        w.after *= power;
        if ((ranks & (ranks - 1)) == 0)
            w.after /= ranks; /* loses nothing, and multiplying is quicker */
        else
            w.divisor = ranks;
    }
    return w;
}

bool rt_wire_is_plain(const struct rt_wire *w)
{
    return w->type == w->own_type && w->before == 1;
}

void rt_wire_pack(const struct rt_wire *w, void *to, const void *in, uint64_t count)
{
    if (w->type != w->own_type)
        rt_convert(to, w->type, in, w->own_type, count, w->before, 1);
    else
        rt_scale(to, in, count, w->type, w->before);
}

void rt_wire_unpack(const struct rt_wire *w, void *out, const void *from, uint64_t count)
{
    if (w->type != w->own_type || w->divisor != 1)
        rt_convert(out, w->own_type, from, w->type, count, w->after, w->divisor);
    else
        rt_scale(out, from, count, w->type, w->after);
}
