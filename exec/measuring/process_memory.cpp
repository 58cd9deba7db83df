#include "exec/measuring/process_memory.h"

#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace frazil {

void keep_freed_memory() {
#ifdef __GLIBC__
  // Setting the trim threshold alone would fix the mmap threshold at its small default. This is the
  // largest value that glibc would let it grow to.
  constexpr int kLargestHeapChunk = 1 << 25;
  (void)::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  (void)::mallopt(M_MMAP_THRESHOLD, kLargestHeapChunk);
#endif
}

}  // namespace frazil
