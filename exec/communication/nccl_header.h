#pragma once
// What a message over NCCL says of itself beforehand, by another way: NCCL has no tags and no
// sizes. Where the header comes the receiver knows which message the next one is, how much memory
// it takes, and that its sender lives.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/communication/nccl_table.h"

namespace frazil {

struct TensorForm {
  bool by_nccl = true;  // else the tensor stands beside the header
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes = {};
};

struct NcclHeader {
  std::int64_t order = 0;         // among the messages of its sender, receiver and lane
  std::optional<NcclId> id = {};  // of the connection, with the first message that needs it
  std::vector<TensorForm> tensors = {};
};

// Returns the header as a host tensor.
at::Tensor pack(const NcclHeader& header);
// Returns what pack() was given. Throws PeerLost for anything else.
NcclHeader unpack_header(const at::Tensor& packed);

}  // namespace frazil
