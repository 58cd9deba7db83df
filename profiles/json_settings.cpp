#include "profiles/json_settings.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "profiles/error.h"
#include "profiles/known_names.h"
#include "profiles/units.h"

namespace frazil {

Given take(JsonFields& fields, const std::string& key, int minimum, int maximum, int& value) {
  Given given = fields.optional(key);
  if (given) value = static_cast<int>(given->integer(minimum, maximum));
  return given;
}

void take(JsonFields& fields, const std::string& key, Range range, double& value) {
  const Given given = fields.optional(key);
  if (!given) return;
  value = given->real(0, range == Range::kFraction ? 1 : kLargestNumber);
  if (range == Range::kPositive && value == 0) given->fail(given->describe(), "more than 0");
  if (range == Range::kFraction && value == 1) given->fail(given->describe(), "less than 1");
}

void take_seed(JsonFields& fields, std::uint64_t& seed) {
  const Given given = fields.optional("seed");
  if (given) seed = static_cast<std::uint64_t>(given->integer(0, kLargestQuantity));
}

std::size_t read_name(const Given& given, std::span<const std::string_view> names) {
  if (!given) return 0;
  const auto name = std::find_if(names.begin(), names.end(), [&](std::string_view known) {
    return is_same_name(known, given->text());
  });
  if (name == names.end()) {
    std::string expected = json_string(names[0]);
    for (std::size_t i = 1; i < names.size(); ++i) {
      expected += (i + 1 < names.size() ? ", " : " or ") + json_string(names[i]);
    }
    given->fail(given->describe(), expected + did_you_mean(given->text(), names));
  }
  return static_cast<std::size_t>(name - names.begin());
}

std::size_t take_name(JsonFields& fields, const std::string& key,
                      std::span<const std::string_view> names) {
  return read_name(fields.optional(key), names);
}

void blame(std::initializer_list<Given> keys, const std::string& expected) {
  for (const Given& key : keys) {
    if (key) key->fail(key->describe(), expected);
  }
  ENSURE(false, "defaults do not go together");
}

std::string with_value(const std::string& name, int value) {
  return name + " (" + std::to_string(value) + ")";
}

std::string seed_text(std::uint64_t seed) {
  ENSURE(seed <= static_cast<std::uint64_t>(kLargestQuantity), "a seed that a file can hold");
  return std::to_string(seed);
}

std::string number_text(double value) {
  ENSURE(value >= -kLargestNumber && value <= kLargestNumber, "a number that a file can hold");
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::string object_text(const Members& members) {
  std::string text;
  for (const auto& [key, value] : members) {
    text += (text.empty() ? "{" : ", ") + json_string(key) + ": " + value;
  }
  return text + "}";
}

}  // namespace frazil
