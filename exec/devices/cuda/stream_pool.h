#pragma once
// Keeps streams for as long as the process lives, because torch's allocator remembers the stream of
// every block, also of tensors that outlive a run. A closed stream is opened again.

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
  std::string part;  // as AcceleratorTable::part
  bool is_open = false;
};

class StreamPool {
 public:
  // Opens a stream for a share of a GPU. Throws c10::Error with CUDA's words.
  GpuStream* open(int gpu, int share, int shares);
  void close(GpuStream* stream);

 private:
  GpuStream make(int gpu, int share, int shares);

  std::mutex mutex_;
  std::map<std::tuple<int, int>, GpuParts> parts_;  // by GPU and number of parts
  std::list<GpuStream> streams_;                    // a list, for stable addresses
};

}  // namespace frazil
