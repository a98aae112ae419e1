/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h - the name programs include; what hostnccl has of it is in cuda_runtime_api.h. */
#ifndef HOSTNCCL_CUDA_RUNTIME_H
#define HOSTNCCL_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#endif
