#include "exec/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "analysis/foreign_cores.h"
#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/host_facts.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/fixed.h"
#include "exec/models/untrainable_blocks.h"
#include "exec/train/divergence.h"
#include "exec/train/drift/drift_control.h"
#include "exec/train/loop/checkpointing.h"
#include "exec/train/loop/phase_changes.h"
#include "exec/train/loop/run_clock.h"
#include "exec/train/loop/step_windows.h"
#include "exec/train/loop/training_parts.h"
#include "planner/freezing/signal_memory.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kGrows =
    "the batch grows with the pipelines, as PipeTransformer's: losses and weights follow from the "
    "plans, the learning rate is that of the configured batch";

constexpr const char* kNormalisesLocally =
    "each slice of a micro-batch normalises by its own statistics: losses and weights follow from "
    "the plans";

// A step of the loop, at the place `step` of the run.
struct LoopStep {
  Step step = 0;
  SampleRange range;
  Step places = 1;
  bool is_full = true;      // takes a whole batch of the plan
  bool is_sampled = false;  // its spans are kept
  bool is_weighed = false;  // its memory is kept

  Step next() const { return step + places; }
};

class Training {
 public:
  Training(TrainOptions& options, const Dataset& data,
           const std::function<void(const TrainProgress&)>& progress)
      : parts_(options, data, count_steps(options, data), progress),
        loader_(data.train, loader_config(options.config)),
        changes_(
            run_, parts_.plans, recorder_, parts_.silences,
            {.change_phase = [this](Step step, const auto& to) { phases_.change_phase(step, to); },
             .tell = [this](Step step, const std::string& sentence,
                            bool is_warning) { teller_.tell(step, sentence, is_warning); }}),
        phases_(parts_, changes_, [this] { begin_files(); }),
        drift_(options, parts_, changes_, phases_),
        checkpoints_(parts_, changes_, phases_) {
    ENSURE(!config_.freeze.decorators.guard || data.validation.count() > 0,
           "a validation guard is given samples to validate with");
    if (config_.freeze.freeze_untrainable) teller_.tell(0, tell_untrainable(run_.model()));
    checkpoints_.restore();
    if (config_.batch_growth == BatchGrowth::kWithPipelines) teller_.tell(0, kGrows);
    if (config_.local_statistics) teller_.tell(0, kNormalisesLocally);
    drift_.restore();
    if (result_.first_step < steps_) phases_.decide(result_.first_step, result_.first_step);
  }

  TrainResult run() {
    Step next = 0;
    for (Step step = result_.first_step; step < steps_; step = next) {
      if (step % parts_.steps_per_epoch == 0) begin_epoch(step);
      end_lap();  // a transition belongs to the phase that it begins
      phases_.follow_policy(step);
      drift_.follow(step);
      if (step == result_.first_step) begin_clock();
      changes_.take_in(step);
      std::optional<LoopStep> last;  // of those that are handed out at once
      while (!last) last = try_steps(step);
      next = last->next();
      const bool is_last = next == steps_;
      checkpoints_.record(last->step);
      if (is_last || next % parts_.steps_per_epoch == 0) end_epoch(next);
      if (is_last && !checkpoints_.are_kept()) break;
      // The decision comes before the checkpoint, which then needs no signals of the step. That of
      // the end is for those who give the run more steps.
      phases_.decide(last->step + 1, next);
      if (is_last) checkpoints_.save_last();
      if (is_last || ends_at(next)) break;
    }
    end_lap();
    if (result_.first_step == steps_) evaluate(steps_);
    end(result_.stopped_at.value_or(steps_));
    return std::move(result_);
  }

 private:
  void begin_files() {
    if (parts_.options.begin) parts_.options.begin();
    checkpoints_.open();
  }

  // Charges the phase in force with the time since the last lap.
  void end_lap() {
    const Duration lap = clock_.lap();
    if (!result_.phases.empty()) charge(lap);
  }

  // Starting up is no step, but what the planner was asked before the first one counts: where masks
  // are known, that is the whole course.
  void begin_clock() {
    (void)clock_.lap();
    charge(parts_.replanner.asking());
  }

  void charge(Duration time) {
    result_.phases.back().wall_time += time;
    result_.wall_time += time;
  }

  void begin_epoch(Step step) {
    scores_.epoch = static_cast<int>(step / parts_.steps_per_epoch);
    scores_.epoch_loss = 0;
    scores_.epoch_samples = 0;
    recorder_.begin_stretch(step);
  }

  // Checkpoints if that is due. Returns true if the run is to end here.
  bool ends_at(Step done) {
    const bool stops = parts_.options.stop && parts_.options.stop();
    if (stops) result_.stopped_at = done;
    checkpoints_.save_due(done, stops);
    return stops;
  }

  // Returns the samples of the step at this place, under the plan in force.
  SampleRange range_at(Step step) const {
    return parts_.places.range(step, std::min(batches_of(run_.plan(), config_), steps_ - step));
  }

