#pragma once
// Everything that libtorch's CPU allocator has handed out and nobody has given back, in the whole
// process: storage of tensors, whoever holds them. Counted from the first call on.

#include <cstdint>

namespace frazil {

std::int64_t count_live_allocations();

}  // namespace frazil
