#pragma once
// Sums up what a run cost, from its freeze trace: as a whole, and phase by phase against the
// prediction. A phase reaches from one plan event to the next; a cost event belongs to the phase in
// which it begins. Ratio = predicted / measured time per step.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/memory_record.h"
#include "analysis/plan_regret.h"
#include "analysis/sampled_steps.h"
#include "analysis/time_split.h"
#include "traces/freeze_trace.h"

namespace frazil {

struct PhaseSummary {
  Step first_step = 0;
  std::string plan;
  Duration predicted_step{0};
  bool extrapolated = false;  // whether the prediction is
  std::int64_t steps = 0;     // measured ones
  std::int64_t samples = 0;
  Duration measured{0};  // sum over the steps
  // These are from the folder of the run, not from the trace.
  std::optional<MemoryRecord> memory;
  std::optional<SampledSteps> sampled;  // those that `measured_time` is a mean of
  Step window = 1;  // steps that are handed out at once, of a prediction with steps ahead
  std::optional<TimeSplit> predicted_time;
  std::optional<TimeSplit> measured_time;

  // These are none without a measured step; ratio() and predicted_rate() also without a prediction.
  std::optional<double> measured_step_ns() const;
  std::optional<double> ratio() const;
  std::optional<double> measured_rate() const;   // samples/s
  std::optional<double> predicted_rate() const;  // samples/s at this phase's samples per step
};

struct RunSummary {
  std::string name;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  Duration training{0};      // sum of the cost events
  Duration transitions{0};   // planning, moving and starting, also of the first plan
  int transition_count = 0;  // from plan to plan
  int starts = 0;            // of the run, and of each process that went on with it
  // Steps of the run without a cost event: those whose batch is short.
  std::int64_t unmeasured_steps = 0;
  std::int64_t planned_steps = 0;  // measured and unmeasured
  // The steps done of `all_steps`, if the trace is the log of a run that was interrupted or still
  // runs.
  std::optional<Step> interrupted_after;
  std::int64_t all_steps = 0;
  // Says from which step on other kernels were accepted, which give other bits; "": none were.
  std::string other_bits;
  // Says that the model file was checked to a tolerance; "": bit for bit, or the model is no file.
  std::string model_check;
  std::optional<EvalEvent> last_eval;
  int evaluations = 0;  // one at the end of each epoch
  std::vector<PhaseSummary> phases;
  std::optional<PlanRegret> regret;     // of a run that has ended, where known
  std::optional<double> foreign_cores;  // that other programs kept busy meanwhile, where known
  std::vector<std::string> doubts;      // notes on what the predictions rest on; not from the trace

  Duration total() const { return training + transitions; }
  std::optional<double> rate() const;  // samples/s over the total
  bool extrapolates() const;           // in some phase
  // Returns the sum over phases of |predicted - measured| time as a share of the measured time;
  // phases without a ratio are left out.
  std::optional<double> prediction_error() const;
};

// Sums up a trace. Throws InputError if the times of the run do not fit into 63 bits of ns.
RunSummary summarize(const std::string& name, const FreezeTrace& trace);

// Says which steps are in none of the numbers ("20 of the 900 steps are not in these means: shorter
// ones, each the last of its epoch"), or "".
std::string tell_unmeasured(const RunSummary& run);
// Says that the sampled steps of a phase end long before the phase does, so that they need not
// stand for the rest of it; or that steps come in windows, none of which was whole; or "".
std::string tell_uncovered(const PhaseSummary& phase);
// Says that the run was interrupted or still runs, and after which of how many steps, or "".
std::string tell_interrupted(const RunSummary& run);
// Says what the word "extrapolated" by a phase means.
std::string_view explain_extrapolated();
// Says why an allocator may hand out more than what is counted, or less.
std::string_view explain_allocator();

}  // namespace frazil
