/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h - CRC-32C (Castagnoli), the checksum of capture blocks: init and final xor ~0. */
#ifndef RS_SCHEMAS_CRC32C_H
#define RS_SCHEMAS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `bytes` bytes; `crc` is 0 for the first part, the value so far for the next. */
uint32_t rs_crc32c(uint32_t crc, const void *data, size_t bytes);
/* The same without the CPU's instruction, for tests. */
uint32_t rs_crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
