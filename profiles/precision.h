#pragma once
// The precision in which a model's layers compute. Weights, their gradients and the optimizer are
// in fp32 under either.

#include <array>
#include <cstdint>
#include <string_view>

namespace frazil {

enum class Precision : std::uint8_t {
  kFp32,
  kBf16,  // what PyTorch's autocast computes in bfloat16, the rest in fp32
};

// The names by enumerator, as files and flags have them.
inline constexpr std::array<std::string_view, 2> kPrecisionNames{"fp32", "bf16"};

constexpr std::string_view name_of(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

}  // namespace frazil