  LoopStep step_at(Step step) const {
    LoopStep now{.step = step, .range = range_at(step)};
    const TrainPhase& phase = result_.phases.back();
    now.places = parts_.places.count(now.range);
    now.is_full = now.range.count == run_.plan().batch_size;
    now.is_sampled = now.is_full && phase.window == 1 && is_sampled(phase, step);
    // Moments are there from the second step on.
    now.is_weighed = now.is_full && !now.is_sampled && !phase.memory && step > phase.first_step;
    return now;
  }

  // Returns the steps from `step` on that are handed out at once: several of a plan with steps
  // ahead, up to the next one that measures something by itself.
  std::vector<LoopStep> window_at(Step step) {
    const TrainPhase& phase = result_.phases.back();
    std::vector<LoopStep> window{step_at(step)};
    if (phase.window == 1 || measures(window.front())) return window;
    const auto most = static_cast<std::size_t>(phase.window);
    ENSURE(window.front().places == 1, "a batch that grows is trained step by step");
    while (window.size() < most && !windows_.end_at(window.back().next())) {
      const LoopStep following = step_at(window.back().next());
      if (measures(following)) break;
      window.push_back(following);
    }
    const bool is_whole =
        window.size() == most &&
        std::all_of(window.begin(), window.end(), [](const LoopStep& one) { return one.is_full; });
    for (LoopStep& one : window) one.is_sampled = is_whole && is_sampled(phase, step);
    return window;
  }

  // Prepares the samples of the steps that are handed out next.
  void expect(Step step) {
    std::vector<SampleRange> ranges{range_at(step)};
    const auto most = static_cast<std::size_t>(result_.phases.back().window);
    Step next = step + parts_.places.count(ranges.back());
    while (ranges.size() < most && !windows_.end_at(next)) {
      ranges.push_back(range_at(next));
      next += parts_.places.count(ranges.back());
    }
    expect(ranges);
  }

  // The step before still runs, and may be storing what the next epoch begins with.
  void expect(const std::vector<SampleRange>& ranges) {
    const SampleRange& range = ranges.front();
    loader_.expect(ranges);
    const bool reads_cache =
        cache_.is_used() && (range.epoch == scores_.epoch || cache_.is_filled());
    run_.expect(range, reads_cache);
    if (reads_cache) run_.read_ahead(loader_.cache_numbers(range), config_.micro_batch_size);
  }

  Measurement measurement_of(const LoopStep& now) const {
    Measurement measurement{.memory = now.is_weighed};
    for (Step place = now.step + 1; place <= now.next(); ++place) {
      parts_.freezing.ask(place, measurement);
    }
    drift_.ask(now.step, measurement);
    return measurement;
  }

  bool measures(const LoopStep& now) const { return measurement_of(now) != Measurement{}; }

  StepRequest request_of(const LoopStep& now) {
    return {.step = now.step,
            .learning_rate = learning_rate(config_.optimizer, now.step, steps_),
            .micro_batches = loader_.take(now.range),
            .rate_factors = parts_.freezing.rate_factors(now.step),
            .sample_ids =
                cache_.is_used() ? loader_.cache_numbers(now.range) : std::vector<std::int64_t>{},
            .range = now.range};
  }

