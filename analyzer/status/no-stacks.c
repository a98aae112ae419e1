/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

void rs_status_read_stacks(RsStatus *s)
{
    s->no_stacks = g_strdup("built without elfutils: install libdw-dev and build again");
}
