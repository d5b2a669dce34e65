// CRC-32C (Castagnoli): checksums of frames between ranks, and of TensorBoard's records.
#ifndef HECATE_RUNTIME_BASE_CRC32C_H
#define HECATE_RUNTIME_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The checksum of bytes with the checksum `sum`, followed by `data`; that of no bytes is 0. Uses the processor's
// instruction where there is one (SSE 4.2, ARMv8's CRC), else tables. Any thread.
uint32_t hrt_base_crc32c(uint32_t sum, const void *data, size_t bytes);

// The same by tables alone.
uint32_t hrt_base_crc32c_by_tables(uint32_t sum, const void *data, size_t bytes);

#endif
