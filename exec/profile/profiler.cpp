#include "exec/profile/profiler.h"

#include <algorithm>
#include <map>

#include "analysis/foreign_cores.h"
#include "exec/config/configured_run.h"
#include "exec/devices/foreign_load.h"
#include "exec/devices/host_facts.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/fixed.h"
#include "exec/measuring/layer_times.h"
#include "exec/measuring/stash_meter.h"
#include "exec/profile/link_probe.h"
#include "exec/run/run.h"
#include "exec/state/optimizer.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Two micro-batches per device are enough to see one follow the other.
constexpr int kMicroBatchesPerDevice = 2;

// Makes a plan with the whole model on every device, each with its own micro-batches.
Plan make_replica_plan(const ModelProfile& structure, int devices, int micro_batch_size) {
  Plan plan;
  plan.model_hash = model_hash(structure);
  plan.micro_batch_size = micro_batch_size;
  plan.batch_size = micro_batch_size * kMicroBatchesPerDevice * devices;
  plan.mask = FreezeMask::all_active(static_cast<int>(structure.blocks.size()));
  for (std::int32_t d = 0; d < devices; ++d) {
    const MicroBatches owned{MicroBatchId{d * kMicroBatchesPerDevice},
                             MicroBatchId{(d + 1) * kMicroBatchesPerDevice - 1}};
    plan.pipelines.push_back(
        make_pipeline(static_cast<int>(structure.layers.size()), {}, {DeviceId{d}}, owned));
  }
  return plan;
}

struct Gathered {
  LayerTimes times;
  LayerTimes frozen_times;  // with all blocks but the head frozen
  OverheadMeter overheads;
};

void run_stretch(Run& run, const Dataset& data, const OptimizerConfig& optimizer, Step first,
                 int steps, Gathered* gathered) {
  const std::vector<std::int64_t> order = epoch_order(data.train.count(), 0, 0);
  for (Step step = first; step < first + steps; ++step) {
    const SteadyTime start = std::chrono::steady_clock::now();
    const std::vector<Samples> micro_batches =
        gather_micro_batches(data.train, order, step * run.plan().batch_size, run.plan().batch_size,
                             run.plan().micro_batch_size);
    const StepResult result = run.step(step, optimizer.learning_rate, micro_batches, true);
    const Duration step_time = since(start);
    const std::vector<LayerSample> samples = run.take_layer_samples();
    if (gathered == nullptr) continue;
    if (run.plan().mask.frozen_count() > 0) {
      gathered->frozen_times.add(samples);
      continue;
    }
    gathered->times.add(samples);
    const bool split = step % 2 == 1;
    if (!split) gathered->overheads.add_step(step_time, result.spans, samples);
  }
}

CostSample make_cost(const Gathered& gathered, LayerId layer, int size, bool has_input_gradient) {
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
  if (!has_input_gradient) {
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
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    profile.layers[l].costs.clear();
    profile.layers[l].update = gathered.times.mean(LayerId{l}, LayerPhase::kUpdate, 0);
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
      CostSample cost = make_cost(gathered, LayerId{l}, size, l > 0);
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
  Gathered gathered;
  run.measure({.layers = true, .split_backward = true});
  Step step = 0;
  const auto stretch = [&](const Plan& plan, int steps, bool warm_up) {
    run.transition_to(plan);
    // Caches and allocator see the plan before it counts.
    const int settle = warm_up ? options.warm_up_steps : 1;
    run_stretch(run, data, config.optimizer, step, settle, nullptr);
    if (!warm_up) run_stretch(run, data, config.optimizer, step + settle, steps, &gathered);
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
  // The stash of a layer is measured with every parameter active.
  run.transition_to(make_replica_plan(run.structure(), options.devices, sizes.front()));
  MeasuredProfile measured{run.structure(), {}, load.cores()};
  fill_costs(measured.profile, gathered, run, data, sizes);
  const LinkProbe probe = probe_link(run.devices());
  measured.cluster =
      make_uniform_cluster(options.devices, find_memory_limit(options, run.devices()), probe.link);
  const Overheads overheads = gathered.overheads.overheads();
  for (Device& device : measured.cluster.devices) {
    device.action_overhead = overheads.per_action;
    device.step_overhead = overheads.per_step;
  }
  measured.profile.provenance = host_facts();
  measured.profile.provenance["command"] = options.command;
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
