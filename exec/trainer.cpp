#include "exec/trainer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "exec/checkpoint/run_identity.h"
#include "exec/foreign_load.h"
#include "exec/host_facts.h"
#include "exec/run.h"
#include "exec/vit.h"
#include "planner/freezing/freeze_policy.h"
#include "planner/plan_changes.h"
#include "planner/ranking.h"
#include "planner/search.h"
#include "planner/search/shape.h"
#include "planner/simulate_plan.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Of each phase, the first steps (new executors, cold caches) are not sampled; then every eighth.
constexpr std::int64_t kSkippedSteps = 3;
constexpr std::int64_t kSampleEvery = 8;
constexpr std::size_t kMostSampledSteps = 40;

Duration since(SteadyTime start) {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
}

double rate(std::int64_t samples, Duration time) {
  if (time.count() == 0) return 0;
  return static_cast<double>(samples) / std::chrono::duration<double>(time).count();
}

class Training {
 public:
  Training(const TrainOptions& options, const Dataset& data,
           const std::function<void(const TrainProgress&)>& progress)
      : options_(options),
        config_(options.config),
        data_(data),
        progress_(progress),
        steps_per_epoch_((data.train.count() + config_.batch_size - 1) / config_.batch_size),
        steps_(steps_per_epoch_ * config_.epochs),
        policy_(freeze_policy(config_, steps_per_epoch_)),
        run_(make_vit(config_.model), config_.optimizer, config_.seed,
             static_cast<int>(options.cluster.devices.size()),
             run_options(config_, options.processors)) {
    if (options.max_steps > 0) steps_ = std::min(steps_, Step{options.max_steps});
    result_.trace.model_hash = model_hash(options.profile);
    result_.trace.blocks = options.profile.blocks;
    result_.trace.steps = steps_;
    result_.trace.batch_size = config_.batch_size;
    result_.trace.provenance = host_facts();
    result_.trace.provenance["command"] = options.command;
    if (options.processors.kind != DeviceKind::kCpu) {
      result_.trace.provenance["devices"] = run_.devices().text();
    }
    if (options.durable) restore();
  }

  TrainResult run() {
    for (Step step = result_.first_step; step < steps_; ++step) {
      if (step % steps_per_epoch_ == 0) begin_epoch(static_cast<int>(step / steps_per_epoch_));
      follow_policy(step);
      take_step(step);
      const bool last = step + 1 == steps_;
      if (durable_ && make_durable(step, last)) break;
      if (last || (step + 1) % steps_per_epoch_ == 0) end_epoch(step);
    }
    if (durable_) durable_->finish();
    result_.weight_hash = run_.weight_hash();
    result_.process_peak_resident = peak_resident();
    result_.foreign_cores = load_.cores();
    return std::move(result_);
  }

 private:
  void restore() {
    durable_.emplace(*options_.durable, run_.model(),
                     identify_run(config_, result_.trace.model_hash, data_, steps_));
    const std::optional<TrainingPosition> position = durable_->restore(run_);
    for (const std::string& note : durable_->notes()) tell(position ? position->step : 0, note);
    if (!position) return;
    result_.first_step = position->step;
    result_.trace.provenance["resumed_from_step"] = std::to_string(position->step);
    begin_epoch(position->epoch);
    begin_stretch(position->step);
    train_loss_ = position->epoch_loss;
    epoch_samples_ = position->epoch_samples;
  }

  // Whether the run is to end here.
  bool make_durable(Step step, bool last) {
    durable_->record(step, last_loss_, run_.plan().mask);
    if (last) return false;
    const bool stops = options_.stop && options_.stop();
    const Step done = step + 1;
    if (!stops && !durable_->is_due(done)) return false;
    const bool ends_epoch = done % steps_per_epoch_ == 0;
    const TrainingPosition position{.step = done,
                                    .steps = steps_,
                                    .step_in_epoch = done % steps_per_epoch_,
                                    .epoch = static_cast<int>(done / steps_per_epoch_),
                                    .epoch_loss = ends_epoch ? 0 : train_loss_,
                                    .epoch_samples = ends_epoch ? 0 : epoch_samples_,
                                    .learning_rate = learning_rate(config_.optimizer, step, steps_),
                                    .mask = run_.plan().mask};
    try {
      durable_->save(run_, position);
    } catch (const InputError& error) {
      if (stops) throw;
      tell(done, std::string("no checkpoint was written: ") + error.what());
    }
    if (stops) result_.stopped_at = done;
    return stops;
  }

