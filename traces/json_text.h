#pragma once
// Checks numbers and resolves strings, the two text forms inside JSON that JsonStream does not walk
// through.

#include <optional>
#include <string>
#include <string_view>

namespace frazil {

// Says whether `text` is a number by RFC 8259, section 6: no leading zeros or plus, digits on both
// sides of a point.
bool is_json_number(std::string_view text);

// Resolves the escapes of the text between two quotes; returns none when one is unknown to JSON.
// Lone surrogates become U+FFFD.
std::optional<std::string> unescape_json(std::string_view raw);

}  // namespace frazil
