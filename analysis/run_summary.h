#pragma once
// What a run cost, from its freeze trace: whole, and phase by phase against the prediction. A phase
// reaches from one plan event to the next; a cost event belongs to the phase in which it begins.
// Ratio = predicted / measured time per step.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/memory_record.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct PhaseSummary {
  Step first_step = 0;
  std::string plan;
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction
  std::int64_t steps = 0;     // measured ones
  std::int64_t samples = 0;
  Duration measured{0};                // sum over the steps
  std::optional<MemoryRecord> memory;  // not of the trace: where the run left it

  // Nothing without a measured step, or without a prediction.
  std::optional<double> measured_step_ns() const;
  std::optional<double> ratio() const;
  std::optional<double> measured_rate() const;   // samples/s
  std::optional<double> predicted_rate() const;  // samples/s at this phase's samples per step
};

struct RunSummary {
  std::string name;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  Duration training{0};     // sum of the cost events
  Duration transitions{0};  // planning, moving and starting
  int switches = 0;
  // Steps of the run without a cost: those of batches that are short.
  std::int64_t unmeasured_steps = 0;
  std::int64_t planned_steps = 0;  // measured ones and those
  // Of a log, whose run was interrupted (or runs still): the steps done of all.
  std::optional<Step> interrupted_after;
  std::int64_t all_steps = 0;
  std::optional<EvalEvent> last_eval;
  int evaluations = 0;  // one at the end of each epoch
  std::vector<PhaseSummary> phases;

  Duration total() const { return training + transitions; }
  std::optional<double> rate() const;  // samples/s over the total
  bool extrapolates() const;           // in some phase
  // Sum over phases of |predicted - measured| time, as a share of the measured one.
  std::optional<double> prediction_error() const;
};

// Throws InputError when the run's times do not fit into 63 bits of ns.
RunSummary summarize(const std::string& name, const FreezeTrace& trace);

// Which steps are in none of the numbers ("20 of the 900 steps are not in these means: shorter
// ones, each the last of its epoch"), or nothing.
std::string tell_unmeasured(const RunSummary& run);
// "interrupted after step 7 of 18 ...", or nothing.
std::string tell_interrupted(const RunSummary& run);
// What the word "extrapolated" by a phase means.
std::string_view explain_extrapolated();
// Why an allocator may hand out more than what is counted, or less.
std::string_view explain_allocator();

// A table of its phases under one line of totals, then one of memory where phases have it.
std::string to_text(const RunSummary& run);
std::string to_json(const std::vector<RunSummary>& runs);

}  // namespace frazil
