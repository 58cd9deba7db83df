#include "analysis/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/foreign_cores.h"
#include "planner/prediction/answer_parts.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::int64_t add_checked(std::int64_t a, std::int64_t b, const std::string& run) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw InputError(run, 0, "costs whose sum does not fit into 63 bits",
                     "the costs of one run of training");
  }
  return sum;
}

Duration add_checked(Duration a, Duration b, const std::string& run) {
  return Duration{add_checked(a.count(), b.count(), run)};
}

void add_cost(const CostEvent& cost, RunSummary& run) {
  run.steps = add_checked(run.steps, cost.steps, run.name);
  run.samples = add_checked(run.samples, cost.samples, run.name);
  run.training = add_checked(run.training, cost.measured, run.name);
  if (run.phases.empty()) return;
  // These sums are no larger than the sums of the run, which were checked.
  PhaseSummary& phase = run.phases.back();
  phase.steps += cost.steps;
  phase.samples += cost.samples;
  phase.measured += cost.measured;
}

// Tells transitions from plan to plan from the starts of a process, which have the same event: a
// process begins with a plan although the mask is that of the plan before, or there is none before.
// A transition whose times are predicted is one from plan to plan.
class Starts {
 public:
  void see(const MaskEvent& event) { mask_ = event.mask.text(); }
  void see_plan(bool is_first) {
    is_start_ = is_first || (!mask_.empty() && mask_ == planned_);
    planned_ = mask_;
  }
  bool is_start() const { return is_start_; }

 private:
  std::string mask_;  // in force; empty: the trace tells of none
  std::string planned_;
  bool is_start_ = false;
};

void add_transition(const TransitionEvent& transition, bool is_start, RunSummary& run) {
  for (const Duration part : {transition.plan_time, transition.move_time, transition.start_time}) {
    run.transitions = add_checked(run.transitions, part, run.name);
  }
  ++(is_start ? run.starts : run.transition_count);
}

// Returns how many steps a log tells of.
Step count_logged(const FreezeTrace& log) {
  Step done = 0;
  for (const FreezeEvent& event : log.events) {
    if (std::holds_alternative<StepEvent>(event.what)) done = event.step + 1;
  }
  return done;
}

// Counts the steps of a run, from that of its first event to its end, planned or not, and those
// without a cost.
void count_unmeasured(const FreezeTrace& trace, RunSummary& run) {
  if (trace.events.empty()) return;
  const Step end = run.interrupted_after.value_or(trace.steps);
  run.planned_steps = std::max<Step>(end - trace.events.front().step, run.steps);
  run.unmeasured_steps = run.planned_steps - run.steps;
}

std::optional<double> per_second(std::int64_t samples, double nanoseconds) {
  if (nanoseconds <= 0) return std::nullopt;
  return static_cast<double>(samples) * 1e9 / nanoseconds;
}

}  // namespace

std::optional<double> PhaseSummary::measured_step_ns() const {
  if (steps <= 0 || measured <= Duration{0}) return std::nullopt;
  return static_cast<double>(measured.count()) / static_cast<double>(steps);
}

std::optional<double> PhaseSummary::ratio() const {
  const std::optional<double> step = measured_step_ns();
  if (!step || predicted_step <= Duration{0}) return std::nullopt;
  return static_cast<double>(predicted_step.count()) / *step;
}

std::optional<double> PhaseSummary::measured_rate() const {
  return per_second(samples, static_cast<double>(measured.count()));
}

std::optional<double> PhaseSummary::predicted_rate() const {
  return per_second(samples,
                    static_cast<double>(predicted_step.count()) * static_cast<double>(steps));
}

std::optional<double> RunSummary::rate() const {
  return per_second(samples, static_cast<double>(total().count()));
}

bool RunSummary::extrapolates() const {
  return std::any_of(phases.begin(), phases.end(),
                     [](const PhaseSummary& phase) { return phase.extrapolated; });
}

