#include "exec/state/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <numbers>

#include "profiles/error.h"

namespace frazil {
namespace {

void update_adamw(LayerState& state, const std::vector<at::Tensor>& parameters,
                  const std::vector<at::Tensor>& gradients, const OptimizerConfig& config,
                  double learning_rate) {
  if (state.first_moment.empty()) {
    state.first_moment = state.memory.zeros(parameters);
    state.second_moment = state.memory.zeros(parameters);
  }
  const std::vector<at::Tensor> steps(parameters.size(),
                                      at::full({}, static_cast<double>(state.updates + 1),
                                               parameters.at(0).options().dtype(at::kFloat)));
  at::_fused_adamw_(parameters, gradients, state.first_moment, state.second_moment, {}, steps,
                    learning_rate, config.beta1, config.beta2, config.weight_decay, config.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
}

void update_sgd(LayerState& state, const std::vector<at::Tensor>& parameters,
                const std::vector<at::Tensor>& gradients, const OptimizerConfig& config,
                double learning_rate) {
  const bool first = state.first_moment.empty();
  if (config.momentum != 0 && first) state.first_moment = state.memory.zeros(parameters);
  at::_fused_sgd_(parameters, gradients, state.first_moment, config.weight_decay, config.momentum,
                  learning_rate, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, first);
}

}  // namespace

void update_layer(LayerState& state, const std::vector<at::Tensor>& gradients,
                  const OptimizerConfig& config, double learning_rate) {
  ENSURE(gradients.size() == state.parameters.size(), "one gradient per parameter");
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;
  parameters.reserve(state.parameters.size());
  for (const at::Tensor& parameter : state.parameters) parameters.push_back(parameter.detach());
  switch (config.kind) {
    case OptimizerConfig::Kind::kAdamW:
      update_adamw(state, parameters, gradients, config, learning_rate);
      break;
    case OptimizerConfig::Kind::kSgd:
      update_sgd(state, parameters, gradients, config, learning_rate);
      break;
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
