/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <string.h>

static const gchar *const kinds[RS_KIND_COUNT] = {
    [RS_KIND_CALL] = "call", [RS_KIND_DEVICE] = "device", [RS_KIND_RANGE] = "range",
    [RS_KIND_SPAN] = "span", [RS_KIND_MARK] = "mark",     [RS_KIND_COUNTER] = "counter",
    [RS_KIND_HOLE] = "lost", [RS_KIND_IO] = "io",
};

static const gchar *const apis[RS_API_COUNT] = {
    [RS_API_NONE] = "none", [RS_API_MPI] = "MPI",   [RS_API_NCCL] = "NCCL", [RS_API_NVTX] = "NVTX",
    [RS_API_CUDA] = "CUDA", [RS_API_GLOO] = "Gloo", [RS_API_IO] = "I/O",
};

const gchar *rs_kind_name(guint8 kind)
{
    return kinds[kind];
}

gint rs_kind_of_name(const gchar *name)
{
    for (gint i = 0; i < RS_KIND_COUNT; i++)
        if (strcmp(kinds[i], name) == 0)
            return i;
    return -1;
}

const gchar *rs_api_name(guint8 api)
{
    return apis[api];
}
