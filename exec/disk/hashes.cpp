#define XXH_INLINE_ALL
#include "exec/disk/hashes.h"

#include <xxhash.h>

namespace frazil {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH64(bytes, size, seed);
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  return hash_bytes(text.data(), text.size(), seed);
}

std::uint64_t hash_parts(const std::vector<std::string_view>& parts) {
  XXH64_state_t hash;
  XXH64_reset(&hash, 0);
  for (const std::string_view part : parts) XXH64_update(&hash, part.data(), part.size());
  return XXH64_digest(&hash);
}

std::string to_hex(std::uint64_t bits) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; bits >>= 4) text[i] = kDigits[bits & 15];
  return text;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 4 | digit;
  }
  return bits;
}

}  // namespace frazil
