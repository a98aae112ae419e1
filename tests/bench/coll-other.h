/* SPDX-License-Identifier: Apache-2.0 */
/* coll-other.h - the allreduce that rt_coll's is compared with: of float, sum, in place. */
#ifndef COLL_OTHER_H
#define COLL_OTHER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const char *const other_name;

/* After MPI_Init; ends the program where it can't. */
void other_begin(int rank, int size);
void other_allreduce(float *data, uint64_t count);
void other_end(void);

#ifdef __cplusplus
}
#endif

#endif
