#pragma once
// Cuts a GPU into parts that do not overlap: one split of its SMs through the driver's green
// contexts (CUDA 12.5 and newer). Parts are equal, rounded down to what the GPU can cut: 132 SMs in
// two are 64 and 64. The driver is asked at run time, never linked.

#include <cuda.h>
#include <driver_types.h>

#include <string>
#include <vector>

namespace frazil {

struct GpuParts {
  std::vector<CUgreenCtx> contexts;  // empty if the GPU cannot be cut
  int multiprocessors = 0;           // of each part, as granted
  std::string why_not;               // the reason if contexts are empty
};

// Splits a GPU in one call, so that parts are disjoint. They live as long as the process.
GpuParts split_gpu(int gpu, int parts);
// Makes a stream that computes on one part alone. Returns none, with the reason in `why_not`, if it
// does not work with events as torch's allocator and the lanes of a device need them.
cudaStream_t make_stream(CUgreenCtx part, std::string& why_not);

}  // namespace frazil
