#include "exec/train/drift/drift_control.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "exec/devices/steady_time.h"
#include "planner/plan/plan_json.h"
#include "planner/transitions/cache_residency.h"

namespace frazil {
namespace {

// How old the foreign load may be beside a step that brings nothing to light.
constexpr std::chrono::milliseconds kOldLoad{100};

bool may_watch(const TrainOptions& options) {
  return options.config.drift.is_on() && options.elastic && !options.world &&
         options.config.batch_growth == BatchGrowth::kNone;
}

}  // namespace

DriftControl::DriftControl(TrainOptions& options, TrainingParts& parts, ProcessChanges& changes,
                           PhaseChanges& phases)
    : options_(options),
      parts_(parts),
      changes_(changes),
      phases_(phases),
      is_on_(may_watch(options)),
      // Timing layers of a GPU would have the host wait for events.
      measures_layers_(options.processors.kind == DeviceKind::kCpu),
      masks_(is_on_ ? foresee_masks(options.config.freeze, parts.shape) : std::nullopt),
      profile_(options.profile),
      cluster_(options.cluster),
      scales_(no_scales(static_cast<int>(cluster_.devices.size()),
                        static_cast<int>(profile_.layers.size()))),
      detector_({.window_steps = options.config.drift.window_steps,
                 .false_alarms = options.config.drift.false_alarms,
                 .run_steps = parts.steps}) {
  if (!options.config.drift.is_on() || is_on_) return;
  parts_.teller.tell(0,
                     options.world ? "drift is not watched in a run over processes"
                                   : "drift is not watched in a run that keeps its plan",
                     /*is_warning=*/true);
}

void DriftControl::restore() {
  const std::optional<MeasuredCosts> found = std::exchange(parts_.costs, std::nullopt);
  if (!found || !is_on_) return;
  const Step step = parts_.result.first_step;
  if (found->beside != hash_costs({profile_, cluster_})) {
    parts_.teller.tell(step,
                       "what the run had found its devices and layers to take is left out: the "
                       "profile or the cluster is another one",
                       true);
    return;
  }
  set_scales(found->scales);
  if (found->plan.empty()) return;
  parts_.replanner.restore_held(parse_plan(found->plan, parts_.options.durable->folder.string()));
}

// From now on profile and cluster of the run have these costs.
void DriftControl::set_scales(CostScales scales) {
  scales_ = std::move(scales);
  parts_.replanner.renew_costs([this] {
    options_.profile = scaled(profile_, scales_);
    options_.cluster = scaled(cluster_, scales_);
  });
  parts_.costs = MeasuredCosts{scales_, hash_costs({profile_, cluster_})};
}

std::optional<DriftWatch> DriftControl::watch() const {
  if (!is_on_) return std::nullopt;
  return DriftWatch{detector_.counted(), detector_.excluded()};
}

void DriftControl::ask(Step step, Measurement& measurement) const {
  if (options_.planted.slow) options_.planted.slow(step, measurement);
  measurement.layers = measurement.layers || (is_on_ && measures_layers_ && is_due(step));
}

// Adds up the layer samples, which lack updates, as the predicted ones do.
StepCosts DriftControl::take_costs(Step step, const StepResult& result) {
  StepCosts costs{.devices = std::vector<Duration>(cluster_.devices.size()), .layers = {}};
  for (const ComputeTime& compute : result.compute) {
    costs.devices.at(compute.device.index()) += compute.time;
  }
  if (!measures_layers_ || !is_due(step)) return costs;
  std::map<std::pair<DeviceId, LayerId>, Duration> layers;
  for (const LayerSample& sample : parts_.run.take_layer_samples()) {
    if (ends_step(sample.phase)) continue;
    layers[{sample.device, sample.layer}] += sample.duration;
  }
  for (const auto& [where, time] : layers) {
    costs.layers.push_back({where.first, where.second, time});
  }
  return costs;
}

std::optional<double> DriftControl::foreign_cores(std::chrono::milliseconds age) {
  if (options_.planted.foreign_cores) return options_.planted.foreign_cores;
  return load_.cores(age);
}

void DriftControl::add_step(Step step, bool is_full, const StepResult& result) {
  if (!is_on_) return;
  StepCosts costs = take_costs(step, result);
  const Plan& plan = parts_.run.plan();
  const Watched now{.phase = parts_.result.first_phase + parts_.result.phases.size(),
                    .has_filled = plan.cache_frozen_prefix && parts_.cache.is_filled()};
  if (now != watched_) {
    watched_ = now;
    first_ = step + kColdSteps;
    predicted_ = predict_costs(plan, {options_.profile, options_.cluster});
    detector_.begin(predicted_);
    drift_.reset();
  }
  if (!is_full || step < first_) return;
  if (options_.planted.costs) costs = options_.planted.costs(step, predicted_, costs);
  drift_ = detector_.add(costs, foreign_cores(kOldLoad));
}

Step DriftControl::count_steps_to_come(Step step) const {
  Step end = parts_.steps;
  if (!masks_) return end - step;
  const auto next = std::find_if(masks_->begin(), masks_->end(),
                                 [&](const TracedMask& mask) { return mask.step > step; });
  if (next != masks_->end()) end = std::min(end, next->step);
  return end - step;
}

DriftDecision DriftControl::decide(Step step, const FreezeMask& mask, const CostScales& least) {
  const bool caches = parts_.run.plan().cache_frozen_prefix;
  const TransitionOverhead overhead = parts_.replanner.overhead().value_or(TransitionOverhead{});
  const DriftQuestion question{.held = parts_.replanner.held(),
                               .steps = count_steps_to_come(step),
                               .searched = parts_.replanner.find_best(mask, caches),
                               .step = {.clip = options_.config.optimizer.clip_norm > 0},
                               .overhead = overhead};
  const ModelProfile least_profile = scaled(profile_, least);
  const Cluster least_cluster = scaled(cluster_, least);
  return decide_on_drift(question, {options_.profile, options_.cluster},
                         {least_profile, least_cluster});
}

DriftEvent DriftControl::describe(const DriftDecision& decision, Step step) const {
  const Step steps = count_steps_to_come(step);
  DriftEvent event{.change = decision.replans ? DriftChange::kReplanned : DriftChange::kDeclined,
                   .steps = steps,
                   .held_step = decision.held_step,
                   .excluded = detector_.excluded(),
                   .devices_ppm = scales_.device_ppm,
                   .layers_ppm = scales_.layer_ppm,
                   .reason = drift_->what,
                   .note = explain(decision, steps)};
  if (const DriftProposal* const best = decision.chosen()) {
    event.by = name_of(best->by);
    event.best_step = best->step;
    event.transition = best->transition;
  }
  return event;
}

void DriftControl::follow(Step step) {
  if (!drift_) return;
  // The last windows may have been beside a load that was not seen then.
  if (foreign_cores(std::chrono::milliseconds(0)).value_or(0) > kMostCoresBesideWindow) {
    detector_.exclude_outside();
    drift_.reset();
    return;
  }
  const SteadyTime start = std::chrono::steady_clock::now();
  const CostScales least = with_drift(scales_, drift_->least);
  set_scales(with_drift(scales_, drift_->now));
  const FreezeMask mask = parts_.run.plan().mask;
  const DriftDecision decision = decide(step, mask, least);
  const DriftEvent event = describe(decision, step);
  drift_.reset();
  parts_.recorder.note({step, event});
  parts_.teller.tell(step, "drift: " + event.reason + ", " + std::string(name_of(event.change)) +
                               ": " + event.note);
  detector_.restart();
  parts_.result.training_time += since(start);
  if (!decision.replans) return;
  const Plan& plan = decision.chosen()->plan;
  const bool caches = plan.cache_frozen_prefix;
  parts_.replanner.take(mask,
                        {plan, caches ? parts_.replanner.find_best(mask, false) : std::nullopt});
  phases_.change_phase(step, [&] { return changes_.transition_to(mask, step); });
}

}  // namespace frazil
