#pragma once
// fixed() writes a number with a fixed count of decimals, as "0.25". It stands in for fmt, which
// the headers of libtorch shadow in exec.

#include <string>

namespace frazil {

std::string fixed(double value, int decimals);

}  // namespace frazil
