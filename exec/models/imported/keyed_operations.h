#pragma once
// Operations that draw, with masks by key in place of the generator's order: equal in every plan,
// and again when a forward is recomputed. Each has the bits of PyTorch's operation with that mask.

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <tuple>

#include "exec/tensors/keyed_random.h"

namespace frazil {

// For a slice, all throw InfeasibleError if dimension 0 of what is masked does not count its
// samples.
at::Tensor drop_by_key(const at::Tensor& x, double rate, const DrawPlace& place,
                       const RandomKey& key);
// Does so in the memory of x, and returns x.
at::Tensor drop_in_place_by_key(at::Tensor x, double rate, const DrawPlace& place,
                                const RandomKey& key);
// Drops whole channels: x is [n, channels, ...].
at::Tensor drop_channels_by_key(const at::Tensor& x, double rate, const DrawPlace& place,
                                const RandomKey& key);
// Returns output and mask as aten::native_dropout does, which scales after it has masked.
std::tuple<at::Tensor, at::Tensor> native_drop_by_key(const at::Tensor& x, double rate,
                                                      const DrawPlace& place, const RandomKey& key);

// The arguments of aten::scaled_dot_product_attention.
struct Attention {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
  std::optional<at::Tensor> mask;
  bool is_causal = false;
  std::optional<double> scale;
  bool groups_queries = false;  // enable_gqa
};

// Returns what the operation does where no fused kernel takes dropout, step by step: `drop` is
// given the weights of attention.
at::Tensor attend(const Attention& call, const std::function<at::Tensor(const at::Tensor&)>& drop);

}  // namespace frazil
