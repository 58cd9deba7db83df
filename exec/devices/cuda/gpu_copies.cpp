#include "exec/devices/cuda/gpu_copies.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

namespace frazil {
namespace {

using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::CUDACachingAllocator::recordStream;

constexpr bool kNonBlocking = true;

CUDAStream torch_stream(const GpuStream& own) {
  return c10::cuda::getStreamFromExternal(own.stream, static_cast<c10::DeviceIndex>(own.gpu));
}

// Returns a tensor without gaps on its own GPU. It is made between `stream`, which awaits what the
// tensor is made by, and what `stream` is given next.
at::Tensor close_gaps(const at::Tensor& tensor, CUDAStream stream) {
  constexpr bool kHighPriority = false;
  const CUDAStream there = c10::cuda::getStreamFromPool(kHighPriority, tensor.device().index());
  at::cuda::CUDAEvent before;
  before.record(stream);
  before.block(there);
  const CUDAStreamGuard guard(there);
  at::Tensor whole = tensor.contiguous();
  recordStream(tensor.storage().data_ptr(), there);
  at::cuda::CUDAEvent after;
  after.record(there);
  after.block(stream);
  return whole;
}

}  // namespace

at::Tensor copy_to_gpu(const at::Tensor& tensor, const GpuStream& to) {
  const CUDAStream stream = torch_stream(to);
  const CUDAStreamGuard guard(stream);
  const at::Tensor pinned = at::empty_like(tensor, tensor.options().pinned_memory(true));
  pinned.copy_(tensor);
  return pinned.to(stream.device(), kNonBlocking);
}

at::Tensor copy_to_host(const at::Tensor& tensor, const GpuStream& from) {
  const CUDAStreamGuard guard(torch_stream(from));
  at::Tensor pinned = at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(true));
  return pinned.copy_(tensor, kNonBlocking);
}

at::Tensor copy_between_gpus(const at::Tensor& tensor, const GpuStream& to) {
  const CUDAStream stream = torch_stream(to);
  const at::Tensor there =
      tensor.is_non_overlapping_and_dense() ? tensor : close_gaps(tensor, stream);
  const CUDAStreamGuard guard(stream);
  at::Tensor here =
      at::empty_strided(there.sizes(), there.strides(), there.options().device(stream.device()));
  C10_CUDA_CHECK(cudaMemcpyAsync(here.mutable_data_ptr(), there.const_data_ptr(), here.nbytes(),
                                 cudaMemcpyDefault, stream.stream()));
  recordStream(there.storage().data_ptr(), stream);
  return here;
}

}  // namespace frazil
