#include "exec/train/trainer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "analysis/foreign_cores.h"
#include "exec/checkpoint/run_identity.h"
#include "exec/config/configured_run.h"
#include "exec/data/sample_loader.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/host_facts.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/fixed.h"
#include "exec/run/run.h"
#include "exec/train/cache_control.h"
#include "exec/train/divergence.h"
#include "exec/train/plans/elastic_plan.h"
#include "exec/train/freeze_control.h"
#include "exec/train/processes/process_changes.h"
#include "exec/train/processes/silences.h"
#include "exec/train/plans/replanner.h"
#include "exec/train/trace_recorder.h"
#include "exec/train/train_phase.h"
#include "planner/freezing/signal_memory.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The next mask is looked for every so many steps, twice as far ahead. That is time enough to
// prepare.
constexpr Step kForeseen = 32;

constexpr const char* kGrows =
    "the batch grows with the pipelines, as PipeTransformer's: losses and weights follow from the "
    "plans, the learning rate is that of the configured batch";

RunWorld make_world(const TrainOptions& options, Silences& silences) {
  if (!options.world) return one_process(static_cast<int>(options.cluster.devices.size()));
  RunWorld world = options.world();
  world.warn = [&silences](const Silence& silence) { silences.note(silence); };
  return world;
}

class Training {
 public:
  Training(const TrainOptions& options, const Dataset& data,
           const std::function<void(const TrainProgress&)>& progress)
      : options_(options),
        config_(options.config),
        data_(data),
        progress_(progress),
        places_{data.train.count(), config_.batch_size},
        steps_per_epoch_(places_.of_epoch()),
        steps_(count_steps(options, data)),
        loader_(data.train, loader_config(config_)),
        silences_([this](const Silence& silence) { tell_silence(silence); }),
        run_(make_model(config_), config_.optimizer, config_.seed, make_world(options, silences_),
             run_options(config_, options.processors)),
        cache_(options, shape(), run_, data.train),
        replanner_(options, data.train.count()),
        plans_(options, run_, cache_, replanner_),
        changes_(run_, plans_, recorder_, silences_,
                 {.change_phase = [this](Step step, const auto& to) { change_phase(step, to); },
                  .tell = [this](Step step, const std::string& sentence,
                                 bool is_warning) { tell(step, sentence, is_warning); }}),
        freezing_(config_.freeze, shape(), data.train, run_, replanner_),
        recorder_(describe_run(options, steps_, run_.devices()), options.event_log) {
    ENSURE(!config_.freeze.decorators.guard || data.validation.count() > 0,
           "a validation guard is given samples to validate with");
    if (config_.batch_growth == BatchGrowth::kWithPipelines) tell(0, kGrows);
    if (options.durable) refuse_growth();
    // A new run writes nothing before its first plan is in force.
    if (options.durable && options.durable->resume) restore();
    if (result_.first_step < steps_) decide(result_.first_step, result_.first_step);
  }

  TrainResult run() {
    Step next = 0;
    for (Step step = result_.first_step; step < steps_; step = next) {
      if (step % steps_per_epoch_ == 0) begin_epoch(static_cast<int>(step / steps_per_epoch_));
      follow_policy(step);
      changes_.take_in(step);
      do {
        next = try_step(step);
      } while (next == step);
      const bool is_last = next == steps_;
      if (durable_) durable_->record(step, last_loss_, run_.plan().mask);
      if (is_last || next % steps_per_epoch_ == 0) end_epoch(next);
      if (is_last && !durable_) break;
      // The decision comes before the checkpoint, which then needs no signals of the step. That of
      // the end is for those who give the run more steps.
      decide(step + 1, next);
      if (is_last) keep_last();
      if (is_last || keep(next)) break;
    }
    if (result_.first_step == steps_) evaluate(steps_);
    const Step done = result_.stopped_at.value_or(steps_);
    changes_.survive(done, [&] { refuse_non_finite_weights(done, run_); });
    if (durable_) {
      durable_->finish();
      tell_saved(done);
    }
    if (options_.keep_weights) keep_weights(done);
    result_.weight_hash = changes_.survive(done, [&] { return run_.weight_hash(); });
    result_.process_peak_resident = peak_resident();
    note_foreign_load();
    result_.cache = cache_.report();
    cache_.end(done);
    note_cache();
    result_.trace = recorder_.take_trace();
    return std::move(result_);
  }

