#include "exec/tensors/finite.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000;  // all of its bits are set: infinite, or no number
constexpr std::int64_t kBlock = 1024;            // values between two looks at the outcome

std::uint32_t is_bad(const float* value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, value, sizeof bits);
  return static_cast<std::uint32_t>((bits & kExponent) == kExponent);
}

// Has no branch and a count that the compiler knows, so that many values are read at once.
bool is_finite_block(const float* values) {
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < kBlock; ++i) found |= is_bad(values + i);
  return found == 0;
}

bool is_finite(const float* values, std::int64_t count) {
  const float* const end = values + count;
  for (; end - values >= kBlock; values += kBlock) {
    if (!is_finite_block(values)) return false;
  }
  return std::none_of(values, end, [](const float& value) { return is_bad(&value) != 0; });
}

}  // namespace

at::Tensor largest_magnitude(const at::Tensor& tensor) {
  return at::linalg_vector_norm(tensor.flatten(), std::numeric_limits<double>::infinity());
}

bool is_finite(const at::Tensor& tensor) {
  ENSURE(tensor.scalar_type() == at::kFloat, "a tensor of float32");
  if (tensor.numel() == 0) return true;
  if (tensor.is_cpu() && tensor.is_contiguous()) {
    return is_finite(tensor.const_data_ptr<float>(), tensor.numel());
  }
  return std::isfinite(largest_magnitude(tensor).item<float>());
}

bool are_finite(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return is_finite(tensor); });
}

}  // namespace frazil
