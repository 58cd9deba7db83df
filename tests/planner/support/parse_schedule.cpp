#include "tests/planner/support/parse_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

// Splits at spaces that are not inside the parentheses of one action.
std::vector<std::string_view> split_actions(std::string_view text) {
  std::vector<std::string_view> actions;
  std::size_t first = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ' ' && depth <= 0)) {
      if (i > first) actions.push_back(text.substr(first, i - first));
      first = i + 1;
    } else if (text[i] == '(' || text[i] == ')') {
      depth += text[i] == '(' ? 1 : -1;
    }
  }
  return actions;
}

}  // namespace

Schedule parse_schedule(std::string_view text, const std::string& file) {
  Schedule schedule;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view actions = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string head = fmt::format("d{}:", schedule.devices.size());
    if (actions.substr(0, head.size()) != head) {
      throw InputError(file, line, fmt::format("`{}`", actions), fmt::format("`{} ...`", head));
    }
    std::vector<Action>& list = schedule.devices.emplace_back();
    for (const std::string_view action : split_actions(actions.substr(head.size()))) {
      list.push_back(parse_action(action, file, line));
    }
  }
  return schedule;
}

}  // namespace frazil
