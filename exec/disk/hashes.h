#pragma once
// Hashes, and the bits of numbers as text of 16 hex digits, for the files of a run.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// Both return XXH64.
std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed = 0);
std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0);
// Returns the hash of the parts, one behind the other.
std::uint64_t hash_parts(const std::vector<std::string_view>& parts);

std::string to_hex(std::uint64_t bits);
// Reads exactly 16 digits 0-9, a-f; returns none for anything else.
std::optional<std::uint64_t> parse_hex(std::string_view text);

}  // namespace frazil
