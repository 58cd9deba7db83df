#pragma once
// Logical bytes of tensors: their elements', whatever storage they share.

#include <cstdint>

#include "exec/tensors/tensors.h"

namespace frazil {

std::int64_t count_bytes(const Tensors& tensors);

}  // namespace frazil
