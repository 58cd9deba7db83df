#pragma once
// The cores that the system lets the threads of this process run on.

#include <cstddef>
#include <vector>

namespace frazil {

// Returns their numbers, ascending; empty if the system does not tell.
std::vector<int> allowed_cores();

// Keeps the calling thread, and threads that it starts, to cores [first, first + count) of those
// allowed. Pinning is a matter of speed alone: where it is forbidden, or there are fewer cores,
// nothing changes.
void keep_to_cores(std::size_t first, std::size_t count);
// Keeps it to these, of the system's numbers, as far as they are allowed.
void keep_to(const std::vector<int>& cores);

}  // namespace frazil
