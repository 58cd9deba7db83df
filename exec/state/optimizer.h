#pragma once
// update_layer() takes one optimizer step of one layer, in place: libtorch's fused AdamW
// (Loshchilov & Hutter 2019) or SGD with momentum (Sutskever et al. 2013, PyTorch's form without
// dampening). It is a pure function of state, gradients and rate, so owners that hold the same bits
// before hold the same bits after.

#include <ATen/core/Tensor.h>

#include <vector>

#include "exec/state/layer_state.h"
#include "exec/state/parameter_groups.h"
#include "profiles/units.h"

namespace frazil {

// How the learning rate goes on after the warm-up: along half a cosine to 0, along a line to 0, or
// as it is.
enum class RateSchedule { kCosine, kLinear, kConstant };

struct OptimizerConfig {
  enum class Kind { kAdamW, kSgd };
  Kind kind = Kind::kAdamW;
  double learning_rate = 2e-3;
  double weight_decay = 0.2;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;  // of SGD
  RateSchedule schedule = RateSchedule::kCosine;
  int warm_up_steps = 0;  // first steps: the rate rises to learning_rate in equal parts
  double clip_norm = 0;   // limit of the global gradient norm; 0: no clipping
  std::vector<ParameterGroup> groups = {};  // the first that matches a parameter's name holds
  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

// Updates a layer. `gradients[i]` belongs to the i-th trainable parameter, same shape, contiguous;
// gradients may be overwritten. `rules` has one rule for each of them, as find_rules() gives them;
// if it is empty, config.weight_decay and the plain rate apply to all. `moved` says which of them
// the step moves (LayerSpec::moved), all if it is empty; the others keep value and moments. The
// bias correction of AdamW goes by the updates of the layer. Requires: the layer is active.
void update_layer(LayerState& state, const std::vector<at::Tensor>& gradients,
                  const OptimizerConfig& config, double learning_rate,
                  const std::vector<ParameterRule>& rules = {},
                  const std::vector<bool>& moved = {});

// Returns the bytes of optimizer state per byte of trainable parameters: 2 for AdamW, 1 for SGD
// with momentum, else 0.
int optimizer_bytes_per_parameter_byte(const OptimizerConfig& config);

// Returns the learning rate of a step (0-based) of a run of `steps` that begins with w
// warm_up_steps: rate x (step + 1) / w for step < w, and from step w on
//   kCosine    rate x (1 + cos(pi (step - w) / (steps - w))) / 2
//   kLinear    rate x (steps - step) / (steps - w)
//   kConstant  rate
// After the warm-up kLinear is get_linear_schedule_with_warmup of Hugging Face's transformers.
// Within it that schedule has rate x step / w, so that its first step changes nothing; here step s
// has what step s + 1 has there, and no step is lost.
double learning_rate(const OptimizerConfig& config, Step step, Step steps);

}  // namespace frazil
