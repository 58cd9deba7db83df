#include "exec/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

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

}  // namespace frazil
