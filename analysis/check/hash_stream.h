#pragma once
// XXH64 over bytes that come one after another, as the files of a run have it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace frazil {

class HashStream {
 public:
  explicit HashStream(std::uint64_t seed = 0);
  ~HashStream();
  HashStream(HashStream&&) noexcept;
  HashStream& operator=(HashStream&&) noexcept;

  void add(std::string_view bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t hash_of(std::string_view bytes, std::uint64_t seed = 0);

// Both have exactly 16 digits 0-9, a-f.
std::string hex_text(std::uint64_t number);
std::optional<std::uint64_t> read_hex(std::string_view text);

}  // namespace frazil
