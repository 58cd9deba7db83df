#pragma once
// Curves of a run over steps or over time, from its freeze trace; at most some hundred points each,
// so that a page stays small however long the run was.

#include <string>

#include "analysis/svg/svg.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Samples per second over steps; neighbouring cost events of one phase are added up.
Series throughput_series(const std::string& name, const FreezeTrace& trace);

enum class EvalValue {
  kTrainLoss,
  kLoss,
  kAccuracyPercent,
  kValidationLoss,
  kValidationAccuracyPercent
};
// Of the evaluations that have the value.
Series eval_series(const std::string& name, const FreezeTrace& trace, EvalValue value);
// Over seconds of training and transitions before the evaluation.
Series eval_over_time(const std::string& name, const FreezeTrace& trace, EvalValue value);

bool freezes_anything(const FreezeTrace& trace);

}  // namespace frazil