 private:
  RunShape shape() const {
    return {.blocks = static_cast<int>(options_.profile.blocks.size()),
            .steps = steps_,
            .steps_per_epoch = steps_per_epoch_,
            .seed = config_.seed};
  }

  void refuse_growth() const {
    if (config_.batch_growth == BatchGrowth::kNone) return;
    throw InputError("run configuration", 0,
                     "a batch that grows with the pipelines, so that "
                     "what is learnt follows from the plans",
                     "a fixed one where the run keeps checkpoints");
  }

  void open_checkpoints() {
    const Step begun_with = options_.extension ? options_.extension->begun_with : steps_;
    const std::string hash = model_hash(options_.profile);
    durable_.emplace(*options_.durable, run_.model(),
                     identify_run(config_, hash, data_, begun_with));
  }

  void restore() {
    open_checkpoints();
    const std::optional<TrainingPosition> position = durable_->restore(run_);
    for (const RestoreNote& note : durable_->notes()) {
      tell(position ? position->step : 0, note.text, note.is_warning);
    }
    if (const std::string bits = tell_other_bits(durable_->kernels()); !bits.empty()) {
      recorder_.provenance()["other_bits"] = bits;
    }
    refuse_to_go_on(position ? position->step : 0);
    if (!position) {
      tell(0, "there is no checkpoint to go on from: the run begins again at step 0", true);
      return;
    }
    result_.first_step = position->step;
    recorder_.provenance()["resumed_from_step"] = std::to_string(position->step);
    freezing_.restore(position->authority, options_.durable->folder.string());
    std::vector<FreezeEvent> masks;
    for (const TracedMask& mask : freezing_.masks()) {
      if (mask.step >= position->step) continue;
      FreezeEvent& event = masks.emplace_back();
      event.step = mask.step;
      event.what = MaskEvent{mask.mask};
    }
    if (const auto lost = recorder_.go_on(position->step, masks)) tell(position->step, *lost, true);
    result_.first_phase = recorder_.count_plans();
    begin_epoch(position->epoch);
    recorder_.begin_stretch(position->step);
    train_loss_ = position->epoch_loss;
    epoch_samples_ = position->epoch_samples;
  }

  // Refuses a checkpoint beyond the end of the run, and one before the end that the run had when it
  // was given more steps.
  void refuse_to_go_on(Step step) const {
    if (step > steps_) {
      throw InputError(options_.durable->folder.string(), 0,
                       "a run that has done " + std::to_string(step) + " steps",
                       "--steps " + std::to_string(step) + " or more");
    }
    if (!options_.extension || step >= options_.extension->ended_at) return;
    const std::string end = std::to_string(options_.extension->ended_at);
    throw InputError(
        options_.durable->folder.string(), 0,
        "a run of " + end + " steps whose newest checkpoint is of step " + std::to_string(step),
        "one that has ended, to be given more steps: --resume --steps " + end + " ends it");
  }

  // Checkpoints if one is due. Returns true if the run is to end here.
  bool keep(Step done) {
    const bool stops = options_.stop && options_.stop();
    if (stops) result_.stopped_at = done;
    if (durable_) keep_checkpoint(done, stops);
    return stops;
  }

  void keep_checkpoint(Step done, bool stops) {
    tell_saved(done);
    if (!stops && !durable_->is_due(done)) return;
    save(done);
    if (stops) {
      durable_->finish();
      keep_phase();
    }
    tell_saved(done, stops);
  }

  // Keeps the phase first: a run whose last checkpoint is there has no step left to do.
  void keep_last() {
    tell_saved(steps_);
    keep_phase();
    save(steps_);
  }

  void save(Step done) {
    changes_.survive(done, [&] {
      refuse_non_finite_weights(done, run_);
      durable_->save(run_, position_at(done));
    });
  }

  TrainingPosition position_at(Step done) const {
    const bool ends_epoch = done % steps_per_epoch_ == 0;
    return {.step = done,
            .steps = steps_,
            .step_in_epoch = done % steps_per_epoch_,
            .epoch = static_cast<int>(done / steps_per_epoch_),
            .epoch_loss = ends_epoch ? 0 : train_loss_,
            .epoch_samples = ends_epoch ? 0 : epoch_samples_,
            .learning_rate = learning_rate(config_.optimizer, done - 1, steps_),
            .mask = run_.plan().mask,
            .authority = freezing_.to_json()};
  }

