#pragma once
// Fixed decimals without fmt, which torch's own headers shadow in this folder.

#include <string>

namespace frazil {

std::string fixed(double value, int decimals);

}  // namespace frazil
