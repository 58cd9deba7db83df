#pragma once
// fixed() writes a number as printf's "%.*f" does: 0.25 with one decimal as "0.2", with three as
// "0.250". It stands in for fmt, which the headers of libtorch shadow in exec.

#include <string>

namespace frazil {

std::string fixed(double value, int decimals);

}  // namespace frazil
