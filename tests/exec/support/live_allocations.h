#pragma once
// Counts what libtorch's CPU allocator has handed out and nobody has given back, in the whole
// process: storage of tensors, whoever holds them. Counting begins with the first call.

#include <cstdint>

namespace frazil {

std::int64_t count_live_allocations();

}  // namespace frazil
