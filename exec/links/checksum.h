#pragma once
// CRC32C, which finds every error of up to 32 bits in a row. Uses the processor's instruction where
// it has one.

#include <cstddef>
#include <cstdint>

namespace frazil {

// Returns the checksum of `bytes` bytes that follow those with the checksum `before`.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace frazil
