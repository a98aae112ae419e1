/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-fusion.h - which tensors go together as one, and where each lies in the buffer.
 */
#ifndef RT_FUSION_H
#define RT_FUSION_H

#include "rt-message.h"

#define RT_FUSION_UNIT 64 /* bytes: where a tensor may begin in the buffer */

/* Bytes that a tensor takes in the buffer. */
uint64_t rt_fusion_bytes(const struct rt_tensor *tensor);

/*
 * Picks from the `n` ready tensors what goes with the first one: allreduces of the same type,
 * operation, compression and scales, in their order, while their sum stays within `threshold`.
 * Those that don't fit are passed over, for the next turn. Writes the indices, the first is 0, to
 * `ret` (room for n); returns how many.
 */
unsigned rt_fusion_plan(const struct rt_tensor *const *ready, unsigned n, uint64_t threshold,
                        unsigned *ret);

#endif
