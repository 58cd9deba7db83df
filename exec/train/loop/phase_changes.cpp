#include "exec/train/loop/phase_changes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "exec/devices/steady_time.h"
#include "planner/freezing/signal_memory.h"
#include "planner/plan/commit_round.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The next mask is looked for every so many steps, twice as far ahead. That is time enough to
// prepare.
constexpr Step kForeseen = 32;

}  // namespace

void PhaseChanges::decide(Step first, Step step) {
  const SteadyTime start = std::chrono::steady_clock::now();
  FreezeControl::Before before{std::move(parts_.scores.gradient_squares), 0,
                               parts_.scores.validation};
  for (Step place = first; place <= step; ++place) {
    before.learning_rate =
        learning_rate(parts_.config.optimizer, std::min(place, parts_.steps - 1), parts_.steps);
    FreezeControl::Decided decided =
        changes_.survive(place, [&] { return parts_.freezing.decide(place, before); });
    if (place == first || decided.decision.changed) decided_ = std::move(decided);
  }
  parts_.result.training_time += since(start);
}

void PhaseChanges::follow_policy(Step step) {
  if (step == parts_.result.first_step) {
    begin_run(step);
    return;
  }
  const FreezeMask& mask = decided_.decision.mask;
  if (mask == parts_.run.plan().mask && !parts_.plans.leaves(step)) {
    if (step >= foreseen_ + kForeseen) foresee(step, 2 * kForeseen);
    note_decision(step);
    return;
  }
  change_phase(step, [&] { return changes_.transition_to(mask, step); });
  foresee(step, kForeseen);
}

void PhaseChanges::begin_run(Step step) {
  TransitionEvent transition;
  change_phase(step, [&] {
    ElasticPlan::Transitioned begun = changes_.transition_to(decided_.decision.mask, step);
    transition = begun.transition;
    begin_files_();
    return begun;
  });
  changes_.survive(step, [&] { parts_.plans.find_overhead(transition); });
  // Going to the plan again forgets what its step is expected to take.
  const TrainPhase& phase = parts_.result.phases.back();
  parts_.run.expect_step(phase.predicted_step, static_cast<int>(phase.window));
  foresee(step, kForeseen);
}

void PhaseChanges::change_phase(Step step,
                                const std::function<ElasticPlan::Transitioned()>& transition) {
  // What was measured so far in the epoch belongs to the phase before.
  parts_.recorder.end_stretch();
  keep_phase();
  const SteadyTime start = std::chrono::steady_clock::now();
  begin_phase(step, transition());
  parts_.result.training_time += since(start);
  parts_.recorder.begin_stretch(step);
}

void PhaseChanges::begin_phase(Step step, ElasticPlan::Transitioned begun_phase) {
  TrainResult& result = parts_.result;
  predicted_memory_ = std::move(begun_phase.begun.memory);
  const std::size_t number = result.first_phase + result.phases.size();
  const std::string file = "phase-" + std::to_string(number) + "/plan.json";
  note_devices(step, begun_phase.begun.phase.plan);
  result.phases.push_back(std::move(begun_phase.begun.phase));
  const TrainPhase& phase = result.phases.back();
  const Plan& plan = phase.plan;
  parts_.run.expect_step(phase.predicted_step, static_cast<int>(phase.window));
  keep_phase();
  note_decision(step);
  const int grown = plan.batch_size == parts_.config.batch_size ? 0 : plan.batch_size;
  parts_.recorder.note(
      {step, PlanEvent{file, summarize(plan), phase.predicted_step, phase.extrapolated, grown}});
  parts_.recorder.note({step, begun_phase.transition});
  parts_.cache.begin(plan, step);
  note_cache(parts_);
  parts_.teller.tell(step, "mask " + plan.mask.text() + ": " + summarize(plan) +
                               parts_.cache.describe(plan, parts_.options.profile));
  if (!phase.in_step.empty()) parts_.teller.tell(step, phase.in_step);
}

// Tells which of the devices that are there a plan stops and begins to use. Their workers wait in
// between, so that nothing is made anew when they are asked back.
void PhaseChanges::note_devices(Step step, const Plan& plan) {
  const std::vector<DeviceId> there = parts_.run.devices_there();
  const std::vector<DeviceId> used = list_used_devices(plan);
  const std::vector<DeviceId> before =
      parts_.result.phases.empty() ? there : list_used_devices(parts_.result.phases.back().plan);
  const auto has = [](const std::vector<DeviceId>& devices, DeviceId device) {
    return std::binary_search(devices.begin(), devices.end(), device);
  };
  DevicesEvent released{.change = DevicesChange::kReleased};
  DevicesEvent asked_back{.change = DevicesChange::kAskedBack};
  for (const DeviceId device : there) {
    if (has(before, device) && !has(used, device)) released.devices.push_back(device);
    if (!has(before, device) && has(used, device)) asked_back.devices.push_back(device);
  }
  for (const DevicesEvent& event : {released, asked_back}) {
    if (!event.devices.empty()) parts_.recorder.note({step, event});
  }
}

void PhaseChanges::keep_phase() {
  const TrainOptions& options = parts_.options;
  const TrainResult& result = parts_.result;
  if (!options.durable || !options.keep_phase || result.phases.empty()) return;
  const TrainPhase& phase = result.phases.back();
  const std::size_t number = result.first_phase + result.phases.size() - 1;
  try {
    options.keep_phase(phase, number);
  } catch (const InputError& error) {
    parts_.teller.tell(
        phase.first_step,
        "phase " + std::to_string(number) + " was not kept: " + std::string(error.what()), true);
  }
}

void PhaseChanges::foresee(Step step, Step within) {
  foreseen_ = step;
  parts_.plans.expect(parts_.freezing.foresee(within));
}

// Notes a decision only if it changes the mask, has read signals or has another author: most
// change nothing.
void PhaseChanges::note_decision(Step step) {
  const Decision& decision = decided_.decision;
  const std::map<std::string, double> signals = list_signals(decided_.signals);
  const bool is_told = step == parts_.result.first_step || decision.changed || !signals.empty() ||
                       decision.by != decided_by_;
  if (decision.by != decided_by_ && decision.by == kNoRoom) {
    parts_.teller.tell(step, decision.reason, true);
  }
  decided_by_ = decision.by;
  if (!signals.empty()) parts_.recorder.note({step, SignalsEvent{signals}});
  if (is_told) parts_.recorder.note({step, MaskEvent{decision.mask, decision.by, decision.reason}});
}

}  // namespace frazil
