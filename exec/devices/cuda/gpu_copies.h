#pragma once
// Copies between host and GPUs that are enqueued to a stream and return at once.

#include <ATen/core/Tensor.h>

#include "exec/devices/cuda/stream_pool.h"

namespace frazil {

// As AcceleratorTable::upload, download and fetch. Throw c10::Error with CUDA's words.
at::Tensor copy_to_gpu(const at::Tensor& tensor, const GpuStream& to);
at::Tensor copy_to_host(const at::Tensor& tensor, const GpuStream& from);
at::Tensor copy_between_gpus(const at::Tensor& tensor, const GpuStream& to);

}  // namespace frazil
