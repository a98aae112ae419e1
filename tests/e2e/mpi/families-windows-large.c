/* SPDX-License-Identifier: Apache-2.0 */
#define FAMILIES_LARGE 1
#include "families-windows.c"