  void begin_epoch(int epoch) {
    epoch_ = epoch;
    order_ = epoch_order(data_.train.count(), config_.seed, epoch);
    begin_stretch(epoch * steps_per_epoch_);
    train_loss_ = 0;
    epoch_samples_ = 0;
  }

  // Costs are noted where their stretch began: before the events of later steps.
  void begin_stretch(Step step) {
    stretch_first_ = step;
    stretch_place_ = result_.trace.events.size();
    stretch_time_ = Duration{0};
    stretch_steps_ = 0;
  }

  void end_stretch() {
    if (stretch_steps_ == 0) return;
    note(stretch_first_,
         CostEvent{stretch_steps_, stretch_steps_ * config_.batch_size, stretch_time_});
    const auto place = static_cast<std::ptrdiff_t>(stretch_place_);
    std::vector<FreezeEvent>& events = result_.trace.events;
    std::rotate(events.begin() + place, events.end() - 1, events.end());
  }

  void follow_policy(Step step) {
    const FreezeMask mask =
        decide_mask(policy_, step, static_cast<int>(options_.profile.blocks.size()));
    if (step > result_.first_step && mask == run_.plan().mask) return;
    // A phase may begin inside an epoch: what was measured so far belongs to the phase before.
    end_stretch();
    const SteadyTime start = std::chrono::steady_clock::now();
    const Plan plan = choose_plan(step, mask);
    TransitionEvent transition;
    transition.plan_time = since(start);
    const SwitchReport report =
        run_.switch_to(with_lists(plan, options_.profile, options_.cluster));
    transition.move_time = report.move_time;
    transition.start_time = report.start_time;
    transition.moved = report.move.moved;
    result_.training_time += since(start);
    begin_phase(step, plan, transition);
    begin_stretch(step);
  }

  Plan choose_plan(Step step, const FreezeMask& mask) {
    const bool first = step == result_.first_step;
    std::optional<Plan> kept;
    if (!first) kept = result_.phases.back().plan;
    if (first && options_.plan) kept = options_.plan;
    if (kept && (!options_.elastic || first)) {
      kept->mask = mask;
      return *kept;
    }
    SearchOptions search;
    search.batch_size = config_.batch_size;
    search.micro_batch_sizes = {config_.micro_batch_size};
    search.mask = mask;
    search.reduction = config_.reduction;
    search.clip = config_.optimizer.clip_norm > 0;
    Ranking ranking = search_plans(options_.profile, options_.cluster, search);
    if (ranking.best() == nullptr) {
      search.schedules = synchronous_schedules();
      search.joint = search.recompute = true;
      ranking = search_plans(options_.profile, options_.cluster, search);
    }
    const Candidate* best = ranking.best();
    if (best == nullptr) {
      const std::string reason = ranking.candidates.empty() || !ranking.candidates[0].infeasible
                                     ? "there is no candidate"
                                     : ranking.candidates[0].infeasible->reason;
      throw InfeasibleError("no plan fits: " + reason);
    }
    return best->plan;
  }

  void begin_phase(Step step, const Plan& plan, const TransitionEvent& transition) {
    if (durable_ && plan.versions != WeightVersions::kSync) {
      throw InfeasibleError("a plan with weight versions cannot be checkpointed");
    }
    const SimulatedStep simulated = simulate_step(plan, options_.profile, options_.cluster,
                                                  {.clip = config_.optimizer.clip_norm > 0});
    const PlanSimulation simulation =
        summarize(simulated, static_cast<int>(options_.cluster.devices.size()));
    const bool is_given = options_.plan && (result_.phases.empty() || !options_.elastic);
    refuse_overflow(simulation.memory, options_.cluster, is_given ? options_.plan_file : "");
    predicted_memory_ = predict_memory(simulated, options_.profile, options_.cluster);
    TrainPhase phase;
    phase.first_step = step;
    phase.plan = plan;
    phase.predicted = simulation.timeline;
    phase.predicted_step = simulation.makespan;
    phase.extrapolated = simulation.extrapolated;
    phase.measured.devices = static_cast<int>(options_.cluster.devices.size());
    const std::string file = "phase-" + std::to_string(result_.phases.size()) + "/plan.json";
    result_.phases.push_back(std::move(phase));
    note(step, MaskEvent{plan.mask});
    note(step, PlanEvent{file, summarize(plan), simulation.makespan});
    note(step, transition);
    tell(step, "mask " + plan.mask.text() + ": " + summarize(plan));
  }

