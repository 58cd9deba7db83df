#pragma once
// Copies between host and GPUs that are enqueued to a stream and return at once.

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

namespace frazil {

// As AcceleratorTable::upload, download and fetch. Throw c10::Error with CUDA's words.
at::Tensor copy_to_gpu(const at::Tensor& tensor, c10::cuda::CUDAStream stream);
at::Tensor copy_to_host(const at::Tensor& tensor, c10::cuda::CUDAStream stream);
at::Tensor copy_between_gpus(const at::Tensor& tensor, c10::cuda::CUDAStream stream);

}  // namespace frazil
