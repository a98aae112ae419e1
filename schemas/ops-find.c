/* SPDX-License-Identifier: Apache-2.0 */
#include "ops.h"

const struct rs_op_info *rs_op_find(uint16_t op)
{
    size_t low = 0, high = rs_op_table_len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (rs_op_table[mid].op == op)
            return &rs_op_table[mid];
        if (rs_op_table[mid].op < op)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const char *rs_coll_name(enum rs_coll coll)
{
    static const char *const names[RS_COLL_COUNT] = {
        "none",     "allreduce", "reduce",  "broadcast", "allgather", "reduce_scatter",
        "alltoall", "gather",    "scatter", "barrier",   "scan",
    };
    return (unsigned)coll < RS_COLL_COUNT ? names[coll] : "none";
}
