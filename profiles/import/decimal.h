#pragma once
// Decimal numbers as other programs print them, in integers of a smaller unit. No floating point:
// what the digits say is what is kept.

#include <cstdint>
#include <optional>
#include <string_view>

namespace frazil {

// What becomes of digits beyond the smallest unit. kNearest: halves up.
enum class Rounding { kExact, kNearest, kUp, kDown };

// `number` x 10^decimals: "0.539" with 6 decimals is 539000. Digits with an optional point and an
// optional exponent ("44302336.000", "1.5e-3", "12."); no sign but a plus. None: not such a number,
// above kLargestQuantity, or of more decimals where kExact forbids them.
std::optional<std::int64_t> scale_decimal(std::string_view number, int decimals, Rounding rounding);

}  // namespace frazil
