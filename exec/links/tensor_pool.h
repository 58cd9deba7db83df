#pragma once
// Makes the tensors into which frames are read. The memory of large ones is used again once they
// are let go: memory that is touched for the first time costs as much as copying into it.

#include <cstdint>
#include <memory>

#include "exec/links/frame.h"
#include "exec/tensors/tensors.h"

namespace frazil {

class TensorPool {
 public:
  // Memory that waits to be used again is at most `most_kept` bytes.
  explicit TensorPool(std::int64_t most_kept);

  // Returns a tensor of this type, shape and layout with any contents, 64-byte aligned; an
  // undefined one for TensorPlace::kNone. It may outlive the pool. Throws what libtorch throws
  // where there is no memory. Any thread.
  at::Tensor make(const TensorHead& head) const;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

// Describes a tensor of the host whose elements lie without gaps, without a place.
TensorHead describe(const at::Tensor& tensor);
// Returns the tensor as describe() can take it: itself, or a copy.
at::Tensor make_dense(const at::Tensor& tensor);
// Returns the checksum of its bytes; 0 for an undefined one. Requires: no gaps.
std::uint32_t sum_bytes(const at::Tensor& tensor);

}  // namespace frazil
