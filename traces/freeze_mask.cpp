#include "traces/freeze_mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kLongestMask = 80;

}  // namespace

FreezeMask FreezeMask::all_active(int blocks) {
  ENSURE(blocks >= 1, "a freeze mask has at least one block");
  FreezeMask mask;
  mask.active_.assign(static_cast<std::size_t>(blocks), true);
  return mask;
}

FreezeMask FreezeMask::frozen_prefix(int blocks, BlockId last_frozen) {
  FreezeMask mask = all_active(blocks);
  const int frozen = std::min(last_frozen.value, blocks - 2) + 1;
  for (int block = 0; block < frozen; ++block) mask.set_active(BlockId{block}, false);
  return mask;
}

FreezeMask FreezeMask::parse(std::string_view text, const std::string& file, int line) {
  const bool fits =
      text.find_first_not_of("01") == std::string_view::npos && !text.empty() && text.back() == '1';
  if (!fits) {
    throw InputError(file, line,
                     fmt::format("mask \"{}{}\"", text.substr(0, kLongestMask),
                                 text.size() > kLongestMask ? "..." : ""),
                     "a 0 or 1 per block, the last (the head never freezes) a 1");
  }
  FreezeMask mask;
  for (const char bit : text) mask.active_.push_back(bit == '1');
  return mask;
}

void FreezeMask::set_active(BlockId block, bool active) {
  ENSURE(block.value >= 0 && block.value < blocks(), "no such block in the freeze mask");
  ENSURE(active || block.value + 1 < blocks(), "the head never freezes");
  active_[block.index()] = active;
}

int FreezeMask::frozen_count() const {
  return static_cast<int>(std::count(active_.begin(), active_.end(), false));
}

std::string FreezeMask::text() const {
  std::string text;
  for (const bool active : active_) text += active ? '1' : '0';
  return text;
}

}  // namespace frazil
