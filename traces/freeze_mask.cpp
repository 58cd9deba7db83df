#include "traces/freeze_mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

constexpr std::size_t kLongestMask = 80;
constexpr const char* kExpected = "a 0 or 1 per block, and a 1 for the last, which never freezes";

bool is_mask(std::string_view text) {
  return text.find_first_not_of("01") == std::string_view::npos && !text.empty() &&
         text.back() == '1';
}

// Returns what an error says was found; a long text is told by its beginning.
std::string quote_mask(std::string_view text) {
  return fmt::format("mask \"{}{}\"", text.substr(0, kLongestMask),
                     text.size() > kLongestMask ? "..." : "");
}

std::vector<bool> bits_of(std::string_view text) {
  std::vector<bool> bits;
  for (const char bit : text) bits.push_back(bit == '1');
  return bits;
}

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
  if (!is_mask(text)) throw InputError(file, line, quote_mask(text), kExpected);
  FreezeMask mask;
  mask.active_ = bits_of(text);
  return mask;
}

FreezeMask FreezeMask::parse(const JsonCursor& bits) {
  if (!is_mask(bits.text())) bits.fail(quote_mask(bits.text()), kExpected);
  FreezeMask mask;
  mask.active_ = bits_of(bits.text());
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
