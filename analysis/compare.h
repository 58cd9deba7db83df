#pragma once
// Compares predicted with measured: two time lines are joined by (stage, kind), by step, and as a
// whole. Ratio = predicted / measured.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/timeline.h"

namespace frazil {

// Mean duration of one kind of action on one stage of one pipeline.
struct ActionRow {
  PipelineId pipeline;
  StageId stage;
  ActionKind kind = ActionKind::kForward;
  std::int64_t count = 0;  // measured spans
  Duration predicted{0};   // mean per span
  Duration measured{0};    // trimmed mean per span (ratio_interval.h)
  double ratio() const;    // 1 when both are 0, infinite when only `measured` is
};

// A measured step, or a window of steps that were handed out at once
// (planner/plan/step_window.h).
struct StepRow {
  Step step = 0;          // the first of the window
  Duration predicted{0};  // makespan; of a window, divided by its steps
  Duration measured{0};
};

struct Comparison {
  Step window = 1;             // the steps of the prediction
  Duration predicted_step{0};  // makespan of the prediction; of a window, divided by its steps
  Duration measured_step{0};   // trimmed mean over the measured steps
  double step_ratio = 1;
  std::vector<ActionRow> actions;  // by (pipeline, stage, kind)
  std::vector<StepRow> steps;
  // Actions that have no counterpart in any step of the other side, as text; if there are more than
  // 20, the first 20 and then "and 5 more". Waits (lane receive) and host overhead have no
  // counterpart and are left out.
  std::vector<std::string> only_predicted;
  std::vector<std::string> only_measured;
};

// Returns how many steps a prediction holds: 1, or those of a window.
Step count_window(const Timeline& predicted);

// Compares `predicted`, which holds one step at most, or one window of steps, with `measured`, any
// number of steps or windows of the same plan. Kinds that only one side has make no row; their
// actions are in the lists. A pair counts for the stage of its forward half.
Comparison compare(const Timeline& predicted, const Timeline& measured);

// Says what the measured time of a kind of action holds beside or instead of work, such as
// "with waiting for the other devices", or "".
std::string_view remark_on(ActionKind kind);

std::string to_json(const Comparison& comparison);  // one object, times in ns

// Reads a time line that must hold one step, or the steps 0, 1, ... of one window: a prediction.
// Throws InputError.
Timeline read_prediction(const std::filesystem::path& path);
// Reads a time line that must hold at least one step: a measurement. Throws InputError.
Timeline read_measured_steps(const std::filesystem::path& path);

// Returns the measured step, or the first step of the window, whose makespan is the lower median;
// none if no step was measured.
std::optional<Step> representative_step(const Comparison& comparison);

}  // namespace frazil
