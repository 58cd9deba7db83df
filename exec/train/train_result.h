#pragma once
// What a training run tells while it lasts, and what it answers with when it has ended.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/cache/cache_report.h"
#include "exec/train/train_phase.h"
#include "planner/freezing/signals.h"
#include "profiles/units.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct TrainResult {
  FreezeTrace trace;
  std::vector<TrainPhase> phases;
  double loss = 0;  // on the test part, after the last step
  double accuracy = 0;
  std::optional<Validation> validation;  // likewise, where there are samples to validate with
  Duration training_time{0};             // steps, re-planning and moving; not evaluation
  std::uint64_t weight_hash = 0;
  Bytes process_peak_resident;          // from the start of the process
  std::optional<double> foreign_cores;  // kept busy by other programs meanwhile
  std::optional<CacheReport> cache;     // where the run has one
  // Of this process, whose phases these are. The trace is that of the whole run, as far as its log
  // has the steps before; of them it has the masks alone otherwise.
  Step first_step = 0;
  std::size_t first_phase = 0;     // how many the trace has before
  std::optional<Step> stopped_at;  // done when it was asked to stop; evaluated if its epoch is over
};

// What to tell a person while it runs.
struct TrainProgress {
  Step step = 0;
  Step steps = 0;
  int epoch = 0;
  double loss = 0;                 // of the last step
  std::optional<double> accuracy;  // of the last evaluation
  std::optional<Validation> validation = {};
  std::string event;        // "blocks 0-2 frozen: 1 stage x 2 pipelines, ..." or empty
  bool is_warning = false;  // the event is of something that went wrong
};

}  // namespace frazil
