#pragma once
// A freeze mask says which blocks train: one bit per block, block 0 first, 1 = active ("0001111").

#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

class JsonCursor;

class FreezeMask {
 public:
  FreezeMask() = default;
  static FreezeMask all_active(int blocks);
  // Freezes blocks 0..last_frozen and leaves the rest active; PipeTransformer's L_f = k >= 1 is
  // frozen_prefix(blocks, BlockId{k}). The head (last block) never freezes: last_frozen is clamped.
  static FreezeMask frozen_prefix(int blocks, BlockId last_frozen);
  // Throw InputError unless the text is one or more bits of 0 and 1 and the last bit is 1.
  static FreezeMask parse(std::string_view text, const std::string& file, int line);
  static FreezeMask parse(const JsonCursor& bits);

  int blocks() const { return static_cast<int>(active_.size()); }
  bool is_active(BlockId block) const { return active_.at(block.index()); }
  bool is_frozen(BlockId block) const { return !is_active(block); }
  void set_active(BlockId block, bool active);
  int frozen_count() const;
  std::string text() const;

  friend bool operator==(const FreezeMask&, const FreezeMask&) = default;

 private:
  std::vector<bool> active_;
};

}  // namespace frazil
