#pragma once
// Memory that the process frees is kept for its next allocations. Training steps allocate and free
// the same sizes over and over; what is returned to the system in between must be mapped again page
// by page, and a device's thread that frees the last small tensor at the end of its heap would wait
// while megabytes are taken back.

namespace frazil {

// Makes glibc's allocator keep freed memory; does nothing with another C library. Must be called
// early in main. It overrides what the environment chose (MALLOC_TRIM_THRESHOLD_,
// MALLOC_MMAP_THRESHOLD_). The process then keeps as much memory as its threads had at their peaks.
void keep_freed_memory();

}  // namespace frazil
