#include "exec/state/parameter_groups.h"

#include <algorithm>

namespace frazil {
namespace {

const std::string& name_of(const ParameterSpec& parameter, const ModelSpec& model) {
  if (parameter.tied.empty()) return parameter.name;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& use : layer.parameters) {
      if (use.tied == parameter.tied) return use.name;
    }
  }
  return parameter.name;
}

// Returns the position of the first group that matches the name, or the number of groups.
std::size_t find_group(const std::vector<ParameterGroup>& groups, const std::string& name) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& group) {
    return matches(group.match, name);
  });
  return static_cast<std::size_t>(found - groups.begin());
}

// What a group matches, whatever groups are before it.
struct GroupUse {
  bool rules = false;
  bool is_trained = false;
  bool is_named = false;  // a parameter by the name that decides
};

std::vector<GroupUse> find_uses(const std::vector<ParameterGroup>& groups, const ModelSpec& model) {
  std::vector<GroupUse> uses(groups.size());
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      const std::string& name = name_of(parameter, model);
      const std::size_t first = find_group(groups, name);
      for (std::size_t g = first; g < groups.size(); ++g) {
        if (!matches(groups[g].match, name)) continue;
        uses[g].is_named = true;
        uses[g].is_trained = uses[g].is_trained || parameter.trainable;
        uses[g].rules = uses[g].rules || (parameter.trainable && g == first);
      }
    }
  }
  return uses;
}

}  // namespace

// A star is tried with nothing first. After a mismatch the last star takes one more character;
// earlier stars need not be tried again, since the last one can stand for whatever they could.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::optional<std::size_t> star;
  std::size_t taken = 0;  // where the part of the name that the star stands for ends
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star) {
      p = *star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<ParameterRule> find_rules(const std::vector<ParameterGroup>& groups,
                                      double weight_decay, const ModelSpec& model, LayerId layer) {
  std::vector<ParameterRule> rules;
  if (groups.empty()) return rules;
  for (const ParameterSpec& parameter : model.layers[layer.index()].parameters) {
    if (!parameter.trainable) continue;
    const std::string& name = name_of(parameter, model);
    const std::size_t g = find_group(groups, name);
    rules.push_back(g == groups.size()
                        ? ParameterRule{.weight_decay = weight_decay}
                        : ParameterRule{groups[g].weight_decay, groups[g].learning_rate_scale});
  }
  return rules;
}

std::optional<std::size_t> find_unmatched(const std::vector<ParameterGroup>& groups,
                                          const ModelSpec& model) {
  const auto is_matched = [&](const ParameterGroup& group) {
    return std::any_of(model.layers.begin(), model.layers.end(), [&](const LayerSpec& layer) {
      return std::any_of(
          layer.parameters.begin(), layer.parameters.end(),
          [&](const ParameterSpec& parameter) { return matches(group.match, parameter.name); });
    });
  };
  const auto unmatched = std::find_if_not(groups.begin(), groups.end(), is_matched);
  if (unmatched == groups.end()) return std::nullopt;
  return static_cast<std::size_t>(unmatched - groups.begin());
}

std::vector<std::string> tell_idle_groups(const std::vector<ParameterGroup>& groups,
                                          const ModelSpec& model) {
  std::vector<std::string> sentences;
  const std::vector<GroupUse> uses = find_uses(groups, model);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (uses[g].rules) continue;
    const char* const reason =
        uses[g].is_trained ? "groups before it have all parameters that it matches"
        : uses[g].is_named ? "none of the parameters that it matches is trained"
                           : "what it matches is tied to a parameter of another name";
    sentences.push_back("the parameter group `" + groups[g].match + "` changes nothing: " + reason);
  }
  return sentences;
}

}  // namespace frazil
