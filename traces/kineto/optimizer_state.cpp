#include "traces/kineto/optimizer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

using Known = std::pair<std::string_view, int>;
constexpr std::array<Known, 12> kKnown = {{{"adamw", 2},
                                           {"adam", 2},
                                           {"adamax", 2},
                                           {"nadam", 2},
                                           {"radam", 2},
                                           {"adadelta", 2},
                                           {"rprop", 2},
                                           {"sgd-momentum", 1},
                                           {"adagrad", 1},
                                           {"rmsprop", 1},
                                           {"sgd", 0},
                                           {"none", 0}}};

}  // namespace

std::optional<int> state_tensors(std::string_view optimizer) {
  std::string name(optimizer);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto* const known =
      std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return k.first == name; });
  if (known == kKnown.end()) return std::nullopt;
  return known->second;
}

std::vector<std::string_view> all_optimizers() {
  std::vector<std::string_view> names;
  for (const auto& [name, tensors] : kKnown) names.push_back(name);
  return names;
}

std::string_view optimizer_of_range(std::string_view range) {
  constexpr std::string_view kBegin = "Optimizer.step#";
  constexpr std::string_view kEnd = ".step";
  if (range.starts_with(kBegin)) range.remove_prefix(kBegin.size());
  if (range.ends_with(kEnd)) range.remove_suffix(kEnd.size());
  return range;
}

OptimizerState find_optimizer_state(const std::optional<std::string>& given,
                                    const std::set<std::string>& traced) {
  if (given) {
    const std::optional<int> tensors = state_tensors(*given);
    ENSURE(tensors.has_value(), "an optimizer of a known name");
    return {*tensors, std::nullopt, ""};
  }
  if (traced.empty()) {
    return {0, DoubtKind::kDefault, "none, for the trace has no optimizer; see --optimizer"};
  }
  const std::string name = to_one_line(fmt::format("{}", fmt::join(traced, " and ")));
  const std::optional<int> tensors =
      traced.size() == 1 ? state_tensors(*traced.begin()) : std::nullopt;
  if (!tensors) {
    return {0, DoubtKind::kDefault,
            fmt::format("none, for the state of {} is not known; see --optimizer", name)};
  }
  if (*tensors == 0) {
    return {0, DoubtKind::kLowerBound,
            fmt::format("{} without momentum, which the trace does not tell", name)};
  }
  return {*tensors, DoubtKind::kByRule,
          fmt::format("{} tensor{} of the size of each parameter, as {} keeps by default", *tensors,
                      *tensors == 1 ? "" : "s", name)};
}

}  // namespace frazil
