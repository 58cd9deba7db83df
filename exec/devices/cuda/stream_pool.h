#pragma once
// Streams of their own, kept for as long as the process lives: torch's allocator remembers the
// stream of every block, also of tensors that outlive a run. What is closed is opened again.

#include <list>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "exec/devices/cuda/gpu_parts.h"

namespace frazil {

struct GpuStream {
  int gpu = 0;
  int share = 0;
  int shares = 1;
  cudaStream_t stream = nullptr;
  std::string part;  // "64 SMs", or why it has no part of its own
  bool is_open = false;
};

class StreamPool {
 public:
  // Throws c10::Error with CUDA's words.
  GpuStream* open(int gpu, int share, int shares);
  void close(GpuStream* stream);

 private:
  GpuStream make(int gpu, int share, int shares);

  std::mutex mutex_;
  std::map<std::tuple<int, int>, GpuParts> parts_;  // by GPU and number
  std::list<GpuStream> streams_;                    // of stable address
};

}  // namespace frazil
