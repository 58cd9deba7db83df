#pragma once
// StateMemory gives the states of layers memory of their own. Copying states is most of what a
// transition costs, and most of a copy is touching new memory for the first time: page by page,
// unless the pages are huge. Large blocks come from the system in huge pages where it has them. A
// memory that keeps holds on to blocks that layers give up, for the next request: these are touched
// already.

#include <memory>
#include <optional>
#include <vector>

#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// A handle: copies of a StateMemory share what is kept. Any thread may use it.
class StateMemory {
 public:
  // Makes a memory that keeps nothing: a block goes back to the system with its last tensor.
  StateMemory() = default;
  // Makes a memory that keeps. Held by tensors and kept together, it never has more than tensors
  // have held at once, or than reserve() was asked for beside what tensors held then.
  static StateMemory keeping();

  // Returns deep copies, none of which requires a gradient. Copies of tensors on the host share one
  // block of pages, each 64-byte aligned. Requires: contiguous tensors. Throws std::bad_alloc.
  Tensors copy(const Tensors& tensors) const;
  // Returns zeros alike in shape and type, allocated as copy() does.
  Tensors zeros(const Tensors& tensors) const;

  // Returns the size of the block that a copy of these tensors would take; 0: a copy takes none.
  static Bytes block_of(const Tensors& tensors);
  // Makes sure that a block of each of these sizes is kept, touched, as far as the system gives
  // blocks. Does nothing for a memory that keeps nothing.
  void reserve(const std::vector<Bytes>& blocks) const;

  struct Usage {
    Bytes held;  // by tensors
    Bytes kept;  // for the next request
  };
  Usage usage() const;  // 0 for a memory that keeps nothing

 private:
  class Block;
  class Pool;
  std::shared_ptr<Block> take(Bytes bytes) const;
  std::optional<Tensors> make_alike(const Tensors& tensors, bool is_zero) const;

  std::shared_ptr<Pool> pool_;  // none: nothing is kept
};

}  // namespace frazil
