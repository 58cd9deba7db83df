#pragma once
// Compares names as people type them: the case of ASCII letters does not count, and a name that is
// not known is answered with the known name that it resembles most.

#include <span>
#include <string>
#include <string_view>

namespace frazil {

// True if the names are equal but for the case of ASCII letters.
bool is_same_name(std::string_view a, std::string_view b);

// Returns the least number of edits that turn `a` into `b`, whatever their case. An edit inserts,
// deletes or replaces a byte, or swaps two neighbours (optimal string alignment distance).
std::size_t count_edits(std::string_view a, std::string_view b);

// Returns the known name that is fewest edits away from `found`, the first of several. Returns ""
// if none is near: more than two fifths of the longer name's bytes, or more than three, differ.
// Where no name is one edit away, the first that begins with all words of `found` (three bytes or
// more, words end at '-') is returned before nearer ones; where none is near, the first that begins
// with `found`. What has more than 64 bytes resembles nothing.
std::string_view nearest_name(std::string_view found, std::span<const std::string_view> known);

// Returns the end of a refusal: "; did you mean zb-h1?", or "" if no known name is near.
std::string did_you_mean(std::string_view found, std::span<const std::string_view> known);

}  // namespace frazil