std::optional<double> RunSummary::prediction_error() const {
  double apart = 0;
  double measured = 0;
  for (const PhaseSummary& phase : phases) {
    if (!phase.ratio()) continue;
    const double predicted =
        static_cast<double>(phase.predicted_step.count()) * static_cast<double>(phase.steps);
    apart += std::abs(predicted - static_cast<double>(phase.measured.count()));
    measured += static_cast<double>(phase.measured.count());
  }
  if (measured <= 0) return std::nullopt;
  return apart / measured;
}

RunSummary summarize(const std::string& name, const FreezeTrace& trace) {
  RunSummary run;
  run.name = name;
  run.all_steps = trace.steps;
  if (const auto bits = trace.provenance.find("other_bits"); bits != trace.provenance.end()) {
    run.other_bits = bits->second;
  }
  if (const auto check = trace.provenance.find("model_file");
      check != trace.provenance.end() && check->second.find("tolerance") != std::string::npos) {
    run.model_check = "the model file was " + check->second + ", not bit for bit";
  }
  if (trace.open) run.interrupted_after = count_logged(trace);
  Starts starts;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* plan = std::get_if<PlanEvent>(&event.what)) {
      PhaseSummary phase;
      phase.first_step = event.step;
      phase.plan = plan->summary.empty() ? plan->plan : plan->summary;
      phase.predicted_step = plan->predicted_step;
      phase.extrapolated = plan->extrapolated;
      starts.see_plan(run.phases.empty());
      run.phases.push_back(phase);
    } else if (const auto* mask = std::get_if<MaskEvent>(&event.what)) {
      starts.see(*mask);
    } else if (const auto* cost = std::get_if<CostEvent>(&event.what)) {
      add_cost(*cost, run);
    } else if (const auto* transition = std::get_if<TransitionEvent>(&event.what)) {
      add_transition(*transition, starts.is_start() && !transition->predicted, run);
    } else if (const auto* eval = std::get_if<EvalEvent>(&event.what)) {
      run.last_eval = *eval;
      ++run.evaluations;
    }
  }
  run.regret = find_regret(trace.provenance);
  run.foreign_cores = find_foreign_cores(trace.provenance);
  count_unmeasured(trace, run);
  add_checked(run.training, run.transitions, name);
  return run;
}

std::string tell_unmeasured(const RunSummary& run) {
  if (run.unmeasured_steps == 0) return "";
  const bool one = run.unmeasured_steps == 1;
  std::string text = fmt::format("{} of the {} {} not in these means", run.unmeasured_steps,
                                 count_of(run.planned_steps, "step"), one ? "is" : "are");
  if (run.unmeasured_steps > run.evaluations) return text;
  return text + (one ? ": a shorter one, the last of its epoch"
                     : ": shorter ones, each the last of its epoch");
}

std::string tell_uncovered(const PhaseSummary& phase) {
  constexpr Step kLeast = 8;
  if (!phase.sampled) {
    if (phase.window == 1 || phase.steps <= phase.window) return "";
    return fmt::format(
        "no time lines of the phase from step {} were measured: after its first steps, which are "
        "cold, none of its windows of {} steps was whole; an evaluation, a checkpoint, a step that "
        "measures something else or the end of the phase came before",
        phase.first_step, phase.window);
  }
  const Step end = phase.first_step + phase.steps;
  if (end - phase.sampled->last <= 4 * std::max(phase.sampled->every, kLeast)) return "";
  return fmt::format(
      "time lines of the phase from step {} are of {} alone, of a phase of {} steps: they need not "
      "stand for the rest",
      phase.first_step, describe(*phase.sampled), phase.steps);
}

std::string tell_interrupted(const RunSummary& run) {
  if (!run.interrupted_after) return "";
  return fmt::format(
      "interrupted, or running still: this is of the first {} of {} steps; a run with checkpoints "
      "goes on with frazil train --resume",
      *run.interrupted_after, run.all_steps);
}

std::string_view explain_extrapolated() {
  return "extrapolated: predicted beyond the micro-batch sizes that were measured";
}

std::string_view explain_allocator() {
  return "peak total: what stages keep beyond an action, counted alike on both sides; allocator: "
         "all that libtorch handed out in the device's thread, so also what an action makes and "
         "frees again before it ends; a message counts with its sender";
}

}  // namespace frazil