  // Tells what has become of checkpoints. Throws if one that was asked for is not there.
  void tell_saved(Step now, bool is_asked_for = false) {
    for (const SavedCheckpoint& saved : durable_->take_saved()) {
      if (!saved.failure) {
        recorder_.log({now, CheckpointEvent{saved.time, saved.step}});
        continue;
      }
      try {
        std::rethrow_exception(saved.failure);
      } catch (const InputError& error) {
        if (is_asked_for && saved.step == now) throw;
        tell(now, std::string("no checkpoint was written: ") + error.what(), true);
      }
    }
  }

  void keep_weights(Step done) {
    const std::vector<LayerState> states =
        changes_.survive(done, [&] { return run_.gather_states(); });
    std::vector<const Tensors*> parameters;
    for (const LayerState& state : states) parameters.push_back(&state.parameters);
    options_.keep_weights(parameters, done);
  }

  // Keeps the phase in force as it stands.
  void keep_phase() {
    if (!durable_ || !options_.keep_phase || result_.phases.empty()) return;
    const TrainPhase& phase = result_.phases.back();
    const std::size_t number = result_.first_phase + result_.phases.size() - 1;
    try {
      options_.keep_phase(phase, number);
    } catch (const InputError& error) {
      tell(phase.first_step,
           "phase " + std::to_string(number) + " was not kept: " + std::string(error.what()), true);
    }
  }

  void begin_epoch(int epoch) {
    epoch_ = epoch;
    recorder_.begin_stretch(epoch * steps_per_epoch_);
    train_loss_ = 0;
    epoch_samples_ = 0;
  }

  // Decides about a step when the step before is done. If that step has taken several places,
  // decides about each place.
  void decide(Step first, Step step) {
    const SteadyTime start = std::chrono::steady_clock::now();
    FreezeControl::Before before{std::move(gradient_squares_), 0, validation_};
    for (Step place = first; place <= step; ++place) {
      before.learning_rate = learning_rate(config_.optimizer, std::min(place, steps_ - 1), steps_);
      FreezeControl::Decided decided =
          changes_.survive(place, [&] { return freezing_.decide(place, before); });
      if (place == first || decided.decision.changed) decided_ = std::move(decided);
    }
    result_.training_time += since(start);
  }

  void follow_policy(Step step) {
    const bool is_first = step == result_.first_step;
    const FreezeMask& mask = decided_.decision.mask;
    if (!is_first && mask == run_.plan().mask) {
      if (step >= foreseen_ + kForeseen) foresee(step, 2 * kForeseen);
      note_decision(step);
      return;
    }
    std::optional<TransitionEvent> transition;
    change_phase(step, [&] {
      ElasticPlan::Transitioned begun = changes_.transition_to(mask, step);
      transition = begun.transition;
      if (is_first) begin_files();
      return begun;
    });
    if (is_first) {
      changes_.survive(step, [&] { plans_.find_overhead(*transition); });
      // Going to the plan again forgets what its step is expected to take.
      run_.expect_step(result_.phases.back().predicted_step);
    }
    foresee(step, kForeseen);
  }

  // A phase may begin inside an epoch: what was measured so far belongs to the phase before.
  void change_phase(Step step, const std::function<ElasticPlan::Transitioned()>& transition) {
    recorder_.end_stretch();
    keep_phase();
    const SteadyTime start = std::chrono::steady_clock::now();
    begin_phase(step, transition());
    result_.training_time += since(start);
    recorder_.begin_stretch(step);
  }

  void begin_files() {
    if (options_.begin) options_.begin();
    if (options_.durable && !durable_) open_checkpoints();
  }

  void foresee(Step step, Step within) {
    foreseen_ = step;
    plans_.expect(freezing_.foresee(within));
  }

  void note_foreign_load() {
    result_.foreign_cores = load_.cores();
    if (result_.foreign_cores) {
      recorder_.provenance()[kForeignCores] = fixed(*result_.foreign_cores, 2);
    }
  }

  void note_cache() {
    for (const FreezeEvent& event : cache_.take_events()) recorder_.note(event);
  }

