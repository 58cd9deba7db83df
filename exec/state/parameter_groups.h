#pragma once
// Parameter groups give some parameters, chosen by name, a weight decay and a learning rate of
// their own, as the groups of torch.optim do: biases and norms without decay, a head that learns
// faster.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/models/model.h"

namespace frazil {

struct ParameterGroup {
  // Of whole names: "*" stands for any characters, none included, and "?" for one.
  std::string match;
  double weight_decay = 0;
  double learning_rate_scale = 1;  // times the rate of the step
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// How the optimizer treats one parameter.
struct ParameterRule {
  double weight_decay = 0;
  double learning_rate_scale = 1;
  friend bool operator==(const ParameterRule&, const ParameterRule&) = default;
};

bool matches(std::string_view pattern, std::string_view name);

// Returns the rules of a layer's trainable parameters, in order: that of the first group that
// matches the name, else `weight_decay` at the plain rate. A tied parameter takes the rule of its
// first use, so that all copies change alike. Returns none where there are no groups.
std::vector<ParameterRule> find_rules(const std::vector<ParameterGroup>& groups,
                                      double weight_decay, const ModelSpec& model, LayerId layer);

// Returns the position of the first group that matches no parameter of the model.
std::optional<std::size_t> find_unmatched(const std::vector<ParameterGroup>& groups,
                                          const ModelSpec& model);

// Returns a sentence for each group that matches a parameter and yet rules none: earlier groups
// have all that it matches, or none of that is trained, or it is tied to a parameter that is first
// used under another name.
std::vector<std::string> tell_idle_groups(const std::vector<ParameterGroup>& groups,
                                          const ModelSpec& model);

}  // namespace frazil
