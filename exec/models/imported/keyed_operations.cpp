#include "exec/models/imported/keyed_operations.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <vector>

#include "exec/tensors/sample_rows.h"

namespace frazil {
namespace {

at::Tensor draw_checked(const at::Tensor& x, at::IntArrayRef sizes, double rate,
                        const DrawPlace& place, const RandomKey& key) {
  if (key.rows) require_samples(x, place.layer, key.rows->count);
  return draw_keyed_mask(sizes, x.options().requires_grad(false), rate, place, key);
}

// Masks of truth are added as zeros and negative infinities.
at::Tensor as_summand(const at::Tensor& mask, at::ScalarType type) {
  if (mask.scalar_type() != at::kBool) return mask;
  return at::zeros_like(mask, mask.options().dtype(type))
      .masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
}

at::Tensor repeat_heads(const at::Tensor& x, std::int64_t heads) {
  constexpr std::int64_t kHeads = -3;
  return x.size(kHeads) == heads ? x : x.repeat_interleave(heads / x.size(kHeads), kHeads);
}

}  // namespace

at::Tensor drop_by_key(const at::Tensor& x, double rate, const DrawPlace& place,
                       const RandomKey& key) {
  if (rate == 0 || x.numel() == 0) return x;
  if (rate == 1) return x.mul(at::zeros({}, x.options().requires_grad(false)));
  return x * draw_checked(x, x.sizes(), rate, place, key);
}

at::Tensor drop_in_place_by_key(at::Tensor x, double rate, const DrawPlace& place,
                                const RandomKey& key) {
  if (rate == 0 || x.numel() == 0) return x;
  if (rate == 1) return x.mul_(at::zeros({}, x.options().requires_grad(false)));
  return x.mul_(draw_checked(x, x.sizes(), rate, place, key));
}

at::Tensor drop_channels_by_key(const at::Tensor& x, double rate, const DrawPlace& place,
                                const RandomKey& key) {
  if (rate == 0 || x.numel() == 0) return x;
  if (rate == 1) return x.mul(at::zeros({}, x.options().requires_grad(false)));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
  for (std::size_t i = 0; i < sizes.size() && i < 2; ++i) sizes[i] = x.sizes()[i];
  return x * draw_checked(x, sizes, rate, place, key);
}

std::tuple<at::Tensor, at::Tensor> native_drop_by_key(const at::Tensor& x, double rate,
                                                      const DrawPlace& place,
                                                      const RandomKey& key) {
  const at::TensorOptions of_mask = x.options().dtype(at::kBool).requires_grad(false);
  if (x.numel() == 0) return {x, at::empty(x.sizes(), of_mask)};
  if (rate == 1) {
    const at::Tensor none = at::zeros(x.sizes(), of_mask);
    return {x.mul(none).mul(0.0), none};
  }
  const at::Tensor mask = rate == 0 ? at::ones(x.sizes(), of_mask)
                                    : draw_checked(x, x.sizes(), rate, place, key).to(at::kBool);
  return {x.mul(mask).mul(1.0 / (1.0 - rate)), mask};
}

at::Tensor attend(const Attention& call, const std::function<at::Tensor(const at::Tensor&)>& drop) {
  const auto width = static_cast<double>(call.query.size(-1));
  const double scale = call.scale.value_or(1.0 / std::sqrt(width));
  const double root = std::sqrt(std::abs(scale));
  const at::Tensor query = call.query * (scale < 0 ? -root : root);
  const std::int64_t heads = call.groups_queries ? call.query.size(-3) : 0;
  const at::Tensor keys = call.groups_queries ? repeat_heads(call.key, heads) : call.key;
  const at::Tensor values = call.groups_queries ? repeat_heads(call.value, heads) : call.value;
  at::Tensor weights = at::matmul(query, (keys * root).transpose(-2, -1));
  if (call.is_causal) {
    const at::Tensor earlier =
        at::ones({query.size(-2), keys.size(-2)}, query.options().dtype(at::kBool)).tril();
    weights = weights.add_(as_summand(earlier, query.scalar_type()));
  } else if (call.mask) {
    weights = weights.add_(as_summand(*call.mask, call.query.scalar_type()));
  }
  return at::matmul(drop(at::_safe_softmax(weights, -1)), values);
}

}  // namespace frazil
