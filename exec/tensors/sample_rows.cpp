#include "exec/tensors/sample_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <string>

#include "profiles/error.h"

namespace frazil {

void require_samples(const at::Tensor& tensor, LayerId layer, std::int64_t samples) {
  if (tensor.dim() > 0 && tensor.size(0) == samples) return;
  std::string shape;
  for (const std::int64_t size : tensor.sizes()) {
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  }
  throw InfeasibleError("layer " + std::to_string(layer.value) +
                        " cannot work on a slice of a micro-batch: of a tensor of shape [" + shape +
                        "] dimension 0 does not count its " + std::to_string(samples) + " samples");
}

Tensors take_rows(const Tensors& tensors, std::int64_t first, std::int64_t count) {
  // The slices are plain: autograd's notes on views would tie the pieces of one thread to tensors
  // of another.
  const at::AutoDispatchBelowADInplaceOrView no_view_notes;
  Tensors rows;
  for (const at::Tensor& tensor : tensors) rows.push_back(tensor.narrow(0, first, count));
  return rows;
}

at::Tensor join_rows(const Tensors& pieces) {
  return pieces.size() == 1 ? pieces.front() : at::cat(pieces);
}

}  // namespace frazil
