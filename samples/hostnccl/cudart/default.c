/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that nobody creates: a device's legacy one, and each thread's own. */
#include <string.h>

#include "cudart.h"

static cudaStream_t legacy_streams[CUDART_DEVICES_MAX]; /* atomic; made as they are asked for */
static __thread cudaStream_t per_thread[CUDART_DEVICES_MAX];
static pthread_key_t thread_ends; /* set in a thread that has streams */
static pthread_once_t thread_ends_once = PTHREAD_ONCE_INIT;

void cudart_default_after_fork(void)
{
    for (int i = 0; i < CUDART_DEVICES_MAX; i++)
        legacy_streams[i] = per_thread[i] = NULL;
}

bool cudart_stream_is_default(cudaStream_t handle)
{
    return !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

cudaStream_t cudart_legacy_stream(int device)
{
    return __atomic_load_n(&legacy_streams[device], __ATOMIC_ACQUIRE);
}

bool cudart_stream_is_legacy(cudaStream_t s)
{
    return s == cudart_legacy_stream(s->device);
}

static cudaStream_t make_legacy(int device)
{
    cudaStream_t s = cudart_legacy_stream(device);
    if (s)
        return s;
    cudaStream_t made = cudart_stream_new(device, cudaStreamDefault, 0);
    if (made && !__atomic_compare_exchange_n(&legacy_streams[device], &s, made, false,
                                             __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        cudart_stream_end(made);
        return s;
    }
    return made;
}

/* They end with their thread, as in CUDA; what is queued still runs. */
static void destroy_of_thread(void *unused)
{
    for (int i = 0; i < CUDART_DEVICES_MAX; i++)
        if (per_thread[i])
            cudart_stream_end(per_thread[i]);
    memset(per_thread, 0, sizeof per_thread); /* other ends of the thread may ask for one again */
}

static void make_thread_ends(void)
{
    pthread_key_create(&thread_ends, destroy_of_thread);
}

static cudaStream_t make_of_thread(int device)
{
    if (!per_thread[device]) {
        pthread_once(&thread_ends_once, make_thread_ends);
        pthread_setspecific(thread_ends, per_thread);
        per_thread[device] = cudart_stream_new(device, cudaStreamDefault, 0);
    }
    return per_thread[device];
}

cudaStream_t cudart_default_stream(cudaStream_t handle)
{
    const int device = cudart_device();
    return handle == cudaStreamPerThread ? make_of_thread(device) : make_legacy(device);
}
