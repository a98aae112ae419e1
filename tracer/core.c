/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;
