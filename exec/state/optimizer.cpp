#include "exec/state/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "profiles/error.h"

namespace frazil {
namespace {

// Parameters that share a rule, with what belongs to each of them.
struct Bundle {
  ParameterRule rule;
  Tensors parameters = {};
  Tensors gradients = {};
  Tensors first_moment = {};
  Tensors second_moment = {};
};

void make_moments(LayerState& state, const Tensors& parameters, const OptimizerConfig& config) {
  if (!state.first_moment.empty()) return;
  const int moments = optimizer_bytes_per_parameter_byte(config);
  if (moments > 0) state.first_moment = state.memory.zeros(parameters);
  if (moments > 1) state.second_moment = state.memory.zeros(parameters);
}

// A fused kernel works value by value, so parameters have the same bits in whichever call.
std::vector<Bundle> make_bundles(const LayerState& state, const Tensors& parameters,
                                 const Tensors& gradients, const std::vector<ParameterRule>& rules,
                                 const ParameterRule& rule_of_all, const std::vector<bool>& moved) {
  std::vector<Bundle> bundles;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!moved.empty() && !moved[p]) continue;
    const ParameterRule& rule = rules.empty() ? rule_of_all : rules[p];
    auto bundle = std::find_if(bundles.begin(), bundles.end(),
                               [&](const Bundle& some) { return some.rule == rule; });
    if (bundle == bundles.end()) bundle = bundles.insert(bundle, Bundle{rule});
    bundle->parameters.push_back(parameters[p]);
    bundle->gradients.push_back(gradients[p]);
    if (!state.first_moment.empty()) bundle->first_moment.push_back(state.first_moment[p]);
    if (!state.second_moment.empty()) bundle->second_moment.push_back(state.second_moment[p]);
  }
  return bundles;
}

void update_adamw(const Bundle& bundle, const OptimizerConfig& config, double rate,
                  std::int64_t update) {
  const Tensors& parameters = bundle.parameters;
  const Tensors steps(parameters.size(), at::full({}, static_cast<double>(update),
                                                  parameters.at(0).options().dtype(at::kFloat)));
  at::_fused_adamw_(parameters, bundle.gradients, bundle.first_moment, bundle.second_moment, {},
                    steps, rate, config.beta1, config.beta2, bundle.rule.weight_decay,
                    config.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

void update_sgd(const Bundle& bundle, const OptimizerConfig& config, double rate, bool first) {
  at::_fused_sgd_(bundle.parameters, bundle.gradients, bundle.first_moment,
                  bundle.rule.weight_decay, config.momentum, rate, /*dampening=*/0,
                  /*nesterov=*/false, /*maximize=*/false, first);
}

}  // namespace

void update_layer(LayerState& state, const std::vector<at::Tensor>& gradients,
                  const OptimizerConfig& config, double learning_rate,
                  const std::vector<ParameterRule>& rules, const std::vector<bool>& moved) {
  Tensors parameters = trainable_parameters(state);
  ENSURE(gradients.size() == parameters.size(), "one gradient per trainable parameter");
  ENSURE(rules.empty() || rules.size() == parameters.size(), "one rule per trainable parameter");
  ENSURE(moved.empty() || moved.size() == parameters.size(), "a word on each parameter");
  const c10::NoGradGuard no_grad;
  for (at::Tensor& parameter : parameters) parameter = parameter.detach();
  const bool first = state.first_moment.empty();
  make_moments(state, parameters, config);
  for (const Bundle& bundle : make_bundles(state, parameters, gradients, rules,
                                           {.weight_decay = config.weight_decay}, moved)) {
    const double rate = learning_rate * bundle.rule.learning_rate_scale;
    switch (config.kind) {
      case OptimizerConfig::Kind::kAdamW:
        update_adamw(bundle, config, rate, state.updates + 1);
        break;
      case OptimizerConfig::Kind::kSgd:
        update_sgd(bundle, config, rate, first);
        break;
    }
  }
  ++state.updates;
}

int optimizer_bytes_per_parameter_byte(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kAdamW:
      return 2;
    case OptimizerConfig::Kind::kSgd:
      return config.momentum == 0 ? 0 : 1;
  }
  ENSURE(false, "unknown optimizer");
}

double learning_rate(const OptimizerConfig& config, Step step, Step steps) {
  ENSURE(steps >= 1 && step >= 0 && step <= steps, "a step within its run");
  const Step warm_up = config.warm_up_steps;
  if (step < warm_up) {
    return config.learning_rate * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  }
  // A run that consists of warm-up has no steps left over which the rate could fall.
  if (steps == warm_up) return config.learning_rate;
  const auto falling = static_cast<double>(steps - warm_up);
  switch (config.schedule) {
    case RateSchedule::kCosine: {
      const double progress = static_cast<double>(step - warm_up) / falling;
      return config.learning_rate * (1 + std::cos(std::numbers::pi * progress)) / 2;
    }
    case RateSchedule::kLinear:
      return config.learning_rate * (static_cast<double>(steps - step) / falling);
    case RateSchedule::kConstant:
      return config.learning_rate;
  }
  ENSURE(false, "unknown schedule");
}

}  // namespace frazil
