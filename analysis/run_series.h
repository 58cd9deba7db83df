#pragma once
// Makes curves of a run over steps or over time from its freeze trace. Each has at most some
// hundred points, so that a page stays small however long the run was.

#include <string>

#include "analysis/run_summary.h"
#include "analysis/svg/svg.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns samples per second over steps; neighbouring cost events of one phase are added up.
Series throughput_series(const std::string& name, const FreezeTrace& trace);

// Returns the predicted samples per second over steps, one value per phase that was measured.
Series predicted_series(const RunSummary& run);

enum class EvalValue {
  kTrainLoss,
  kLoss,
  kAccuracyPercent,
  kValidationLoss,
  kValidationAccuracyPercent
};
// Returns the value over steps, of those evaluations that have it.
Series eval_series(const std::string& name, const FreezeTrace& trace, EvalValue value);
// Returns the value over the seconds of training and transitions before each evaluation.
Series eval_over_time(const std::string& name, const FreezeTrace& trace, EvalValue value);

// Returns `series` less `base`, at those x that both have.
Series subtract(const Series& series, const Series& base);

bool freezes_anything(const FreezeTrace& trace);

}  // namespace frazil
