#pragma once
// Says how much state the optimizers of torch.optim keep, as tensors of the size of a parameter.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/doubt.h"

namespace frazil {

// Returns the tensors that an optimizer keeps for each parameter: 2 for adam, adamw, adamax, nadam,
// radam, adadelta and rprop; 1 for sgd-momentum, adagrad and rmsprop; 0 for sgd and none. Case does
// not count. Nothing for any other name. An option that adds state (amsgrad, or the momentum of
// RMSprop) is not seen; counters of a few bytes do not count.
std::optional<int> state_tensors(std::string_view optimizer);

// The names that state_tensors() knows.
std::vector<std::string_view> all_optimizers();

// Returns the class in the name of the profiler's range "Optimizer.step#AdamW.step": "AdamW".
std::string_view optimizer_of_range(std::string_view range);

struct OptimizerState {
  int tensors = 0;
  std::optional<DoubtKind> doubt;  // none: the user said so
  std::string reason;
};

// Returns the state of the optimizer that the user named, else of the only one whose steps are in
// the trace. Nothing is taken where nobody tells. Requires: a given name that is known.
OptimizerState find_optimizer_state(const std::optional<std::string>& given,
                                    const std::set<std::string>& traced);

}  // namespace frazil
