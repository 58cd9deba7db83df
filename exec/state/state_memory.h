#pragma once
// Memory of their own for the states of layers. Copying them is most of what a transition costs,
// and most of a copy is touching new memory for the first time: page by page, unless the pages are
// huge. What is large comes from the system in huge pages where it has them. A memory that keeps
// holds on to what layers give up, for the next that asks: that is touched already.

#include <memory>
#include <optional>
#include <vector>

#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// A handle: copies share what is kept. Safe from any thread.
class StateMemory {
 public:
  // Keeps nothing: what it gives goes back to the system with its last tensor.
  StateMemory() = default;
  // Held by tensors and kept, it never has more than tensors have held at once, or than it was to
  // reserve beside what they held.
  static StateMemory keeping();

  // Deep copies, none of which requires a gradient. Those on the host share one block of pages,
  // each 64-byte aligned. Requires contiguous tensors. Throws std::bad_alloc.
  Tensors copy(const Tensors& tensors) const;
  // The same, of zeros alike in shape and type.
  Tensors zeros(const Tensors& tensors) const;

  // The block that a copy of these would take; 0: none.
  static Bytes block_of(const Tensors& tensors);
  // Sees to it that a block of each of these sizes is kept, touched, as far as the system gives
  // them. Does nothing for a memory that keeps nothing.
  void reserve(const std::vector<Bytes>& blocks) const;

  struct Usage {
    Bytes held;  // by tensors
    Bytes kept;  // for the next that asks
  };
  Usage usage() const;  // of a memory that keeps

 private:
  class Block;
  class Pool;
  std::shared_ptr<Block> take(Bytes bytes) const;
  std::optional<Tensors> make_alike(const Tensors& tensors, bool is_zero) const;

  std::shared_ptr<Pool> pool_;  // none: nothing is kept
};

}  // namespace frazil
