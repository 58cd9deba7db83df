#pragma once
// Reads and writes the settings of a JSON object: members that may be left out, with ranges, names
// out of a closed list, and errors for members that do not go together. Shared by the readers of
// configurations, so that all refuse a value in the same words.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/json.h"

namespace frazil {

inline constexpr double kLargestNumber = 1e9;  // of a number that is no count
inline constexpr int kLargestCount = 1 << 20;  // of epochs, widths, samples in a batch

// The value that the file gives for a key, if it does.
using Given = std::optional<JsonCursor>;

// Puts the given whole number in the place of `value`, which stays where the key is left out.
// Throws InputError outside [minimum, maximum].
Given take(JsonFields& fields, const std::string& key, int minimum, int maximum, int& value);

// kPositive leaves out 0, kFraction leaves out 1.
enum class Range { kPositive, kNotNegative, kFraction };
// Puts the given number in the place of `value`. Throws InputError outside the range.
void take(JsonFields& fields, const std::string& key, Range range, double& value);

// Puts the given "seed" in the place of `seed`.
void take_seed(JsonFields& fields, std::uint64_t& seed);

// Return the place of the given name among the known ones, 0 where it is left out: the default of
// every such field. Throw InputError, with a guess at what was meant, for another name.
std::size_t read_name(const Given& given, std::span<const std::string_view> names);
std::size_t take_name(JsonFields& fields, const std::string& key,
                      std::span<const std::string_view> names);

// Throws InputError for keys that do not go together: the error stands at the first of `keys` that
// the file gives. Requires: the file gives one, as the defaults go together.
[[noreturn]] void blame(std::initializer_list<Given> keys, const std::string& expected);

// Returns "patch (3)".
std::string with_value(const std::string& name, int value);

// Returns the shortest text that is read back as the same number. Requires: a magnitude of
// at most kLargestNumber.
std::string number_text(double value);

// Returns the text of a seed. Requires: at most kLargestQuantity, as a file can hold.
std::string seed_text(std::uint64_t seed);

// The members of an object with the texts of their values, in the order of the file.
using Members = std::vector<std::pair<std::string, std::string>>;
// Returns {"key": value, ...} on one line.
std::string object_text(const Members& members);

}  // namespace frazil
