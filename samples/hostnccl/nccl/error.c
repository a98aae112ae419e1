/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"
#include "rt-fault-hooks.h"

static __thread char last_error[400];

/* Says to whoever looks that this is no NCCL of a vendor. */
extern int hostnccl_standin __attribute__((visibility("default")));
int hostnccl_standin = 1;

ncclResult_t hostnccl_fail(ncclResult_t result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return result;
}

ncclResult_t hostnccl_from_errno(int error)
{
    switch (error) {
    case 0:
        return ncclSuccess;
    case -ECONNRESET:
        return ncclRemoteError;
    case -EMSGSIZE:
        return ncclInvalidUsage;
    default:
        return ncclSystemError;
    }
}

const char *pncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "a call of the CUDA runtime failed";
    case ncclSystemError:
        return "a call of the system failed";
    case ncclInternalError:
        return "internal error";
    case ncclInvalidArgument:
        return "invalid argument";
    case ncclInvalidUsage:
        return "invalid usage";
    case ncclRemoteError:
        return "a remote process has exited or failed";
    case ncclInProgress:
        return "operation in progress";
    default:
        return "unknown result code";
    }
}
HOSTNCCL_WEAK(GetErrorString);

const char *pncclGetLastError(ncclComm_t comm)
{
    if (hostnccl_comm_is(comm) &&
        __atomic_load_n(&comm->async_error, __ATOMIC_ACQUIRE) != ncclSuccess)
        return comm->async_text;
    return last_error;
}
HOSTNCCL_WEAK(GetLastError);

ncclResult_t pncclGetVersion(int *version)
{
    if (!version)
        return hostnccl_fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    if (rt_fault_hook_nccl_version)
        *version = rt_fault_hook_nccl_version(NCCL_VERSION_CODE);
    return ncclSuccess;
}
HOSTNCCL_WEAK(GetVersion);

/* Nothing here logs. */
void pncclResetDebugInit(void)
{
}
HOSTNCCL_WEAK(ResetDebugInit);
