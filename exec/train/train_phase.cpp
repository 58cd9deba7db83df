#include "exec/train/train_phase.h"

#include <algorithm>
#include <utility>

#include "exec/devices/host_facts.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"

namespace frazil {
namespace {

constexpr std::size_t kMostSampledSteps = 40;

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
  const int devices = static_cast<int>(options.cluster.devices.size());
  const SimulatedStep simulated = simulate_step(plan, {options.profile, options.cluster},
                                                {.clip = options.config.optimizer.clip_norm > 0});
  PlanSimulation simulation = summarize(simulated, devices);
  refuse_overflow(simulation.memory, options.cluster, file);
  BegunPhase begun;
  begun.memory = predict_memory(simulated, {options.profile, options.cluster});
  TrainPhase& phase = begun.phase;
  phase.first_step = first;
  phase.plan = plan;
  phase.predicted = std::move(simulation.timeline);
  phase.predicted_step = simulation.makespan;
  phase.extrapolated = simulation.extrapolated;
  phase.measured.devices = devices;
  return begun;
}

bool is_sampled(const TrainPhase& phase, Step step) {
  const Step into = step - phase.first_step - kColdSteps;
  return into >= 0 && into % phase.sampled_every == 0;
}

void keep_sample(TrainPhase& phase, const StepResult& step) {
  phase.measured.spans.insert(phase.measured.spans.end(), step.spans.begin(), step.spans.end());
  if (step.clock_uncertainty) {
    phase.clock_uncertainty =
        std::max(*step.clock_uncertainty, phase.clock_uncertainty.value_or(kNoTime));
  }
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
