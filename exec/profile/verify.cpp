#include "exec/profile/verify.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/layer_times.h"
#include "exec/measuring/stash_meter.h"
#include "exec/profile/link_probe.h"
#include "exec/run/run.h"
#include "planner/plan/step_window.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kWarmUpSteps = 8;

// Means inside a block are not trimmed: trimming would cut the spikes of every layer by itself, but
// those of a step only together, and so predict too little. The median over the blocks deals with
// outliers.
constexpr double kKeepAll = 1;

constexpr int kProbes = 8;             // of the link, spread over the blocks
constexpr int kProbeRepetitions = 40;  // some 50 ms
constexpr double kProbedBytes = 1 << 20;

// One half of a block holds measurements of some steps of the plan.
struct Half {
  LayerTimes times{kKeepAll};
  OverheadMeter overheads{kKeepAll};
  std::vector<double> step_times;  // ns
};

class Verifying {
 public:
  // Throws InfeasibleError where the plan needs more memory than its devices have.
  Verifying(const VerifyOptions& options, const Dataset& data)
      : options_(options),
        data_(data),
        order_(epoch_order(data.train.count(), options.seed, 0)),
        loader_(data.train, loader_config(options.config)),
        run_(make_run(options)) {
    weigh_layers();
    // Memory does not depend on times here, because all that runs are given lists and schedules
    // that need no times.
    refuse_overflow(predict({}).memory, options.cluster, options.plan_file);
    run_.transition_to(options.plan);
  }

  void warm_up() {
    Half half;
    run_.measure({.layers = true});
    for (int i = 0; i < kWarmUpSteps; ++i) take_step(half);
  }

  // Runs a step of each half in turn, so that both halves see the same moments of a drifting
  // machine. Which half comes first alternates too.
  std::pair<Half, Half> take_block() {
    std::pair<Half, Half> block;
    for (int i = 0; i < options_.steps; ++i) {
      for (const bool planted : {i % 2 == 0, i % 2 != 0}) {
        Measurement measurement{.layers = true};
        if (planted) {
          measurement.slow_layer = options_.slow_layer;
          measurement.slow_percent = options_.slow_percent;
        }
        run_.measure(measurement);
        take_step(planted ? block.second : block.first);
      }
    }
    return block;
  }

  // Simulates the plan's step with the costs of this half.
  PlanSimulation predict(const Half& half) const {
    ModelProfile profile = run_.structure();
    const Activity activity = find_activity(profile, options_.plan.mask);
    for (std::size_t l = 0; l < profile.layers.size(); ++l) {
      const LayerId id{l};
      std::vector<int> sizes = half.times.sizes(id);
      if (sizes.empty()) sizes = {options_.plan.micro_batch_size};
      profile.layers[l].costs.clear();
      for (const int size : sizes) {
        profile.layers[l].costs.push_back(
            make_cost(half, id, size, activity.layers[l].weight_gradient));
      }
      profile.layers[l].update = half.times.update(id);
    }
    Cluster cluster = options_.cluster;
    const Overheads overheads = half.overheads.overheads();
    for (Device& device : cluster.devices) {
      device.action_overhead = overheads.per_action;
      device.step_overhead = overheads.per_step;
    }
    return simulate_plan(in_step(options_.plan), {profile, cluster},
                         {.clip = options_.config.optimizer.clip_norm > 0});
  }

  const Run& run() const { return run_; }

 private:
  // `size`: of a micro-batch, or of the slice of one that a device of the stage works on.
  CostSample make_cost(const Half& half, LayerId id, int size, bool has_weight_gradient) const {
    CostSample cost;
    cost.micro_batch_size = size;
    cost.forward = half.times.mean(id, LayerPhase::kForward, size) +
                   half.times.mean(id, LayerPhase::kLoss, size);
    cost.forward_frozen = cost.forward;
    // The plan's own mask decides what a whole backward does, so it needs no split here.
    cost.backward_weight = half.times.mean(id, LayerPhase::kBackward, size);
    if (half.times.has(id, LayerPhase::kBackwardInput, size)) {
      cost.backward_input = half.times.mean(id, LayerPhase::kBackwardInput, size);
      cost.backward_weight = half.times.mean(id, LayerPhase::kBackwardWeight, size);
    }
    cost.backward_weight_alone = cost.backward_weight;
    if (cost.backward_input.count() == 0 && !has_weight_gradient) {
      std::swap(cost.backward_input, cost.backward_weight);
    }
    const std::int64_t whole = options_.plan.micro_batch_size;
    const auto share = [&](Bytes stash) { return Bytes{divide_up(stash.count * size, whole)}; };
    cost.stash = share(stashes_[id.index()]);
    cost.stash_frozen = share(stashes_of_frozen_[id.index()]);
    return cost;
  }

