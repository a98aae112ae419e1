/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, and what a program registers of it: here all of it can be used by all, in any case. */
#include <stdlib.h>

#include "hostcuda.h"
#include "internal.h"
#include "rt-alloc.h"

/* The stand-in runtime's own; a real CUDA runtime has them not. */
#pragma weak hostcuda_memory_add
#pragma weak hostcuda_memory_find
#pragma weak hostcuda_memory_remove

#define WINDOW_FLAGS NCCL_WIN_COLL_SYMMETRIC

struct ncclWindow_vidmem {
    ncclWindow_t next; /* of the communicator's */
    void *buffer;
    size_t bytes;
};

/* The ranks of a host reach it, and reduce there: rt-alloc.h. */
ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
    void *p = ptr && size > 0 ? rt_alloc(size) : NULL;
    bool ok = ptr && (size == 0 || p);
    if (p && hostcuda_memory_add && hostcuda_memory_add(p, size) != cudaSuccess)
        ok = false;
    if (!ok) {
        rt_free(p);
        return hostnccl_fail(ncclUnhandledCudaError, "ncclMemAlloc: %zu bytes", size);
    }
    *ptr = p;
    return ncclSuccess;
}
HOSTNCCL_WEAK(MemAlloc);

/* Queued work may still use it. */
ncclResult_t pncclMemFree(void *ptr)
{
    if (ptr && hostcuda_memory_remove && !hostcuda_memory_remove(ptr))
        return hostnccl_fail(ncclUnhandledCudaError,
                             "ncclMemFree: %p was not allocated by ncclMemAlloc", ptr);
    cudaError_t error = ptr ? cudaDeviceSynchronize() : cudaSuccess;
    rt_free(ptr);
    return error == cudaSuccess ? ncclSuccess
                                : hostnccl_fail(ncclUnhandledCudaError, "ncclMemFree");
}
HOSTNCCL_WEAK(MemFree);

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result == ncclSuccess && handle)
        *handle = buff;
    return handle ? result : hostnccl_fail(ncclInvalidArgument, "handle is NULL");
}
HOSTNCCL_WEAK(CommRegister);

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return hostnccl_comm_valid(comm);
}
HOSTNCCL_WEAK(CommDeregister);

/* ---- windows ---- */

/* NCCL maps the memory to the other ranks: it must be such as ncclMemAlloc gives. */
static ncclResult_t check_shareable(const void *buffer, size_t bytes)
{
    size_t offset = 0, left = 0;
    if (!hostcuda_memory_find)
        return ncclSuccess;
    if (!hostcuda_memory_find(buffer, &offset, &left))
        return hostnccl_fail(ncclUnhandledCudaError,
                             "ncclCommWindowRegister: %p was not allocated by ncclMemAlloc, so "
                             "other ranks can't map it",
                             buffer);
    if (offset % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || bytes > left)
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclCommWindowRegister: %zu bytes at %zu of an allocation with %zu "
                             "more: a window begins at a multiple of %d, and ends in it",
                             bytes, offset, left, NCCL_WIN_REQUIRED_ALIGNMENT);
    return ncclSuccess;
}

static ncclResult_t add_window(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                               int flags)
{
    ncclResult_t result = hostnccl_comm_check(comm);
    if (result != ncclSuccess)
        return result;
    if (!win || !buff || size == 0 || (flags & ~WINDOW_FLAGS))
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclCommWindowRegister: %zu bytes at %p, flags %d", size, buff,
                             flags);
    result = check_shareable(buff, size);
    if (result != ncclSuccess)
        return result;
    ncclWindow_t made = malloc(sizeof *made);
    if (!made)
        return hostnccl_fail(ncclSystemError, "out of memory");
    pthread_mutex_lock(&comm->lock);
    *made = (struct ncclWindow_vidmem){comm->windows, buff, size};
    comm->windows = made;
    pthread_mutex_unlock(&comm->lock);
    *win = made;
    return ncclSuccess;
}

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                     int winFlags)
{
    return hostnccl_group_note(add_window(comm, buff, size, win, winFlags));
}
HOSTNCCL_WEAK(CommWindowRegister);

static ncclResult_t remove_window(ncclComm_t comm, ncclWindow_t win)
{
    ncclResult_t result = hostnccl_comm_valid(comm);
    if (result != ncclSuccess || !win)
        return result;
    pthread_mutex_lock(&comm->lock);
    ncclWindow_t *at = &comm->windows;
    while (*at && *at != win)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        *at = win->next;
    pthread_mutex_unlock(&comm->lock);
    if (!found)
        return hostnccl_fail(ncclInvalidArgument,
                             "ncclCommWindowDeregister: %p is no window of the communicator",
                             (void *)win);
    free(win);
    return ncclSuccess;
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return hostnccl_group_note(remove_window(comm, win));
}
HOSTNCCL_WEAK(CommWindowDeregister);

void hostnccl_windows_free(ncclComm_t comm)
{
    while (comm->windows) {
        ncclWindow_t next = comm->windows->next;
        free(comm->windows);
        comm->windows = next;
    }
}
