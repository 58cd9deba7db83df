#include "analysis/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/tables/table.h"
#include "planner/prediction/answer_parts.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

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

// Returns "the start and 2 transitions".
std::string name_transitions(const RunSummary& run) {
  const std::string count = count_of(run.transition_count, "transition");
  if (run.starts == 0) return count;
  const std::string starts = run.starts == 1 ? "the start" : fmt::format("{} starts", run.starts);
  return run.transition_count == 0 ? starts : starts + " and " + count;
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

std::string text_or_dash(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

std::optional<double> ms_of(std::optional<double> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1e6;
  return nanoseconds;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Table tabulate_phases(const RunSummary& run) {
  Table table{.header = {"from step", "steps", "plan", "predicted ms", "measured ms", "ratio",
                         "predicted samples/s", "measured samples/s"},
              .rows = {}};
  const bool extrapolates = run.extrapolates();
  if (extrapolates) table.header.push_back("");
  for (const PhaseSummary& phase : run.phases) {
    table.rows.push_back({std::to_string(phase.first_step), std::to_string(phase.steps), phase.plan,
                          text_or_dash(to_ms(phase.predicted_step), 3),
                          text_or_dash(ms_of(phase.measured_step_ns()), 3),
                          text_or_dash(phase.ratio(), 3), text_or_dash(phase.predicted_rate(), 1),
                          text_or_dash(phase.measured_rate(), 1)});
    if (extrapolates) table.rows.back().push_back(phase.extrapolated ? "extrapolated" : "");
  }
  return table;
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
      add_transition(*transition, starts.is_start(), run);
    } else if (const auto* eval = std::get_if<EvalEvent>(&event.what)) {
      run.last_eval = *eval;
      ++run.evaluations;
    }
  }
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
  return "allocator: all that libtorch handed out in the device's thread, so also what an action "
         "makes and frees again before it ends; a message counts with its sender";
}

std::string to_text(const RunSummary& run) {
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()) / 1e9; };
  std::string text =
      fmt::format("{}: {}, {} samples in {:.3f} s ({:.3f} s of it in {}), {} samples/s", run.name,
                  count_of(run.steps, "step"), run.samples, seconds(run.total()),
                  seconds(run.transitions), name_transitions(run), text_or_dash(run.rate(), 1));
  if (run.last_eval) text += fmt::format(", accuracy {:.2f} %", 100 * run.last_eval->accuracy);
  if (run.last_eval && run.last_eval->validation) {
    text +=
        fmt::format(", validation accuracy {:.2f} %", 100 * run.last_eval->validation->accuracy);
  }
  text += "\n";
  if (run.interrupted_after) text += tell_interrupted(run) + "\n";
  if (!run.other_bits.empty()) text += run.other_bits + "\n";
  if (run.phases.empty()) return text;
  text += to_text(tabulate_phases(run));
  if (run.extrapolates()) text += std::string(explain_extrapolated()) + "\n";
  if (run.unmeasured_steps > 0) text += tell_unmeasured(run) + "\n";
  std::vector<std::pair<Step, const MemoryRecord*>> memories;
  for (const PhaseSummary& phase : run.phases) {
    if (phase.memory) memories.emplace_back(phase.first_step, &*phase.memory);
  }
  if (memories.empty()) return text;
  return text + "memory of a step, predicted / measured where they differ (process: " +
         to_text(memories.back().second->process_peak_resident) + " resident at most)\n" +
         to_text(tabulate_memory(memories)) + std::string(explain_allocator()) + "\n";
}

std::string to_json(const std::vector<RunSummary>& runs) {
  Json list = Json::array();
  for (const RunSummary& run : runs) {
    Json phases = Json::array();
    for (const PhaseSummary& phase : run.phases) {
      phases.push_back({{"first_step", phase.first_step},
                        {"steps", phase.steps},
                        {"samples", phase.samples},
                        {"plan", phase.plan},
                        {"predicted_step_ns", phase.predicted_step.count()},
                        {"measured_step_ns", number_or_null(phase.measured_step_ns())},
                        {"ratio", number_or_null(phase.ratio())}});
      if (phase.extrapolated) phases.back()["extrapolated"] = true;
      if (phase.memory) phases.back()["memory"] = Json::parse(peaks_json(*phase.memory));
    }
    Json item = {{"name", run.name},
                 {"steps", run.steps},
                 {"unmeasured_steps", run.unmeasured_steps},
                 {"samples", run.samples},
                 {"training_ns", run.training.count()},
                 {"transitions_ns", run.transitions.count()},
                 {"transitions", run.transition_count},
                 {"samples_per_second", number_or_null(run.rate())},
                 {"prediction_error", number_or_null(run.prediction_error())}};
    if (!run.other_bits.empty()) item["other_bits"] = run.other_bits;
    if (run.interrupted_after) {
      item["interrupted_after_step"] = *run.interrupted_after;
      item["all_steps"] = run.all_steps;
    }
    if (run.last_eval) {
      item["loss"] = run.last_eval->loss;
      item["accuracy"] = run.last_eval->accuracy;
      if (const auto& validation = run.last_eval->validation) {
        item["validation_loss"] = validation->loss;
        item["validation_accuracy"] = validation->accuracy;
      }
    }
    item["phases"] = phases;
    list.push_back(item);
  }
  return Json{{"runs", list}}.dump(2) + "\n";
}

}  // namespace frazil
