#pragma once
// Memory that the process has freed stays with it, for what it allocates next. Steps of training
// allocate and free the same sizes over and over, and what goes back to the system in between comes
// again page by page; a device's thread that frees the last small tensor at the end of its heap
// would wait for megabytes to be taken back.

namespace frazil {

// Early in main. Of glibc's allocator; elsewhere nothing is done. Overrides what the environment
// chose (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_). A process then has as much as its threads
// have had at their peaks.
void keep_freed_memory();

}  // namespace frazil
