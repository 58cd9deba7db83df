#include "exec/measuring/fixed.h"

#include <cstddef>
#include <cstdio>

namespace frazil {

std::string fixed(double value, int decimals) {
  const int size = std::snprintf(nullptr, 0, "%.*f", decimals, value);
  std::string text(static_cast<std::size_t>(size), ' ');
  std::snprintf(text.data(), text.size() + 1, "%.*f", decimals, value);
  return text;
}

}  // namespace frazil
