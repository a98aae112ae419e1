/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of rows that don't follow each other. */
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

struct rows {
    char *dst;
    const char *src; /* NULL: fill with `value` */
    size_t dpitch, spitch, width, height;
    int value;
};

static void do_rows(void *argument)
{
    const struct rows *r = argument;
    for (size_t y = 0; y < r->height; y++)
        if (r->src)
            memmove(r->dst + y * r->dpitch, r->src + y * r->spitch, r->width);
        else
            memset(r->dst + y * r->dpitch, r->value, r->width);
}

static cudaError_t check(const struct rows *r, bool copies, enum cudaMemcpyKind kind)
{
    bool some = r->width > 0 && r->height > 0;
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (r->width > r->dpitch || (copies && r->width > r->spitch))
        return cudaErrorInvalidPitchValue;
    return some && (!r->dst || (copies && !r->src)) ? cudaErrorInvalidValue : cudaSuccess;
}

/* At once, behind stream 0. */
static cudaError_t do_now(struct rows rows, cudaError_t error)
{
    if (error == cudaSuccess)
        error = cudart_finish_legacy();
    if (error == cudaSuccess)
        error = cudart_unsafe();
    if (error == cudaSuccess)
        do_rows(&rows);
    return cudart_result(error);
}

static cudaError_t put(struct rows rows, cudaError_t error, cudaStream_t stream)
{
    struct hostcuda_work work = {
        .run = do_rows,
        .release = free,
        .type = rows.src ? cudaGraphNodeTypeMemcpy : cudaGraphNodeTypeMemset,
    };
    if (error != cudaSuccess || rows.width == 0 || rows.height == 0)
        return cudart_result(error);
    struct rows *copy = malloc(sizeof *copy);
    if (!copy)
        return cudart_result(cudaErrorMemoryAllocation);
    *copy = rows;
    error = hostcuda_launch(stream, &work, copy);
    if (error != cudaSuccess)
        free(copy);
    return error;
}

CUDART_EXPORT cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
                                       size_t width, size_t height, enum cudaMemcpyKind kind)
{
    struct rows rows = {dst, src, dpitch, spitch, width, height, 0};
    return do_now(rows, check(&rows, true, kind));
}

CUDART_EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src,
                                            size_t spitch, size_t width, size_t height,
                                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct rows rows = {dst, src, dpitch, spitch, width, height, 0};
    return put(rows, check(&rows, true, kind), stream);
}

CUDART_EXPORT cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
                                       size_t height)
{
    struct rows rows = {devPtr, NULL, pitch, 0, width, height, value};
    return do_now(rows, check(&rows, false, cudaMemcpyDefault));
}

CUDART_EXPORT cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width,
                                            size_t height, cudaStream_t stream)
{
    struct rows rows = {devPtr, NULL, pitch, 0, width, height, value};
    return put(rows, check(&rows, false, cudaMemcpyDefault), stream);
}
