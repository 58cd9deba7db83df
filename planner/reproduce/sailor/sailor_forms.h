#pragma once
// clang-format off
// Forms of a prediction with a few constants, to be fitted to measured plans:
//   four constants   the simulator: shares of a call's fixed cost and of its cost per sample, a
//                    share of the bandwidth between replicas, time per message
//   three constants  the simulator: a share of all layer times, time per message, time per step
//   plain loop       no simulator: a share of (micro-batches + stages - 1) x the sum of the layer
//                    times of the slowest stage as they were measured, time for each of its
//                    messages, time per step
// Which of them carries to plans that no fit has seen depends on what was measured: where small
// micro-batches time the host, the lines of the first form are needed; where a step has a cost of
// its own, the others know it. So the form is chosen (planner/reproduce/leave_one_out.h).
// clang-format on

#include <functional>
#include <string_view>
#include <vector>

#include "planner/reproduce/leave_one_out.h"
#include "planner/reproduce/sailor/sailor_prediction.h"
#include "profiles/import/sailor_folder.h"

namespace frazil {

struct NamedConstant {
  std::string_view key;
  double value = 0;
  std::string_view does;
};

struct SailorForm {
  std::string_view name;
  FittedModel model;
  std::function<std::vector<NamedConstant>(const Choice&)> constants;
};

// The predictor must outlive the forms.
std::vector<SailorForm> list_forms(const SailorPredictor& predictor, const SailorFolder& folder);

}  // namespace frazil
