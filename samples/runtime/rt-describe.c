/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool gives(const uint64_t *dimensions, unsigned n, uint64_t count)
{
    uint64_t product = 1;
    for (unsigned i = 0; i < n; i++)
        if (__builtin_mul_overflow(product, dimensions[i], &product))
            return false; /* even where a zero follows: nobody means that */
    return product == count;
}

int rt_describe_shape(struct rt_tensor *tensor, const struct rt_options *options, uint64_t rows)
{
    const unsigned n = options ? options->dimensions : 0;
    const unsigned implied = tensor->row_count > 0 ? 2 : 1; /* dimensions of the counts alone */
    if (n == 0)
        return 0;
    const uint64_t *d = options->shape;
    if (n > RT_DIMENSIONS_MAX || !d)
        return -EINVAL;
    if (tensor->row_count > 0 ? d[0] != rows || !gives(d + 1, n - 1, tensor->row_count)
                              : !gives(d, n, tensor->count))
        return -EINVAL;
    size_t used = 0;
    for (unsigned i = 0; i < n && n != implied; i++) {
        const char before = i == 0 ? '[' : ',';
        const char *after = i + 1 == n ? "]" : "";
        char *at = tensor->shape + used;
        const size_t room = sizeof tensor->shape - used;
        used +=
            (size_t)(i == 0 && rt_rows_may_differ(tensor->kind)
                         ? snprintf(at, room, "[*%s", after)
                         : snprintf(at, room, "%c%llu%s", before, (unsigned long long)d[i], after));
    }
    return 0;
}

/* Those from i on that follow one another: where they end. */
static int run_end(const int *ranks, int n, int i)
{
    while (i + 1 < n && ranks[i + 1] == ranks[i] + 1)
        i++;
    return i;
}

void rt_describe_ranks(const int *ranks, int n, char *ret, size_t bytes)
{
    enum { TAIL = 32 };
    uint64_t hash = 14695981039346656037u; /* FNV-1a's */
    size_t used = (size_t)snprintf(ret, bytes, n == 0 ? "no ranks" : n == 1 ? "rank " : "ranks ");
    bool whole = true;
    for (int i = 0, end; i < n; i = end + 1) {
        char text[40];
        end = run_end(ranks, n, i);
        int length = snprintf(text, sizeof text, end > i ? "%s%d-%d" : "%s%d", i ? "," : "",
                              ranks[i], ranks[end]);
        hash =
            ((hash ^ (uint32_t)ranks[i]) * 1099511628211u ^ (uint32_t)ranks[end]) * 1099511628211u;
        whole = whole && used + (size_t)length + TAIL < bytes;
        if (whole)
            memcpy(ret + used, text, (size_t)length + 1);
        used += whole ? (size_t)length : 0;
    }
    if (!whole)
        snprintf(ret + used, TAIL, "... (%016llx)", (unsigned long long)hash);
}

void rt_describe_group(struct rt_tensor *tensor, const struct rt_member *members, unsigned n)
{
    enum { TAIL = 32 };
    uint64_t hash = 14695981039346656037u; /* FNV-1a's */
    size_t used = 0;
    bool whole = true;
    for (unsigned i = 0; i < n; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "%s[%llu]", i ? "+" : "",
                              (unsigned long long)members[i].count);
        hash = (hash ^ members[i].count) * 1099511628211u;
        whole = whole && used + (size_t)length < sizeof tensor->shape - TAIL;
        if (whole)
            memcpy(tensor->shape + used, text, (size_t)length + 1);
        used += whole ? (size_t)length : 0;
    }
    if (!whole)
        snprintf(tensor->shape + used, TAIL, "... (%016llx)", (unsigned long long)hash);
}
