#include "exec/links/joining/launch_variables.h"

#include <charconv>
#include <utility>

#include "profiles/error.h"

namespace frazil {

void refuse_variables(const std::string& found, const std::string& expected) {
  throw InputError("environment", 0, to_one_line(found), expected);
}

std::optional<int> parse_count(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string LaunchVariables::text(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::string() : found->second;
}

std::optional<int> LaunchVariables::find(const std::string& name, int least, int most) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  const std::optional<int> value = parse_count(found->second);
  if (!value || *value < least || *value > most) {
    refuse_variables(name + "=" + found->second, "a whole number from " + std::to_string(least) +
                                                     " to " + std::to_string(most));
  }
  return value;
}

int LaunchVariables::need(const std::string& name, const std::string& because, int least,
                          int most) const {
  const std::optional<int> value = find(name, least, most);
  if (!value) refuse_variables(because + " without " + name, "both of them, or none");
  return *value;
}

std::pair<int, int> LaunchVariables::pair(const std::string& number,
                                          const std::string& count) const {
  const int processes = need(count, number, 1, kMostProcesses);
  const int process = need(number, count, 0, kMostProcesses);
  if (process >= processes) {
    refuse_variables(number + "=" + text(number) + " beside " + count + "=" + text(count),
                     "a " + number + " below " + count);
  }
  return {process, processes};
}

}  // namespace frazil
