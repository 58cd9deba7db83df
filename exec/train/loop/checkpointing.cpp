#include "exec/train/loop/checkpointing.h"

#include <exception>
#include <string>
#include <vector>

#include "exec/checkpoint/run_identity.h"
#include "exec/train/divergence.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"

namespace frazil {

void Checkpointing::refuse_what_follows_from_plans() const {
  const auto refuse = [](const std::string& found, const std::string& expected) {
    throw InputError("run configuration", 0,
                     found + ", so that what is learnt follows from the plans",
                     expected + " where the run keeps checkpoints");
  };
  if (parts_.config.batch_growth != BatchGrowth::kNone) {
    refuse("a batch that grows with the pipelines", "a fixed one");
  }
  if (parts_.config.local_statistics) {
    refuse("slices that normalise by statistics of their own", "\"local_statistics\": false");
  }
}

void Checkpointing::open() {
  const TrainOptions& options = parts_.options;
  if (!options.durable || durable_) return;
  const Step begun_with = options.extension ? options.extension->begun_with : parts_.steps;
  const std::string hash = model_hash(options.profile);
  durable_.emplace(*options.durable, parts_.run.model(),
                   identify_run(parts_.config, hash, parts_.data, begun_with));
}

void Checkpointing::restore() {
  if (!parts_.options.durable) return;
  refuse_what_follows_from_plans();
  // A new run writes nothing before its first plan is in force.
  if (!parts_.options.durable->resume) return;
  open();
  const std::optional<TrainingPosition> position = durable_->restore(parts_.run);
  const Step step = position ? position->step : 0;
  for (const RestoreNote& note : durable_->notes()) {
    parts_.teller.tell(step, note.text, note.is_warning);
  }
  if (const std::string bits = tell_other_bits(durable_->kernels()); !bits.empty()) {
    parts_.recorder.provenance()["other_bits"] = bits;
  }
  refuse_to_go_on(step);
  if (position) {
    begin_at(*position);
  } else {
    parts_.teller.tell(0, "there is no checkpoint to go on from: the run begins again at step 0",
                       true);
  }
}

void Checkpointing::begin_at(const TrainingPosition& position) {
  TraceRecorder& recorder = parts_.recorder;
  parts_.result.first_step = position.step;
  recorder.provenance()["resumed_from_step"] = std::to_string(position.step);
  parts_.freezing.restore(position.authority, parts_.options.durable->folder.string());
  std::vector<FreezeEvent> masks;
  for (const TracedMask& mask : parts_.freezing.masks()) {
    if (mask.step >= position.step) continue;
    FreezeEvent& event = masks.emplace_back();
    event.step = mask.step;
    event.what = MaskEvent{mask.mask};
  }
  if (const auto lost = recorder.go_on(position.step, masks)) {
    parts_.teller.tell(position.step, *lost, true);
  }
  parts_.result.first_phase = recorder.count_plans();
  recorder.begin_stretch(position.step);
  parts_.costs = position.costs;
  parts_.scores.epoch = position.epoch;
  parts_.scores.epoch_loss = position.epoch_loss;
  parts_.scores.epoch_samples = position.epoch_samples;
}

void Checkpointing::refuse_to_go_on(Step step) const {
  const TrainOptions& options = parts_.options;
  if (step > parts_.steps) {
    throw InputError(options.durable->folder.string(), 0,
                     "a run that has done " + std::to_string(step) + " steps",
                     "--steps " + std::to_string(step) + " or more");
  }
  if (!options.extension || step >= options.extension->ended_at) return;
  const std::string end = std::to_string(options.extension->ended_at);
  throw InputError(
      options.durable->folder.string(), 0,
      "a run of " + end + " steps whose newest checkpoint is of step " + std::to_string(step),
      "one that has ended, to be given more steps: --resume --steps " + end + " ends it");
}

void Checkpointing::record(Step step) {
  if (durable_) durable_->record(step, parts_.scores.last_loss, parts_.run.plan().mask);
}

void Checkpointing::save_due(Step done, bool ends_here) {
  if (!durable_) return;
  tell_saved(done);
  if (!ends_here && !durable_->is_due(done)) return;
  save(done);
  if (ends_here) {
    durable_->finish();
    phases_.keep_phase();
  }
  tell_saved(done, ends_here);
}

// Keeps the phase first: a run whose last checkpoint is there has no step left to do.
void Checkpointing::save_last() {
  if (!durable_) return;
  tell_saved(parts_.steps);
  phases_.keep_phase();
  save(parts_.steps);
}

void Checkpointing::save(Step done) {
  changes_.survive(done, [&] {
    refuse_non_finite_weights(done, parts_.run);
    durable_->save(parts_.run, position_at(done));
  });
}

// Adds the plan in force: what a drift was decided by does not bring the same one again.
std::optional<MeasuredCosts> Checkpointing::find_costs() const {
  std::optional<MeasuredCosts> costs = parts_.costs;
  if (costs)
    costs->plan = parts_.replanner.course().origin() ? "" : to_json(parts_.replanner.held());
  return costs;
}

TrainingPosition Checkpointing::position_at(Step done) const {
  const bool ends_epoch = done % parts_.steps_per_epoch == 0;
  return {.step = done,
          .steps = parts_.steps,
          .step_in_epoch = done % parts_.steps_per_epoch,
          .epoch = static_cast<int>(done / parts_.steps_per_epoch),
          .epoch_loss = ends_epoch ? 0 : parts_.scores.epoch_loss,
          .epoch_samples = ends_epoch ? 0 : parts_.scores.epoch_samples,
          .learning_rate = learning_rate(parts_.config.optimizer, done - 1, parts_.steps),
          .mask = parts_.run.plan().mask,
          .authority = parts_.freezing.to_json(),
          .costs = find_costs()};
}

// Throws if a checkpoint that was asked for is not there.
void Checkpointing::tell_saved(Step now, bool is_asked_for) {
  for (const SavedCheckpoint& saved : durable_->take_saved()) {
    if (!saved.failure) {
      parts_.recorder.log({now, CheckpointEvent{saved.time, saved.step}});
      continue;
    }
    try {
      std::rethrow_exception(saved.failure);
    } catch (const InputError& error) {
      if (is_asked_for && saved.step == now) throw;
      parts_.teller.tell(now, std::string("no checkpoint was written: ") + error.what(), true);
    }
  }
}

void Checkpointing::finish(Step done) {
  if (!durable_) return;
  durable_->finish();
  tell_saved(done);
}

}  // namespace frazil
