#pragma once
// Empties the processor's caches of what is timed next.

#include <cstdint>
#include <vector>

namespace frazil {

// 64 MiB of the process's memory: more than a core has in caches of its own, and than the shared
// cache of most processors.
class ProcessorCaches {
 public:
  ProcessorCaches();

  // Reads and writes all of it, so that what is timed next finds the caches as it does after a
  // training step. Takes some milliseconds.
  void fill();

 private:
  std::vector<std::int64_t> memory_;
  std::int64_t value_ = 0;  // of each element
};

}  // namespace frazil
