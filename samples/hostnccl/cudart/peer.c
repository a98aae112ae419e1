/* SPDX-License-Identifier: Apache-2.0 */
/* Peer access: all memory can be reached, so this is bookkeeping, with the errors that CUDA has. */
#include "cudart.h"

static uint64_t enabled[CUDART_DEVICES_MAX]; /* atomic; by device, a bit for each peer */

CUDART_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    if (!canAccessPeer)
        return cudart_result(cudaErrorInvalidValue);
    if (!cudart_device_exists(device) || !cudart_device_exists(peerDevice))
        return cudart_result(cudaErrorInvalidDevice);
    *canAccessPeer = device != peerDevice;
    return cudaSuccess;
}

static bool is_peer(int device)
{
    return cudart_device_exists(device) && device != cudart_device();
}

CUDART_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    if (flags != 0)
        return cudart_result(cudaErrorInvalidValue);
    if (!is_peer(peerDevice))
        return cudart_result(cudaErrorInvalidDevice);
    uint64_t bit = (uint64_t)1 << peerDevice;
    uint64_t before = __atomic_fetch_or(&enabled[cudart_device()], bit, __ATOMIC_RELAXED);
    return cudart_result(before & bit ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess);
}

CUDART_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
    if (!is_peer(peerDevice))
        return cudart_result(cudaErrorInvalidDevice);
    uint64_t bit = (uint64_t)1 << peerDevice;
    uint64_t before = __atomic_fetch_and(&enabled[cudart_device()], ~bit, __ATOMIC_RELAXED);
    return cudart_result(before & bit ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

void cudart_peer_reset(int device)
{
    __atomic_store_n(&enabled[device], 0, __ATOMIC_RELAXED);
}