  // Measures what each layer keeps of a micro-batch, on the first device, which holds all layers
  // until a plan is in force.
  void weigh_layers() {
    const int size = options_.plan.micro_batch_size;
    const Samples there = gather_micro_batches(data_.train, order_, 0, size, size)[0];
    const auto brought = run_.devices()[0].bring(there);
    const Samples& samples = brought ? *brought : there;
    stashes_ = measure_stashes(run_.model(), run_.pool().states()[0], samples);
    stashes_of_frozen_ = measure_stashes(run_.model(), run_.pool().states()[0], samples, true);
  }

  static Run make_run(const VerifyOptions& options) {
    const RunConfig& config = options.config;
    const RunOptions how = run_options(config, options.processors);
    if (options.world) {
      return Run(make_model(config), config.optimizer, config.seed, options.world(), how);
    }
    return Run(make_model(config), config.optimizer, config.seed,
               static_cast<int>(options.cluster.devices.size()), how);
  }

  // Other processes make the samples of a step by themselves, from their range.
  StepResult take_step_over_processes() {
    const std::int64_t batch = options_.plan.batch_size;
    const std::int64_t batches = std::max<std::int64_t>(1, data_.train.count() / batch);
    const SampleRange range{.epoch = 0, .first = step_ % batches * batch, .count = batch};
    return run_.step(step_++, options_.config.optimizer.learning_rate, loader_.take(range), true,
                     {}, {}, range);
  }

  StepResult take_step_here() {
    const std::vector<Samples> micro_batches =
        gather_micro_batches(data_.train, order_, step_ * options_.plan.batch_size,
                             options_.plan.batch_size, options_.plan.micro_batch_size);
    return run_.step(step_++, options_.config.optimizer.learning_rate, micro_batches, true);
  }

  void take_step(Half& half) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const StepResult result = options_.world ? take_step_over_processes() : take_step_here();
    const Duration time = since(start);
    const std::vector<LayerSample> samples = run_.take_layer_samples();
    half.times.add(samples);
    half.overheads.add_step(time, result.spans, samples);
    half.step_times.push_back(static_cast<double>(time.count()));
  }

  const VerifyOptions& options_;
  const Dataset& data_;
  std::vector<std::int64_t> order_;
  SampleLoader loader_;
  Run run_;
  std::vector<Bytes> stashes_;  // by layer
  std::vector<Bytes> stashes_of_frozen_;
  Step step_ = 0;
};

// Collects what a guard compares.
class SeriesCollector {
 public:
  explicit SeriesCollector(const ModelSpec& model)
      : step_{GuardedKind::kStep, "step", {}},
        prediction_{GuardedKind::kPrediction, "step / predicted", {}},
        latency_{GuardedKind::kLink, "latency", {}},
        transfer_{GuardedKind::kLink, "1 MiB", {}} {
    for (const LayerSpec& layer : model.layers) {
      layers_.push_back({GuardedKind::kLayer, layer.name, {}});
    }
  }

  void add_step(double measured, double predicted) {
    step_.values.push_back(measured);
    prediction_.values.push_back(measured / predicted);
  }
  void add_layer(std::size_t layer, Duration time) {
    layers_[layer].values.push_back(static_cast<double>(time.count()));
  }
  // A single device has no link.
  void add_link(const Link& link) {
    if (link.bandwidth.count == 0) return;
    latency_.values.push_back(static_cast<double>(link.latency.count()));
    transfer_.values.push_back(kProbedBytes * 1e9 / static_cast<double>(link.bandwidth.count));
  }

  std::vector<GuardedSeries> take() {
    std::vector<GuardedSeries> series{std::move(step_), std::move(prediction_)};
    std::move(layers_.begin(), layers_.end(), std::back_inserter(series));
    series.push_back(std::move(latency_));
    series.push_back(std::move(transfer_));
    return series;
  }

 private:
  GuardedSeries step_;
  GuardedSeries prediction_;
  GuardedSeries latency_;
  GuardedSeries transfer_;
  std::vector<GuardedSeries> layers_;
};

}  // namespace

std::string tell_dropped(const Verification& verification, int blocks) {
  if (verification.dropped_blocks == 0) return "";
  std::string text = std::to_string(verification.dropped_blocks) + " of " + std::to_string(blocks) +
                     " blocks were dropped, for other programs kept " +
                     fixed(verification.dropped_foreign_cores, 2) + " cores busy";
  const int left = blocks - verification.measured_blocks;
  if (left > 0) text += ", and the last " + std::to_string(left) + " were not tried";
  return text + " (--accept-load drops none)";
}

