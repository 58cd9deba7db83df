#include "exec/profile/profiler.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "analysis/foreign_cores.h"
#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/host_facts.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/layer_times.h"
#include "exec/measuring/stash_meter.h"
#include "exec/profile/link_probe.h"
#include "exec/profile/replica_plan.h"
#include "exec/profile/step_end.h"
#include "exec/run/run.h"
#include "exec/state/optimizer.h"
#include "profiles/error.h"
#include "profiles/gradient_flow.h"

namespace frazil {
namespace {

// Of steps of one kind (micro-batch size, mask, whole or split backwards) a share is kept, the
// fastest ones, with all that was measured in them. If each phase of each layer were trimmed by
// itself, the parts would lose every spike, and a whole step only its own: their sum would be too
// small.
constexpr double kKept = 0.9;
constexpr double kUntrimmed = 1;

struct MeasuredStep {
  Duration time{0};
  std::vector<Span> spans;
  std::vector<LayerSample> samples;
};

struct StepKind {
  int micro_batch_size = 1;
  bool is_frozen = false;  // all blocks but the head
  bool is_split = false;
  friend auto operator<=>(const StepKind&, const StepKind&) = default;
};

using MeasuredSteps = std::map<StepKind, std::vector<MeasuredStep>>;

struct Gathered {
  LayerTimes times{kUntrimmed};
  LayerTimes frozen_times{kUntrimmed};  // with all blocks but the head frozen
  OverheadMeter overheads{kUntrimmed};
  StepEndMeter ends{kUntrimmed};
};

void run_stretch(Run& run, const Dataset& data, const OptimizerConfig& optimizer, Step first,
                 int steps, MeasuredSteps* measured) {
  const std::vector<std::int64_t> order = epoch_order(data.train.count(), 0, 0);
  const StepKind kind{.micro_batch_size = run.plan().micro_batch_size,
                      .is_frozen = run.plan().mask.frozen_count() > 0};
  for (Step step = first; step < first + steps; ++step) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::vector<Samples> micro_batches =
        gather_micro_batches(data.train, order, step * run.plan().batch_size, run.plan().batch_size,
                             run.plan().micro_batch_size);
    StepResult result = run.step(step, optimizer.learning_rate, micro_batches, true);
    const Duration step_time = since(start);
    std::vector<LayerSample> samples = run.take_layer_samples();
    if (measured == nullptr) continue;
    StepKind own = kind;
    own.is_split = step % 2 == 1;
    (*measured)[own].push_back({step_time, std::move(result.spans), std::move(samples)});
  }
}

Gathered gather_fastest(MeasuredSteps& measured) {
  Gathered gathered;
  for (auto& [kind, steps] : measured) {
    std::sort(steps.begin(), steps.end(), [](const MeasuredStep& one, const MeasuredStep& other) {
      return one.time < other.time;
    });
    steps.resize(static_cast<std::size_t>(std::ceil(kKept * static_cast<double>(steps.size()))));
    for (const MeasuredStep& step : steps) {
      (kind.is_frozen ? gathered.frozen_times : gathered.times).add(step.samples);
      if (kind.is_frozen) continue;
      gathered.ends.add_step(step.spans);
      if (!kind.is_split) gathered.overheads.add_step(step.time, step.spans, step.samples);
    }
  }
  return gathered;
}

CostSample make_cost(const Gathered& gathered, LayerId layer, int size,
                     const LayerGradients& gradients) {
  const LayerTimes& times = gathered.times;
  CostSample cost;
  cost.micro_batch_size = size;
  cost.forward =
      times.mean(layer, LayerPhase::kForward, size) + times.mean(layer, LayerPhase::kLoss, size);
  cost.forward_frozen =
      std::min(cost.forward, gathered.frozen_times.mean(layer, LayerPhase::kForward, size));
  // The layer with the loss never freezes, so it has no frozen forward of its own.
  if (cost.forward_frozen.count() == 0) cost.forward_frozen = cost.forward;
  const Duration backward = times.mean(layer, LayerPhase::kBackward, size);
  if (!gradients.weight) {
    cost.backward_input = backward;
    return cost;
  }
  if (!gradients.input) {
    cost.backward_weight = backward;
    cost.backward_weight_alone = backward;
    return cost;
  }
  cost.backward_input = std::min(backward, times.mean(layer, LayerPhase::kBackwardInput, size));
  cost.backward_weight = backward - cost.backward_input;
  cost.backward_weight_alone =
      std::max(cost.backward_weight, times.mean(layer, LayerPhase::kBackwardWeightAlone, size));
  return cost;
}

void fill_costs(ModelProfile& profile, const Gathered& gathered, const Run& run,
                const Dataset& data, const std::vector<int>& sizes) {
  const GradientFlow flow = find_unfrozen_flow(profile);
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    profile.layers[l].costs.clear();
    profile.layers[l].update = gathered.times.update(LayerId{l});
  }
  for (const int size : sizes) {
    const std::vector<std::int64_t> order = epoch_order(data.train.count(), 0, 0);
    const Samples there = gather_micro_batches(data.train, order, 0, size, size)[0];
    const auto brought = run.devices()[0].bring(there);
    const Samples& samples = brought ? *brought : there;
    const DeviceState& state = run.pool().states()[0];
    const std::vector<Bytes> stashes = measure_stashes(run.model(), state, samples);
    const std::vector<Bytes> frozen = measure_stashes(run.model(), state, samples, true);
    for (std::size_t l = 0; l < profile.layers.size(); ++l) {
      CostSample cost = make_cost(gathered, LayerId{l}, size, flow.layers[l]);
      cost.stash = stashes[l];
      cost.stash_frozen = frozen[l];
      profile.layers[l].costs.push_back(cost);
    }
  }
}

