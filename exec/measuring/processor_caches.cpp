#include "exec/measuring/processor_caches.h"

#include "profiles/error.h"

namespace frazil {

ProcessorCaches::ProcessorCaches() : memory_(std::size_t{1} << 23) {}

// One thread has this memory, and the thread sanitizer takes a tenth of a second to find that.
__attribute__((no_sanitize("thread"))) void ProcessorCaches::fill() {
  ++value_;
  std::int64_t sum = 0;
  for (std::int64_t& each : memory_) sum += ++each;
  // The sum is needed, so that no compiler leaves the work out.
  ENSURE(sum == value_ * static_cast<std::int64_t>(memory_.size()),
         "memory holds what is written to it");
}

}  // namespace frazil
