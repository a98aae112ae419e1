/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in CUDA runtime knows of memory and devices, and that it knows no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "cudart-check.h"
#include "nccl.h"

static struct cudaPointerAttributes attributes_of(const void *p)
{
    struct cudaPointerAttributes a = {.device = 77};
    OK(cudaPointerGetAttributes(&a, p));
    return a;
}

static void must_be(const void *p, enum cudaMemoryType type, int device)
{
    struct cudaPointerAttributes a = attributes_of(p);
    assert_int_equal(a.type, type);
    assert_int_equal(a.device, device);
    assert_ptr_equal(a.devicePointer, type == cudaMemoryTypeUnregistered ? NULL : p);
    assert_ptr_equal(a.hostPointer, type == cudaMemoryTypeDevice ? NULL : p);
}

static void pointer_attributes_tell_kind_and_device(void **state)
{
    char *device, *host, *managed, *plain = malloc(100);
    void *nccl;
    OK(cudaSetDevice(3));
    OK(cudaMalloc((void **)&device, 100));
    OK(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
    OK(ncclMemAlloc(&nccl, 100));
    OK(cudaSetDevice(1));
    OK(cudaMallocHost((void **)&host, 100));
    must_be(device, cudaMemoryTypeDevice, 3);
    must_be(device + 99, cudaMemoryTypeDevice, 3);
    must_be(managed + 50, cudaMemoryTypeManaged, 3);
    must_be(nccl, cudaMemoryTypeDevice, 3);
    must_be(host + 99, cudaMemoryTypeHost, 1);
    must_be(plain, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    must_be(NULL, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    OK(cudaHostRegister(plain, 100, cudaHostRegisterPortable));
    must_be(plain + 99, cudaMemoryTypeHost, 1);
    OK(cudaHostUnregister(plain));
    OK(cudaFree(device));
    must_be(device, cudaMemoryTypeUnregistered, cudaInvalidDeviceId);
    OK(cudaFree(managed));
    OK(cudaFreeHost(host));
    OK(ncclMemFree(nccl));
    assert_int_equal(cudaPointerGetAttributes(NULL, plain), cudaErrorInvalidValue);
    free(plain);
    OK(cudaSetDevice(0));
}

static void freeing_what_is_not_such_memory_is_refused(void **state)
{
    char *device, *host, local;
    void *nccl;
    cudaStream_t s = new_stream();
    OK(cudaMalloc((void **)&device, 100));
    OK(cudaMallocHost((void **)&host, 100));
    OK(ncclMemAlloc(&nccl, 100));
    assert_int_equal(cudaFree(&local), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(device + 1), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(host), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(nccl), cudaErrorInvalidValue);
    assert_int_equal(cudaFreeHost(device), cudaErrorInvalidValue);
    assert_int_equal(cudaFreeAsync(host, s), cudaErrorInvalidValue);
    assert_int_equal(ncclMemFree(device), ncclUnhandledCudaError);
    OK(cudaFreeAsync(device, s));
    assert_int_equal(cudaFreeAsync(device, s), cudaErrorInvalidValue);
    OK(cudaStreamSynchronize(s));
    assert_int_equal(cudaFree(device), cudaErrorInvalidValue);
    OK(cudaFreeHost(host));
    assert_int_equal(cudaFreeHost(host), cudaErrorInvalidValue);
    OK(ncclMemFree(nccl));
    assert_int_equal(ncclMemFree(nccl), ncclUnhandledCudaError);
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void registered_memory_is_once_and_as_a_whole(void **state)
{
    char *p = malloc(1000), *pinned;
    void *mapped;
    unsigned flags;
    assert_int_equal(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
    assert_int_equal(cudaHostRegister(p, 0, 0), cudaErrorInvalidValue);
    assert_int_equal(cudaHostRegister(NULL, 10, 0), cudaErrorInvalidValue);
    assert_int_equal(cudaHostRegister(p, 10, 0x100), cudaErrorInvalidValue);
    assert_int_equal(cudaHostGetDevicePointer(&mapped, p, 0), cudaErrorInvalidValue);
    OK(cudaHostRegister(p + 100, 800, cudaHostRegisterMapped));
    assert_int_equal(cudaHostRegister(p + 100, 800, 0), cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaHostRegister(p + 899, 1, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostRegister(p + 900, 1, 0));
    OK(cudaHostGetDevicePointer(&mapped, p + 200, 0));
    assert_ptr_equal(mapped, p + 200);
    OK(cudaHostGetFlags(&flags, p + 100));
    assert_int_equal(flags, cudaHostRegisterMapped);
    assert_int_equal(cudaHostUnregister(p + 101), cudaErrorHostMemoryNotRegistered);
    OK(cudaHostUnregister(p + 100));
    OK(cudaHostUnregister(p + 900));
    OK(cudaHostAlloc((void **)&pinned, 64, cudaHostAllocMapped | cudaHostAllocPortable));
    OK(cudaHostGetFlags(&flags, pinned));
    assert_int_equal(flags, cudaHostAllocMapped | cudaHostAllocPortable);
    assert_int_equal(cudaHostRegister(pinned, 64, 0), cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaHostUnregister(pinned), cudaErrorHostMemoryNotRegistered);
    OK(cudaFreeHost(pinned));
    free(p);
    cudaGetLastError();
}

struct freeing {
    void *p;
    cudaError_t (*free_it)(void *p);
    cudaError_t result;
    bool done; /* atomic */
};

static void *free_elsewhere(void *argument)
{
    struct freeing *f = argument;
    f->result = f->free_it(f->p);
    __atomic_store_n(&f->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void wait_at_gate(void *argument)
{
    sem_wait(argument);
}

static void freeing_waits_for_what_is_queued_on_the_device(void **state)
{
    const struct timespec look = {.tv_nsec = 1000000};
    for (int host = 0; host < 2; host++) {
        struct freeing f = {.free_it = host ? cudaFreeHost : cudaFree};
        pthread_t thread;
        sem_t gate;
        sem_init(&gate, 0, 0);
        cudaStream_t s = new_stream();
        OK(host ? cudaMallocHost(&f.p, 64) : cudaMalloc(&f.p, 64));
        OK(cudaLaunchHostFunc(s, wait_at_gate, &gate));
        OK(cudaMemsetAsync(f.p, 1, 64, s));
        assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, &f), 0);
        for (int i = 0; i < 20; i++) { /* one that doesn't wait is done meanwhile, most likely */
            assert_false(__atomic_load_n(&f.done, __ATOMIC_ACQUIRE));
            nanosleep(&look, NULL);
        }
        sem_post(&gate);
        pthread_join(thread, NULL);
        OK(f.result);
        OK(cudaStreamDestroy(s));
        sem_destroy(&gate);
    }
}

static void pitched_memory_takes_rows(void **state)
{
    char *p, rows[3][100], back[3][100];
    size_t pitch = 0;
    memset(rows, 7, sizeof rows);
    OK(cudaMallocPitch((void **)&p, &pitch, 100, 3));
    assert_true(pitch >= 100 && pitch % 256 == 0);
    must_be(p + 2 * pitch + 99, cudaMemoryTypeDevice, 0);
    OK(cudaMemcpy2D(p, pitch, rows, 100, 100, 3, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(back, 100, p, pitch, 100, 3, cudaMemcpyDeviceToHost));
    assert_memory_equal(rows, back, sizeof rows);
    OK(cudaFree(p));
    assert_int_equal(cudaMallocPitch((void **)&p, &pitch, SIZE_MAX / 2, 3),
                     cudaErrorMemoryAllocation);
    assert_int_equal(cudaMallocPitch((void **)&p, NULL, 1, 1), cudaErrorInvalidValue);
    cudaGetLastError();
}

static void peers_are_enabled_once_and_copied_between(void **state)
{
    int can = -1, *a, *b, value = 0;
    cudaStream_t s = new_stream();
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    OK(cudaDeviceCanAccessPeer(&can, 1, 1));
    assert_int_equal(can, 0);
    assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    assert_int_equal(cudaDeviceEnablePeerAccess(99, 0), cudaErrorInvalidDevice);
    assert_int_equal(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    assert_int_equal(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    OK(cudaDeviceDisablePeerAccess(1));
    OK(cudaDeviceEnablePeerAccess(1, 0));
    OK(cudaDeviceReset());
    OK(cudaDeviceEnablePeerAccess(1, 0));
    OK(cudaDeviceDisablePeerAccess(1));

    OK(cudaMalloc((void **)&a, sizeof *a));
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&b, sizeof *b));
    OK(cudaSetDevice(0));
    OK(cudaMemset(a, 1, sizeof *a));
    OK(cudaMemcpyPeer(b, 1, a, 0, sizeof *a));
    OK(cudaMemset(a, 2, sizeof *a));
    OK(cudaMemcpy(&value, b, sizeof value, cudaMemcpyDefault));
    assert_int_equal(value, 0x01010101);
    OK(cudaMemcpyPeerAsync(b, 1, a, 0, sizeof *a, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaMemcpy(&value, b, sizeof value, cudaMemcpyDefault));
    assert_int_equal(value, 0x02020202);
    assert_int_equal(cudaMemcpyPeer(b, 99, a, 0, 4), cudaErrorInvalidDevice);
    assert_int_equal(cudaMemcpyPeerAsync(b, 1, NULL, 0, 4, s), cudaErrorInvalidValue);
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void properties_attributes_and_bus_agree(void **state)
{
    struct cudaDeviceProp p, other;
    size_t free_bytes, total;
    unsigned flags;
    char bus[20];
    int value, device;
    memset(&p, 0xff, sizeof p);
    OK(cudaGetDeviceProperties(&p, 5));
    OK(cudaGetDeviceProperties(&other, 6));
    OK(cudaMemGetInfo(&free_bytes, &total));
    assert_true(strlen(p.name) > 0 && strlen(p.name) < sizeof p.name);
    assert_int_equal(p.totalGlobalMem, total);
    assert_true(p.warpSize == 32 && p.multiProcessorCount > 0 && p.maxThreadsPerBlock > 0);
    assert_memory_not_equal(&p.uuid, &other.uuid, sizeof p.uuid);
    assert_int_equal(p.reserved[0], 0);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 5));
    assert_int_equal(value, p.major);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxGridDimY, 5));
    assert_int_equal(value, p.maxGridSize[1]);
    OK(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)116, 5)); /* GPUDirect */
    assert_int_equal(value, 0);
    OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 5));
    OK(cudaDeviceGetByPCIBusId(&device, bus));
    assert_int_equal(device, 5);
    assert_int_equal(cudaDeviceGetByPCIBusId(&device, "0001:05:00.0"), cudaErrorInvalidDevice);
    assert_int_equal(cudaDeviceGetByPCIBusId(&device, "five"), cudaErrorInvalidValue);
    assert_int_equal(cudaGetDeviceProperties(&p, 99), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
    assert_int_equal(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0),
                     cudaErrorInvalidValue);
    OK(cudaSetDeviceFlags(cudaDeviceScheduleYield));
    OK(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags, cudaDeviceScheduleYield);
    assert_int_equal(cudaSetDeviceFlags(0x1000), cudaErrorInvalidValue);
    OK(cudaInitDevice(0, cudaDeviceScheduleAuto, cudaInitDeviceFlagsAreValid));
    OK(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags, cudaDeviceScheduleAuto);
    cudaGetLastError();
}

/* As the code that nvcc makes of kernel<<<...>>>(). */
extern void **__cudaRegisterFatBinary(void *binary);
extern unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t s);
extern cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *s);

