#pragma once
// Reads numbers strictly from environment variables: what is there must be a whole number in its
// range, and a refusal names variable and value.

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace frazil {

inline constexpr int kMostProcesses = 1'000'000;
inline constexpr int kMostPort = 65'535;

class LaunchVariables {
 public:
  explicit LaunchVariables(const std::map<std::string, std::string>& variables)
      : variables_(variables) {}

  bool has(const std::string& name) const { return variables_.contains(name); }
  // Returns the value; empty if the variable is not set.
  std::string text(const std::string& name) const;
  // Returns none if the variable is not set. Throws InputError unless least <= value <= most.
  std::optional<int> find(const std::string& name, int least, int most) const;
  // As find(), and throws InputError if the variable is not set although `because` is.
  int need(const std::string& name, const std::string& because, int least, int most) const;
  // Reads process number and count, which must both be there. Requires: one of them is set.
  std::pair<int, int> pair(const std::string& number, const std::string& count) const;

 private:
  const std::map<std::string, std::string>& variables_;
};

// Reads a whole decimal number without sign, space or leading zero; none for anything else.
std::optional<int> parse_count(std::string_view text);

// Throws InputError: found `found` in the environment, expected `expected`.
[[noreturn]] void refuse_variables(const std::string& found, const std::string& expected);

}  // namespace frazil
