#pragma once
// 32 bytes that nobody can guess: a token, a key that follows from one, a nonce, or a proof.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace frazil {

inline constexpr std::size_t kSecretBytes = 32;
using Secret = std::array<std::uint8_t, kSecretBytes>;

// Returns random bytes of the system (getrandom).
Secret draw_secret();
// Compares in a time that does not depend on where the two differ.
bool is_same_secret(const Secret& a, const Secret& b);

std::string to_digits(const Secret& secret);
// Reads exactly 64 digits 0-9, a-f, A-F; returns none for anything else.
std::optional<Secret> parse_digits(std::string_view text);

}  // namespace frazil
