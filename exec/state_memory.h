#pragma once
// Memory of its own for a copy of a layer's state. Copies of layers are most of what a transition
// costs, and most of a copy is touching new memory for the first time: page by page, unless the
// pages are huge. What is large comes from the system in huge pages where it has them, and goes
// back to it with the last tensor, so that layers may come and go for ever.

#include "exec/tensors.h"

namespace frazil {

// Deep copies, none of which requires a gradient. Those on the host share one block if they are 1
// MiB or more together, each 64-byte aligned. Requires contiguous tensors. Throws std::bad_alloc.
Tensors copy_to_own_memory(const Tensors& tensors);
// The same, of zeros alike in shape and type.
Tensors zeros_in_own_memory(const Tensors& tensors);

}  // namespace frazil
