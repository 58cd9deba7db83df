#include "exec/measuring/fixed.h"

#include <array>
#include <cstddef>
#include <cstdio>

namespace frazil {

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace frazil