  void take_step(Step step) {
    TrainPhase& phase = result_.phases.back();
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::int64_t first = step % steps_per_epoch_ * config_.batch_size;
    const std::int64_t count =
        std::min<std::int64_t>(config_.batch_size, data_.train.count() - first);
    const std::vector<Samples> micro_batches =
        gather_micro_batches(data_.train, order_, first, count, config_.micro_batch_size);
    const bool full = count == config_.batch_size;
    const bool sampled = full && is_sampled(phase, step);
    // Moments are there from the second step on.
    const bool weighed = full && !sampled && !phase.memory && step > phase.first_step;
    run_.measure({.memory = weighed});
    StepResult result =
        run_.step(step, learning_rate(config_.optimizer, step, steps_), micro_batches, sampled);
    const Duration time = since(start);
    result_.training_time += time;
    if (!result.note.empty() && result.note != told_) {
      told_ = result.note;
      tell(step, told_);
    }
    if (weighed) phase.memory = add_measured(predicted_memory_, step, std::move(result.memory));
    if (sampled) {
      phase.measured.spans.insert(phase.measured.spans.end(), result.spans.begin(),
                                  result.spans.end());
    }
    if (!std::isfinite(result.loss)) {
      throw std::runtime_error("step " + std::to_string(step) + " has loss " +
                               std::to_string(result.loss) +
                               ": the training has diverged (a smaller learning rate?)");
    }
    train_loss_ += result.loss * static_cast<double>(count);
    epoch_samples_ += count;
    if (full) {
      ++phase.steps;
      phase.measured_time += time;
      ++stretch_steps_;
      stretch_time_ += time;
    }
    last_loss_ = result.loss;
    tell(step + 1, "");
  }

  static MemoryRecord add_measured(MemoryRecord record, Step step,
                                   std::vector<MeasuredMemory> measured) {
    record.step = step;
    record.process_peak_resident = peak_resident();
    for (MeasuredMemory& memory : measured) {
      DeviceMemory& device = record.devices.at(memory.device.index());
      device.measured = {memory.total_peak, memory.peak, std::move(memory.curve)};
      device.allocator_peak = memory.allocator_peak;
    }
    return record;
  }

  static bool is_sampled(const TrainPhase& phase, Step step) {
    const std::int64_t into = step - phase.first_step - kSkippedSteps;
    return into >= 0 && into % kSampleEvery == 0 &&
           static_cast<std::size_t>(into / kSampleEvery) < kMostSampledSteps;
  }

  void end_epoch(Step step) {
    end_stretch();
    const Run::Evaluation evaluation = run_.evaluate(data_.test, config_.micro_batch_size);
    result_.loss = evaluation.loss;
    result_.accuracy = evaluation.accuracy;
    accuracy_ = evaluation.accuracy;
    note(step + 1, EvalEvent{epoch_ + 1, train_loss_ / static_cast<double>(epoch_samples_),
                             evaluation.loss, evaluation.accuracy});
    tell(step + 1, "");
  }

  template <class Event>
  void note(Step step, Event event) {
    result_.trace.events.push_back({step, std::move(event)});
  }

  void tell(Step step, const std::string& event) {
    if (!progress_) return;
    progress_({step, steps_, epoch_ + 1, last_loss_, accuracy_, event});
  }

  const TrainOptions& options_;
  const RunConfig& config_;
  std::string told_;  // of a short batch
  const Dataset& data_;
  const std::function<void(const TrainProgress&)>& progress_;
  Step steps_per_epoch_;
  Step steps_;
  FreezePolicy policy_;
  Run run_;
  std::optional<DurableRun> durable_;
  MemoryRecord predicted_memory_;  // of the phase
  TrainResult result_;
  ForeignLoad load_;
  int epoch_ = 0;
  std::vector<std::int64_t> order_;
  double train_loss_ = 0;  // sum over the epoch's samples
  std::int64_t epoch_samples_ = 0;
  // Full steps since the epoch or the phase began.
  Step stretch_first_ = 0;
  std::size_t stretch_place_ = 0;
  Duration stretch_time_{0};
  std::int64_t stretch_steps_ = 0;
  double last_loss_ = 0;
  std::optional<double> accuracy_;  // none before the first evaluation
};

}  // namespace

double TrainPhase::predicted_samples_per_second() const {
  return rate(plan.batch_size, predicted_step);
}

double TrainPhase::measured_samples_per_second() const {
  return rate(steps * plan.batch_size, measured_time);
}

TrainResult train(const TrainOptions& options, const Dataset& data,
                  const std::function<void(const TrainProgress&)>& progress) {
  return Training(options, data, progress).run();
}

}  // namespace frazil
