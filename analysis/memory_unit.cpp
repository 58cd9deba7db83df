#include "analysis/memory_unit.h"

#include <algorithm>
#include <array>

namespace frazil {

MemoryUnit choose_unit(Bytes most) {
  constexpr std::array kUnits = {MemoryUnit{"GiB", 1024.0 * 1024 * 1024},
                                 MemoryUnit{"MiB", 1024.0 * 1024}, MemoryUnit{"KiB", 1024.0}};
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const MemoryUnit& candidate) {
    return static_cast<double>(most.count) >= candidate.bytes;
  });
  return unit == kUnits.end() ? MemoryUnit{"bytes", 1} : *unit;
}

}  // namespace frazil
