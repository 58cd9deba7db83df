#include "exec/devices/cuda/stream_pool.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

namespace frazil {

GpuStream* StreamPool::open(int gpu, int share, int shares) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (GpuStream& stream : streams_) {
    if (!stream.is_open && stream.gpu == gpu && stream.share == share && stream.shares == shares) {
      stream.is_open = true;
      return &stream;
    }
  }
  streams_.push_back(make(gpu, share, shares));
  streams_.back().is_open = true;
  return &streams_.back();
}

void StreamPool::close(GpuStream* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stream->is_open = false;
}

GpuStream StreamPool::make(int gpu, int share, int shares) {
  const auto index = static_cast<c10::DeviceIndex>(gpu);
  const c10::cuda::CUDAGuard guard(index);
  C10_CUDA_CHECK(cudaFree(nullptr));  // makes the GPU's context
  cudaStream_t stream = nullptr;
  std::string part;
  if (shares > 1) {
    const auto [known, is_new] = parts_.try_emplace({gpu, shares});
    GpuParts& parts = known->second;
    if (is_new) parts = split_gpu(gpu, shares);
    if (!parts.contexts.empty()) {
      stream = make_stream(parts.contexts[static_cast<std::size_t>(share)], parts.why_not);
    }
    part = stream != nullptr ? std::to_string(parts.multiprocessors) + " SMs each"
                             : "no parts of their own: " + parts.why_not;
  } else {
    part = "all of it";
  }
  if (stream == nullptr) {
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  return {.gpu = gpu, .share = share, .shares = shares, .stream = stream, .part = part};
}

}  // namespace frazil
