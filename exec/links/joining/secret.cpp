#include "exec/links/joining/secret.h"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <cerrno>

#include "profiles/error.h"

namespace frazil {
namespace {

std::optional<int> hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return std::nullopt;
}

}  // namespace

Secret draw_secret() {
  Secret secret{};
  std::size_t drawn = 0;
  while (drawn < secret.size()) {
    const ssize_t got = ::getrandom(secret.data() + drawn, secret.size() - drawn, 0);
    ENSURE(got > 0 || errno == EINTR, "the system has random numbers");
    if (got > 0) drawn += static_cast<std::size_t>(got);
  }
  return secret;
}

bool is_same_secret(const Secret& a, const Secret& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_digits(const Secret& token) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const std::uint8_t byte : token) {
    digits += kDigits[byte / 16];
    digits += kDigits[byte % 16];
  }
  return digits;
}

std::optional<Secret> parse_digits(std::string_view text) {
  if (text.size() != 2 * kSecretBytes) return std::nullopt;
  Secret secret{};
  for (std::size_t i = 0; i < kSecretBytes; ++i) {
    const std::optional<int> high = hex_value(text[2 * i]);
    const std::optional<int> low = hex_value(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    secret[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return secret;
}

}  // namespace frazil