  // Takes the steps from `step` on that are handed out at once, and returns the last of them; none
  // if a process was lost before the step was committed.
  std::optional<LoopStep> try_steps(Step step) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::vector<LoopStep> window = window_at(step);
    std::vector<StepRequest> requests;
    for (const LoopStep& now : window) requests.push_back(request_of(now));
    if (window.back().next() < steps_) expect(window.back().next());
    run_.measure(measurement_of(window.front()));
    std::vector<StepResult> results;
    try {
      results = run_.steps(requests, window.front().is_sampled);
    } catch (const StepUndone&) {
      changes_.recover(step);
      return std::nullopt;
    }
    const Duration time = since(start) / static_cast<std::int64_t>(window.size());
    for (std::size_t i = 0; i < window.size(); ++i) {
      if (i > 0) begin_next(window[i - 1]);
      end_step(window[i], std::move(results[i]), time);
    }
    return window.back();
  }

  // Does between two steps of a window what needs no device.
  void begin_next(const LoopStep& done) {
    checkpoints_.record(done.step);
    phases_.decide(done.step + 1, done.next());
  }

  void end_step(const LoopStep& now, StepResult result, Duration time) {
    for (const std::string& warning : cache_.take_warnings()) teller_.tell(now.step, warning, true);
    scores_.gradient_squares = std::move(result.gradient_squares);
    result_.training_time += time;
    if (!result.note.empty() && result.note != told_) {
      told_ = result.note;
      teller_.tell(now.step, told_);
    }
    drift_.add_step(now.step, now.is_full, result);
    note_step(now, std::move(result), time);
    teller_.reach(now.next());
    changes_.end_step(now.step);
    cache_.add_step(now.step, now.places, time);
    parts_.plans.go_on();
    note_cache(parts_);
    teller_.tell(now.next(), "");
  }

  // Keeps what a step has measured and learnt. Throws Diverged before anything of the loss is kept.
  void note_step(const LoopStep& now, StepResult result, Duration time) {
    TrainPhase& phase = result_.phases.back();
    if (now.is_weighed) {
      phase.memory = add_measured(phases_.predicted_memory(), now.step, std::move(result.memory));
    }
    if (now.is_sampled) keep_sample(phase, result);
    refuse_non_finite(now.step, result, run_.model());
    scores_.epoch_loss += result.loss * static_cast<double>(now.range.count);
    scores_.epoch_samples += now.range.count;
    if (now.is_full) {
      ++phase.steps;
      phase.measured_time += time;
      recorder_.add_step(now.range.count, time);
    }
    scores_.last_loss = result.loss;
    recorder_.log({now.step, StepEvent{result.loss, now.range.count, time}});
  }

  // Evaluates the test samples and returns what the validation samples gave.
  std::optional<PartScore> evaluate(Step done) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const Run::Evaluation evaluation = changes_.survive(
        done, [&] { return run_.evaluate(parts_.data.test, config_.micro_batch_size); });
    refuse_non_finite(done, evaluation, "test");
    result_.loss = evaluation.loss;
    result_.accuracy = evaluation.accuracy;
    scores_.accuracy = evaluation.accuracy;
    clock_.leave_out(since(start));
    return validate(done);
  }

  // Evaluates the validation samples. Decisions rest on these, never on test samples. Their time is
  // the run's where it has decisions that read them.
  std::optional<PartScore> validate(Step done) {
    const SampleSource& samples = parts_.data.validation;
    if (samples.count() == 0) return std::nullopt;
    const SteadyTime start = std::chrono::steady_clock::now();
    const Run::Evaluation own = changes_.survive(done, [&] {
      return run_.evaluate(samples, config_.micro_batch_size, SamplePart::kValidation);
    });
    refuse_non_finite(done, own, "validation");
    scores_.validation =
        result_.validation = {done, own.loss, own.accuracy.value_or(0), samples.count()};
    if (!config_.freeze.decorators.guard) clock_.leave_out(since(start));
    return PartScore{own.loss, own.accuracy};
  }

  bool evaluates_after(int epochs) const { return epochs % config_.evaluation_epochs == 0; }

  void end_epoch(Step done) {
    recorder_.end_stretch();
    if (done < steps_ && !evaluates_after(scores_.epoch + 1)) return;
    const std::optional<PartScore> validation = evaluate(done);
    const double loss = scores_.epoch_loss / static_cast<double>(scores_.epoch_samples);
    recorder_.note(
        {done, EvalEvent{scores_.epoch + 1, loss, result_.loss, result_.accuracy, validation}});
    teller_.tell(done, "");
    if (const auto report = cache_.report(); report && report->depth > 0) {
      teller_.tell(done, to_text(*report));
    }
  }

  // Ends the run after so many steps: all that it keeps is on the disk then, and its result
  // complete.
  void end(Step done) {
    changes_.survive(done, [&] { refuse_non_finite_weights(done, run_); });
    checkpoints_.finish(done);
    if (parts_.options.keep_weights) keep_weights(done);
    result_.test_samples = parts_.data.test.count();
    result_.local_statistics = config_.local_statistics;
    result_.weight_hash = changes_.survive(done, [&] { return run_.weight_hash(); });
    result_.process_peak_resident = peak_resident();
    note_foreign_load();
    if (done == steps_) note_plans();
    result_.cache = cache_.report();
    result_.watch = drift_.watch();
    cache_.end(done);
    note_cache(parts_);
    result_.trace = recorder_.take_trace();
  }

  void keep_weights(Step done) {
    const std::vector<LayerState> states =
        changes_.survive(done, [&] { return run_.gather_states(); });
    parts_.options.keep_weights(run_.model(), states, done);
  }

  void note_plans() {
    result_.regret = parts_.replanner.find_regret();
    if (result_.regret) note_regret(*result_.regret, recorder_.provenance());
  }

  void note_foreign_load() {
    result_.foreign_cores = load_.cores();
    if (!result_.foreign_cores) return;
    recorder_.provenance()[kForeignCores] = fixed(*result_.foreign_cores, 2);
  }

  TrainingParts parts_;
  const RunConfig& config_ = parts_.config;
  const Step steps_ = parts_.steps;
  Run& run_ = parts_.run;
  CacheControl& cache_ = parts_.cache;
  TraceRecorder& recorder_ = parts_.recorder;
  RunTeller& teller_ = parts_.teller;
  RunScores& scores_ = parts_.scores;
  TrainResult& result_ = parts_.result;
  SampleLoader loader_;
  ProcessChanges changes_;
  PhaseChanges phases_;
  DriftControl drift_;
  Checkpointing checkpoints_;
  StepWindows windows_{parts_};
  ForeignLoad load_;
  RunClock clock_;
  std::string told_;  // the last note on a short batch
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