  // Notes a decision only if it changes the mask, has read signals or has another author: most
  // change nothing.
  void note_decision(Step step) {
    const Decision& decision = decided_.decision;
    const std::map<std::string, double> signals = list_signals(decided_.signals);
    const bool is_told = step == result_.first_step || decision.changed || !signals.empty() ||
                         decision.by != decided_by_;
    if (decision.by != decided_by_ && decision.by == kNoRoom) tell(step, decision.reason, true);
    decided_by_ = decision.by;
    if (!signals.empty()) recorder_.note({step, SignalsEvent{signals}});
    if (is_told) recorder_.note({step, MaskEvent{decision.mask, decision.by, decision.reason}});
  }

  void begin_phase(Step step, ElasticPlan::Transitioned begun_phase) {
    predicted_memory_ = std::move(begun_phase.begun.memory);
    const std::size_t number = result_.first_phase + result_.phases.size();
    const std::string file = "phase-" + std::to_string(number) + "/plan.json";
    result_.phases.push_back(std::move(begun_phase.begun.phase));
    const TrainPhase& phase = result_.phases.back();
    const Plan& plan = phase.plan;
    run_.expect_step(phase.predicted_step);
    keep_phase();
    note_decision(step);
    const int grown = plan.batch_size == config_.batch_size ? 0 : plan.batch_size;
    recorder_.note(
        {step, PlanEvent{file, summarize(plan), phase.predicted_step, phase.extrapolated, grown}});
    recorder_.note({step, begun_phase.transition});
    cache_.begin(plan, step);
    note_cache();
    tell(step, "mask " + plan.mask.text() + ": " + summarize(plan) +
                   cache_.describe(plan, options_.profile));
  }

  // Returns the samples of the step at this place, under the plan in force.
  SampleRange range_at(Step step) const {
    return places_.range(step, std::min(batches_of(run_.plan(), config_), steps_ - step));
  }

  // Prepares the samples of the next step. The step before still runs, and may be storing what the
  // next epoch begins with.
  void expect(const SampleRange& range) {
    loader_.expect(range);
    const bool reads_cache = cache_.is_used() && (range.epoch == epoch_ || cache_.is_filled());
    run_.expect(range, reads_cache);
    if (reads_cache) run_.read_ahead(loader_.cache_numbers(range), config_.micro_batch_size);
  }

  // Takes a step and returns the place of the next one: this one, if a process was lost before the
  // step was committed.
  Step try_step(Step step) {
    TrainPhase& phase = result_.phases.back();
    const SteadyTime start = std::chrono::steady_clock::now();
    const SampleRange range = range_at(step);
    const Step places = places_.count(range);
    const Step next = step + places;
    const std::vector<Samples> micro_batches = loader_.take(range);
    if (next < steps_) expect(range_at(next));
    const bool full = range.count == run_.plan().batch_size;
    const bool sampled = full && is_sampled(phase, step);
    // Moments are there from the second step on.
    const bool weighed = full && !sampled && !phase.memory && step > phase.first_step;
    Measurement measurement{.memory = weighed};
    for (Step place = step + 1; place <= next; ++place) freezing_.ask(place, measurement);
    run_.measure(measurement);
    StepResult result;
    try {
      result = run_.step(
          step, learning_rate(config_.optimizer, step, steps_), micro_batches, sampled,
          freezing_.rate_factors(step),
          cache_.is_used() ? loader_.cache_numbers(range) : std::vector<std::int64_t>{}, range);
    } catch (const StepUndone&) {
      changes_.recover(step);
      return step;
    }
    for (const std::string& warning : cache_.take_warnings()) tell(step, warning, true);
    gradient_squares_ = std::move(result.gradient_squares);
    const Duration time = since(start);
    result_.training_time += time;
    if (!result.note.empty() && result.note != told_) {
      told_ = result.note;
      tell(step, told_);
    }
    if (weighed) phase.memory = add_measured(predicted_memory_, step, std::move(result.memory));
    if (sampled) keep_sample(phase, result);
    refuse_non_finite(step, result, run_.model());
    train_loss_ += result.loss * static_cast<double>(range.count);
    epoch_samples_ += range.count;
    if (full) {
      ++phase.steps;
      phase.measured_time += time;
      recorder_.add_step(range.count, time);
    }
    last_loss_ = result.loss;
    recorder_.log({step, StepEvent{result.loss, range.count, time}});
    now_ = next;
    changes_.end_step(step);
    cache_.add_step(step, places, time);
    plans_.go_on();
    note_cache();
    tell(next, "");
    return next;
  }

