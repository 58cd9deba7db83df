#define XXH_INLINE_ALL
#include "analysis/check/hash_stream.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

namespace frazil {

struct HashStream::State {
  XXH64_state_t hash;
};

HashStream::HashStream(std::uint64_t seed) : state_(std::make_unique<State>()) {
  XXH64_reset(&state_->hash, seed);
}
HashStream::~HashStream() = default;
HashStream::HashStream(HashStream&&) noexcept = default;
HashStream& HashStream::operator=(HashStream&&) noexcept = default;

void HashStream::add(std::string_view bytes) {
  XXH64_update(&state_->hash, bytes.data(), bytes.size());
}

std::uint64_t HashStream::value() const { return XXH64_digest(&state_->hash); }

std::uint64_t hash_of(std::string_view bytes, std::uint64_t seed) {
  HashStream hash(seed);
  hash.add(bytes);
  return hash.value();
}

std::string hex_text(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::optional<std::uint64_t> read_hex(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

}  // namespace frazil
