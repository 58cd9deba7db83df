#include "exec/train/train_phase.h"

#include <algorithm>
#include <utility>

#include "exec/devices/host_facts.h"
#include "planner/freezing/freeze_authority.h"
#include "planner/plan/step_window.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"

namespace frazil {
namespace {

constexpr std::size_t kMostSampledSteps = 40;
constexpr std::size_t kLeastSampledWindows = 3;

// Returns why the devices of a run wait for each other after each step although the plan would let
// them go ahead; none where they go ahead, or the plan has no steps ahead.
std::optional<std::string> explain_in_step(const Plan& plan, const TrainOptions& options,
                                           const StepOptions& step) {
  StepMeetings meetings = find_step_meetings(plan, {options.profile, options.cluster}, step);
  if (options.world) meetings.commits = true;
  if (auto why = explain_in_step(plan, meetings)) return why;
  const FreezeConfig& freeze = options.config.freeze;
  const bool decides = !needed_signals(freeze).empty() || needs_prediction(freeze);
  if (plan.steps_ahead == 0 || !decides) return std::nullopt;
  return "freezing is decided by what each step has given, so no device goes ahead";
}

bool is_window_due(const TrainPhase& phase, Step first) {
  if (phase.measured.spans.empty()) return true;
  const Step before = phase.measured.spans.back().action.step - phase.window + 1;
  return first - before >= phase.sampled_every;
}

// Drops sampled windows until there are few, and those that are left lie `sampled_every` apart.
void thin_windows(TrainPhase& phase) {
  const std::size_t most =
      std::max(kLeastSampledWindows, kMostSampledSteps / static_cast<std::size_t>(phase.window));
  std::vector<Step> windows = windows_of(phase.measured, phase.window);
  if (windows.size() <= most) return;
  while (windows.size() > most) {
    phase.sampled_every *= 2;
    std::vector<Step> kept;
    for (const Step first : windows) {
      if (kept.empty() || first - kept.back() >= phase.sampled_every) kept.push_back(first);
    }
    windows = std::move(kept);
  }
  std::erase_if(phase.measured.spans, [&](const Span& span) {
    const auto after = std::upper_bound(windows.begin(), windows.end(), span.action.step);
    return after == windows.begin() || span.action.step - *(after - 1) >= phase.window;
  });
}

double rate(std::int64_t samples, Duration time) {
  if (time.count() == 0) return 0;
  return static_cast<double>(samples) / std::chrono::duration<double>(time).count();
}

}  // namespace

double TrainPhase::predicted_samples_per_second() const {
  return rate(plan.batch_size, predicted_step);
}

double TrainPhase::measured_samples_per_second() const {
  return rate(steps * plan.batch_size, measured_time);
}

BegunPhase predict_phase(Step first, const Plan& plan, const TrainOptions& options,
                         const std::string& file) {
  const Setting setting{options.profile, options.cluster};
  const StepOptions step{.clip = options.config.optimizer.clip_norm > 0};
  const SimulatedStep simulated = simulate_step(plan, setting, step);
  const std::optional<std::string> in_step = explain_in_step(plan, options, step);
  PlanSimulation simulation =
      simulate_window(simulated, in_step ? 1 : count_window(plan, setting, step), setting);
  refuse_overflow(simulation.memory, options.cluster, file);
  BegunPhase begun;
  begun.memory = predict_memory(simulated, setting);
  TrainPhase& phase = begun.phase;
  phase.first_step = first;
  phase.plan = plan;
  phase.predicted = std::move(simulation.timeline);
  phase.predicted_step = simulation.step_time;
  phase.window = simulation.steps;
  phase.in_step = in_step.value_or("");
  phase.extrapolated = simulation.extrapolated;
  phase.measured.devices = static_cast<int>(options.cluster.devices.size());
  return begun;
}

bool is_sampled(const TrainPhase& phase, Step step) {
  const Step into = step - phase.first_step - kColdSteps;
  if (phase.window > 1) return into >= 0 && is_window_due(phase, step);
  return into >= 0 && into % phase.sampled_every == 0;
}

void keep_sample(TrainPhase& phase, const StepResult& step) {
  phase.measured.spans.insert(phase.measured.spans.end(), step.spans.begin(), step.spans.end());
  if (step.clock_uncertainty) {
    phase.clock_uncertainty =
        std::max(*step.clock_uncertainty, phase.clock_uncertainty.value_or(kNoTime));
  }
  if (phase.window > 1) return thin_windows(phase);
  if (steps_of(phase.measured).size() <= kMostSampledSteps) return;
  phase.sampled_every *= 2;
  std::erase_if(phase.measured.spans,
                [&](const Span& span) { return !is_sampled(phase, span.action.step); });
}

MemoryRecord add_measured(MemoryRecord record, Step step, std::vector<MeasuredMemory> measured) {
  record.step = step;
  record.process_peak_resident = peak_resident();
  for (MeasuredMemory& memory : measured) {
    DeviceMemory& device = record.devices.at(memory.device.index());
    device.measured = {memory.total_peak, memory.peak, std::move(memory.curve)};
    device.allocator_peak = memory.allocator_peak;
  }
  return record;
}

}  // namespace frazil
