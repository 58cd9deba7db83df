#pragma once
// Secrets as hex digits, as they stand in files.

#include <optional>
#include <string>
#include <string_view>

#include "exec/links/joining/join_token.h"

namespace frazil {

std::string to_digits(const Secret& secret);
// Reads exactly 64 digits 0-9, a-f, A-F; returns none for anything else.
std::optional<Secret> parse_digits(std::string_view text);

}  // namespace frazil