bool is_hopeless(int blocks, int needed, int measured, int dropped) {
  constexpr int kFewestTried = 10;
  if (needed > blocks) return false;
  if (blocks - dropped < needed) return true;
  return dropped == measured && measured >= std::max(kFewestTried, (blocks + 3) / 4);
}

Verification verify(const VerifyOptions& options, const Dataset& data,
                    const std::function<void(int, int)>& progress) {
  if (options.plan.cache_frozen_prefix) {
    throw InfeasibleError("verify times every layer, so it takes no plan with a cached prefix");
  }
  Verifying verifying(options, data);
  verifying.warm_up();
  const std::size_t layers = verifying.run().model().layers.size();
  std::vector<BlockRatios> compared{{"step", {}}};
  for (const LayerSpec& layer : verifying.run().model().layers)
    compared.push_back({layer.name, {}});
  std::vector<double> predicted_steps;
  std::vector<double> measured_steps;
  std::vector<double> dropped_cores;  // that other programs kept busy
  std::vector<double> counted_cores;
  // A guard needs its fewest blocks, and a verdict half of them as well.
  const int needed = options.probes_link
                         ? kFewestBaselineBlocks
                         : std::max(kFewestBaselineBlocks, (options.blocks + 1) / 2);
  SeriesCollector series(verifying.run().model());
  const int blocks_per_probe = std::max(options.blocks / kProbes, 1);
  for (int block = 0; block < options.blocks; ++block) {
    const ForeignLoad load;
    const auto [profiled, measured] = verifying.take_block();
    std::optional<LinkProbe> probe;
    if (options.probes_link && block % blocks_per_probe == 0) {
      probe = probe_link(verifying.run().devices(), kProbeRepetitions);
    }
    if (progress) progress(block + 1, options.blocks);
    const double cores = load.cores().value_or(0);
    if (!options.accepts_load && cores > options.most_foreign_cores) {
      dropped_cores.push_back(cores);
      const int dropped = static_cast<int>(dropped_cores.size());
      if (is_hopeless(options.blocks, needed, block + 1, dropped)) break;
      continue;
    }
    counted_cores.push_back(cores);
    predicted_steps.push_back(static_cast<double>(verifying.predict(profiled).makespan.count()));
    measured_steps.push_back(trimmed_mean(measured.step_times, kKeepAll));
    compared[0].ratios.push_back(predicted_steps.back() / measured_steps.back());
    series.add_step(measured_steps.back(), predicted_steps.back());
    if (probe) series.add_link(probe->link);
    for (std::size_t l = 0; l < layers; ++l) {
      const std::vector<int> sizes = measured.times.sizes(LayerId{l});
      if (sizes.empty()) continue;
      const int size = sizes.back();
      const Duration before = profiled.times.forward_and_backward(LayerId{l}, size);
      const Duration after = measured.times.forward_and_backward(LayerId{l}, size);
      if (after.count() > 0 && before.count() > 0) {
        compared[l + 1].ratios.push_back(static_cast<double>(before.count()) /
                                         static_cast<double>(after.count()));
        series.add_layer(l, after);
      }
    }
  }
  Verification verification;
  verification.series = series.take();
  verification.dropped_blocks = static_cast<int>(dropped_cores.size());
  verification.measured_blocks = static_cast<int>(dropped_cores.size() + counted_cores.size());
  const auto mean = [](const std::vector<double>& cores) {
    return cores.empty() ? 0 : trimmed_mean(cores, kKeepAll);
  };
  verification.dropped_foreign_cores = mean(dropped_cores);
  verification.counted_foreign_cores = mean(counted_cores);
  if (!measured_steps.empty()) {
    verification.predicted_step =
        Duration{static_cast<Duration::rep>(trimmed_mean(predicted_steps))};
    verification.measured_step = Duration{static_cast<Duration::rep>(trimmed_mean(measured_steps))};
  }
  const Conclusion conclusion =
      conclude(compared, {.bar = options.bar, .seed = options.seed, .blocks = options.blocks});
  verification.ratios = conclusion.ratios;
  verification.verdict = conclusion.verdict;
  verification.reason = conclusion.reason;
  const std::string dropped = tell_dropped(verification, options.blocks);
  if (!verification.reason.empty() && !dropped.empty()) verification.reason += "; " + dropped;
  return verification;
}

}  // namespace frazil