Bytes find_memory_limit(const ProfileOptions& options, const ComputeDevices& devices) {
  constexpr Bytes kEnough{std::int64_t{1} << 40};
  if (options.memory_limit.count > 0) return options.memory_limit;
  return devices[0].is_gpu() ? devices.memory_per_device() : kEnough;
}

}  // namespace

MeasuredProfile measure_profile(const RunConfig& config, const Dataset& data,
                                const ProfileOptions& options,
                                const std::function<void(int, int)>& progress) {
  std::vector<int> sizes = options.micro_batch_sizes;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  const ForeignLoad load;
  Run run(make_model(config), config.optimizer, config.seed, options.devices,
          run_options(config, options.processors));
  MeasuredSteps steps_taken;
  run.measure({.layers = true, .split_backward = true});
  Step step = 0;
  const auto stretch = [&](const Plan& plan, int steps, bool warm_up) {
    run.transition_to(plan);
    // Caches and allocator see the plan before it counts.
    const int settle = warm_up ? options.warm_up_steps : 1;
    run_stretch(run, data, config.optimizer, step, settle, nullptr);
    if (!warm_up) run_stretch(run, data, config.optimizer, step + settle, steps, &steps_taken);
    step += settle + steps;
  };
  for (int round = 0; round <= options.rounds; ++round) {
    for (const int size : sizes) {
      Plan plan = make_replica_plan(run.structure(), options.devices, size);
      stretch(plan, options.steps, round == 0);
      plan.mask = FreezeMask::frozen_prefix(plan.mask.blocks(), BlockId{plan.mask.blocks()});
      stretch(plan, std::max(1, options.steps / 2), round == 0);
    }
    if (progress) progress(round + 1, options.rounds + 1);
  }
  const Gathered gathered = gather_fastest(steps_taken);
  // The stash of a layer is measured with every parameter active.
  const Plan last_plan = make_replica_plan(run.structure(), options.devices, sizes.front());
  run.transition_to(last_plan);
  MeasuredProfile measured{run.structure(), {}, load.cores()};
  fill_costs(measured.profile, gathered, run, data, sizes);
  LinkProbe probe = probe_link(run.devices());
  if (options.devices > 1) {
    probe.link.bandwidth = find_reduction_bandwidth(gathered.ends.reduction(), last_plan,
                                                    run.structure(), probe.link.latency);
  }
  measured.cluster =
      make_uniform_cluster(options.devices, find_memory_limit(options, run.devices()), probe.link);
  const Overheads overheads = gathered.overheads.overheads();
  for (Device& device : measured.cluster.devices) {
    device.action_overhead = overheads.per_action;
    device.step_overhead = overheads.per_step;
  }
  measured.profile.provenance = host_facts();
  measured.profile.provenance["command"] = options.command;
  if (!options.model_check.empty()) {
    measured.profile.provenance["model_file"] = options.model_check;
  }
  if (options.processors.kind != DeviceKind::kCpu) {
    measured.profile.provenance["devices"] = run.devices().text();
  }
  measured.profile.provenance["steps"] =
      std::to_string(options.rounds * options.steps) + " per micro-batch size, half of them split";
  if (measured.foreign_cores) {
    measured.profile.provenance[kForeignCores] = fixed(*measured.foreign_cores, 2);
  }
  measured.cluster.provenance = measured.profile.provenance;
  return measured;
}

}  // namespace frazil
