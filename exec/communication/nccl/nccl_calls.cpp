#include "exec/communication/nccl/nccl_calls.h"

#include <stdexcept>

namespace frazil {

std::string sentence_of(ncclResult_t result, ncclComm_t comm) {
  std::string sentence = ncclGetErrorString(result);
  const char* const last = ncclGetLastError(comm);
  std::string more = last == nullptr ? "" : last;
  for (char& letter : more) {
    if (letter == '\n' || letter == '\t') letter = ' ';
  }
  while (!more.empty() && more.back() == ' ') more.pop_back();
  return more.empty() ? sentence : sentence + " (" + more + ")";
}

void check(ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw std::runtime_error(sentence_of(result, comm));
}

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw std::runtime_error(cudaGetErrorString(error));
}

ncclDataType_t type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kHalf:
      return ncclFloat16;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kInt:
      return ncclInt32;
    case at::kLong:
      return ncclInt64;
    default:
      throw std::runtime_error(std::string("NCCL adds no elements of type ") +
                               c10::toString(tensor.scalar_type()));
  }
}

OnGpu::OnGpu(int gpu) {
  check(cudaGetDevice(&before_));
  if (before_ != gpu) check(cudaSetDevice(gpu));
}

OnGpu::~OnGpu() { (void)cudaSetDevice(before_); }

}  // namespace frazil