static void kernel_is_refused_where_it_is_launched(void **state)
{
    dim3 grid = {1, 2, 3}, block = {32, 1, 1}, popped[2];
    cudaStream_t stream, back = NULL;
    size_t shared = 0;
    OK(cudaStreamCreate(&stream));
    assert_non_null(__cudaRegisterFatBinary(&shared));
    assert_int_equal(__cudaPushCallConfiguration(grid, block, 77, stream), 0);
    OK(__cudaPopCallConfiguration(&popped[0], &popped[1], &shared, &back));
    assert_memory_equal(&popped[0], &grid, sizeof grid);
    assert_memory_equal(&popped[1], &block, sizeof block);
    assert_int_equal(shared, 77);
    assert_ptr_equal(back, stream);
    assert_int_equal(__cudaPopCallConfiguration(&popped[0], &popped[1], &shared, &back),
                     cudaErrorMissingConfiguration);
    assert_int_equal(cudaLaunchKernel((const void *)&grid, grid, block, NULL, 0, stream),
                     cudaErrorNoKernelImageForDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointer_attributes_tell_kind_and_device),
        cmocka_unit_test(freeing_what_is_not_such_memory_is_refused),
        cmocka_unit_test(registered_memory_is_once_and_as_a_whole),
        cmocka_unit_test(freeing_waits_for_what_is_queued_on_the_device),
        cmocka_unit_test(pitched_memory_takes_rows),
        cmocka_unit_test(peers_are_enabled_once_and_copied_between),
        cmocka_unit_test(properties_attributes_and_bus_agree),
        cmocka_unit_test(kernel_is_refused_where_it_is_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