  // Evaluates the test samples and returns what the validation samples gave.
  std::optional<PartScore> evaluate(Step done) {
    const Run::Evaluation evaluation =
        changes_.survive(done, [&] { return run_.evaluate(data_.test, config_.micro_batch_size); });
    refuse_non_finite(done, evaluation, "test");
    result_.loss = evaluation.loss;
    result_.accuracy = evaluation.accuracy;
    accuracy_ = evaluation.accuracy;
    return validate(done);
  }

  void end_epoch(Step done) {
    recorder_.end_stretch();
    const std::optional<PartScore> validation = evaluate(done);
    recorder_.note({done, EvalEvent{epoch_ + 1, train_loss_ / static_cast<double>(epoch_samples_),
                                    result_.loss, result_.accuracy, validation}});
    tell(done, "");
    if (const auto report = cache_.report(); report && report->depth > 0) {
      tell(done, to_text(*report));
    }
  }

  // Evaluates the validation samples. Decisions rest on these, never on test samples.
  std::optional<PartScore> validate(Step step) {
    if (data_.validation.count() == 0) return std::nullopt;
    const Run::Evaluation own = changes_.survive(step, [&] {
      return run_.evaluate(data_.validation, config_.micro_batch_size, SamplePart::kValidation);
    });
    refuse_non_finite(step, own, "validation");
    validation_ = result_.validation = {step, own.loss, own.accuracy};
    return PartScore{own.loss, own.accuracy};
  }

  void tell(Step step, const std::string& event, bool is_warning = false) {
    if (!progress_) return;
    if (const auto failure = recorder_.take_failure()) {
      tell(step, "the event log ends here: " + *failure, true);
    }
    progress_({step, steps_, epoch_ + 1, last_loss_, accuracy_, validation_, event, is_warning});
  }

  // By another thread, while a step may wait for that process.
  void tell_silence(const Silence& silence) const {
    if (!progress_) return;
    TrainProgress now;
    now.step = now_;
    now.steps = steps_;
    now.event = silence.sentence;
    now.is_warning = true;
    progress_(now);
  }

  const TrainOptions& options_;
  const RunConfig& config_;
  std::string told_;  // the last note on a short batch
  const Dataset& data_;
  const std::function<void(const TrainProgress&)>& progress_;
  RunPlaces places_;
  Step steps_per_epoch_;
  Step steps_;
  SampleLoader loader_;
  std::atomic<Step> now_{0};
  Silences silences_;
  Run run_;
  CacheControl cache_;
  Replanner replanner_;
  ElasticPlan plans_;
  ProcessChanges changes_;
  FreezeControl freezing_;
  TraceRecorder recorder_;
  std::optional<DurableRun> durable_;
  MemoryRecord predicted_memory_;  // of the phase in force
  TrainResult result_;
  ForeignLoad load_;
  int epoch_ = 0;
  Step foreseen_ = 0;      // when the next mask was last looked for
  double train_loss_ = 0;  // sum over the epoch's samples
  std::int64_t epoch_samples_ = 0;
  FreezeControl::Decided decided_;
  std::string decided_by_;  // author of the decision before
  std::optional<Validation> validation_;
  std::vector<double> gradient_squares_;
  double last_loss_ = 0;
  std::optional<double> accuracy_;  // none before the first evaluation
};

}  // namespace

Step count_steps(const TrainOptions& options, const Dataset& data) {
  if (options.extension) return options.max_steps;
  const RunPlaces places{data.train.count(), options.config.batch_size};
  const Step all = places.of_epoch() * options.config.epochs;
  return options.max_steps > 0 ? std::min(all, Step{options.max_steps}) : all;
}

TrainResult train(const TrainOptions& options, const Dataset& data,
                  const std::function<void(const TrainProgress&)>& progress) {
  TrainOptions with_signals = options;
  with_signals.profile = with_signal_memory(options.profile, options.config.freeze);
  return Training(with_signals, data, progress).run();
}

}  // namespace frazil
