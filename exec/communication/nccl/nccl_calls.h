#pragma once
// What NCCL and CUDA answer, told as errors of one sentence, and the types of tensors in NCCL's
// words.

#include <ATen/core/Tensor.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

namespace frazil {

// Returns "unhandled system error (socketProgress: Connection closed by remote peer)". `comm` may
// be null.
std::string sentence_of(ncclResult_t result, ncclComm_t comm);

// Throw what is no success. An NCCL call that goes on by itself ("in progress") is one.
void check(ncclResult_t result, ncclComm_t comm = nullptr);
void check(cudaError_t error);

// Returns the type in which NCCL adds elements of the tensor. Throws for a type that it cannot add.
ncclDataType_t type_of(const at::Tensor& tensor);

// Makes a GPU the calling thread's one for as long as it lives.
class OnGpu {
 public:
  explicit OnGpu(int gpu);
  ~OnGpu();
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

}  // namespace frazil
