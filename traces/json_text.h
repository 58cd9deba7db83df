#pragma once
// The two text forms inside JSON that a stream does not walk through: numbers and strings.

#include <optional>
#include <string>
#include <string_view>

namespace frazil {

// RFC 8259, section 6: no leading zeros or plus, digits on both sides of a point.
bool is_json_number(std::string_view text);

// What stands between quotes, with its escapes resolved; none when one is unknown to JSON. Lone
// surrogates become U+FFFD.
std::optional<std::string> unescape_json(std::string_view raw);

}  // namespace frazil
