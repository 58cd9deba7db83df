#pragma once
// Logical bytes of tensors are those of their elements, whatever storage the tensors share; an
// undefined tensor has none.

#include <cstdint>

#include "exec/tensors/tensors.h"

namespace frazil {

std::int64_t count_bytes(const Tensors& tensors);

}  // namespace frazil
