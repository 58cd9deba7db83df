#pragma once
// Reads decimal numbers as other programs print them into integers of a smaller unit, without
// floating point: what the digits say is kept.

#include <cstdint>
#include <optional>
#include <string_view>

namespace frazil {

// The treatment of digits below the smallest unit: kExact refuses a number that has any but zeros,
// kNearest rounds halves up.
enum class Rounding { kExact, kNearest, kUp, kDown };

// Returns `number` x 10^decimals: "0.539" with 6 decimals is 539000. A number is digits with an
// optional point and an optional exponent ("44302336.000", "1.5e-3", "12."); the only sign is a
// plus. Returns nothing for other text, for a result above kLargestQuantity, and where kExact
// forbids the digits.
std::optional<std::int64_t> scale_decimal(std::string_view number, int decimals, Rounding rounding);

}  // namespace frazil
