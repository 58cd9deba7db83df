#include "planner/reproduce/pipe_bd_results.h"

#include <algorithm>
#include <cmath>

#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/pipe_bd_workloads.h"
#include "planner/reproduce/repeat_steps.h"

namespace frazil {
namespace {

constexpr Jitter kJitter{.seed = 1, .draws = 5, .amplitude_ppm = 250'000};
constexpr int kDevices = 4;

StepTimes simulate_workload(const Workload& workload, bool barrier) {
  constexpr RepeatOptions kPlain{.steps = 50, .barrier = false};
  constexpr RepeatOptions kVaried{.steps = 2000, .barrier = false};
  const auto& [model, cluster, plan] = workload;
  const auto with = [&](RepeatOptions options) {
    options.barrier = barrier;
    return options;
  };
  return {find_period(plan, {model, cluster}, with(kPlain)),
          find_period_with_jitter(plan, {model, cluster}, with(kVaried), kJitter)};
}

// Trains the students one after another, each on all devices.
StepTimes simulate_data_parallel(const BlockwiseTimes& times) {
  StepTimes sum;
  for (int block = 0; block < times.blocks(); ++block) {
    const StepTimes step = simulate_workload(make_single_student(times, block, kDevices), false);
    sum.plain += step.plain;
    sum.varied += step.varied;
  }
  return sum;
}

// Trains each student on one device, at the full batch. Devices have the blocks that Pipe-BD's code
// gives them, and the device with the longest sum decides.
StepTimes simulate_layerwise(const BlockwiseTimes& times) {
  const std::vector<std::vector<int>> blocks_of = {{0}, {1}, {2, 3}, {4, 5}};
  StepTimes longest;
  for (const std::vector<int>& blocks : blocks_of) {
    StepTimes sum;
    for (const int block : blocks) {
      const StepTimes step = simulate_workload(make_single_student(times, block, 1), false);
      sum.plain += step.plain;
      sum.varied += step.varied;
    }
    longest.plain = std::max(longest.plain, sum.plain);
    longest.varied = std::max(longest.varied, sum.varied);
  }
  return longest;
}

// Returns the first of the best plans with one device per stage, which TR and TR+DPU take.
HybridPlan find_pipeline(const std::vector<HybridPlan>& ranked) {
  return *std::find_if(ranked.begin(), ranked.end(), [](const HybridPlan& plan) {
    return plan.groups.size() == static_cast<std::size_t>(kDevices);
  });
}

SpeedupResult simulate_imagenet(const std::vector<HybridPlan>& ranked) {
  const BlockwiseTimes times = make_imagenet_times();
  const Workload pipeline = make_relayed(times, find_pipeline(ranked));
  return {kSpeedups[1],
          {simulate_data_parallel(times), simulate_layerwise(times),
           simulate_workload(pipeline, true), simulate_workload(pipeline, false),
           simulate_workload(make_relayed(times, ranked.front()), false)}};
}

// Simulates NAS on CIFAR-10 from the breakdown, which lists ranks and not blocks. So layerwise
// scheduling cannot be simulated; AHD equals TR+DPU in the chart.
SpeedupResult simulate_cifar(const Workload& pipeline) {
  const Workload data_parallel = make_single_student(make_cifar_data_parallel_times(), 0, 1);
  const StepTimes decoupled = simulate_workload(pipeline, false);
  return {kSpeedups[0],
          {simulate_workload(data_parallel, false), std::nullopt, simulate_workload(pipeline, true),
           decoupled, decoupled}};
}

// Converts a time in a step to hundredths of a second of an epoch of 100 steps.
int hundredths(Duration step) {
  return static_cast<int>(std::llround(static_cast<double>(step.count()) / 1e5));
}

EpochShares share_epoch(const Workload& workload, DeviceId device, std::string_view name) {
  const auto& [model, cluster, plan] = workload;
  const SimulatedStep step = simulate_step(plan, {model, cluster});
  EpochShares shares{name, 0, 0, 0, 0};
  const Duration period = find_period(plan, {model, cluster}, {.steps = 50, .barrier = false});
  Duration loading{0};
  Duration teaching{0};
  Duration learning{0};
  for (TaskId task = 0; task < step.lowered.graph.size(); ++task) {
    const auto& work = step.lowered.graph.works()[step.lowered.graph.work_of()[task]];
    const auto* const compute = std::get_if<Compute>(&work);
    if (compute == nullptr || compute->device != device) continue;
    for (const LayerWork& part : compute->parts) {
      const Layer& layer = model.layers[part.layer.index()];
      const CostSample cost = cost_at(layer, compute->micro_batch_size).cost;
      if (part.part == LayerPart::kForwardFrozen) {
        (layer.name == "load" ? loading : teaching) += cost.forward_frozen;
      } else if (part.part == LayerPart::kBackwardWeightAlone) {
        learning += cost.backward_weight_alone;
      }
    }
  }
  shares.load = hundredths(loading);
  shares.teacher = hundredths(teaching);
  shares.student = hundredths(learning);
  shares.idle = hundredths(period - loading - teaching - learning);
  return shares;
}

bool is_within_tenth(const EpochResult& result) {
  // The breakdown's epoch takes 10.6 s.
  constexpr int kTenthOfPeriod = 106;
  return std::abs(result.simulated.idle - result.published.idle) <= kTenthOfPeriod;
}

VaryingResult simulate_varying() {
  const Workload workload =
      make_relayed(make_balanced_times(), {{1, 1, 1, 1}, {0, 1, 2, 3, 4}, Duration{0}});
  const auto period = [&](bool barrier) {
    return find_period_with_jitter(workload.plan, {workload.model, workload.cluster},
                                   {.steps = 10'000, .barrier = barrier}, kJitter);
  };
  return {period(true), period(false)};
}

bool is_within_tenth_of_ms(Duration time, double published_ms) {
  return std::abs(to_ms(time) - published_ms) <= 0.1;
}

}  // namespace

PipeBdResults simulate_pipe_bd() {
  PipeBdResults results;
  const std::vector<HybridPlan> ranked = rank_hybrid_plans(make_published_costs());
  const Workload cifar =
      make_relayed(make_cifar_times(), {{1, 1, 1, 1}, {0, 1, 2, 3, 4}, Duration{0}});
  results.speedups = {
      simulate_cifar(cifar), simulate_imagenet(ranked), {kSpeedups[2], {}}, {kSpeedups[3], {}}};
  results.data_parallel = {kDataParallelEpoch,
                           share_epoch(make_single_student(make_cifar_data_parallel_times(), 0, 1),
                                       DeviceId{0}, kDataParallelEpoch.name)};
  for (std::size_t rank = 0; rank < kPipeBdEpoch.size(); ++rank) {
    const EpochShares& published = kPipeBdEpoch[rank];
    results.ranks.push_back({published, share_epoch(cifar, DeviceId{rank}, published.name)});
  }
  results.schedules_are_exact = true;
  const std::vector<PublishedSchedule> schedules = list_published_schedules();
  for (std::size_t s = 0; s < schedules.size(); ++s) {
    const Workload workload = make_relayed(make_imagenet_times(), ranked[s]);
    results.schedules.push_back(
        {schedules[s], ranked[s],
         find_period(workload.plan, {workload.model, workload.cluster}, {})});
    results.schedules_are_exact = results.schedules_are_exact && ranked[s] == schedules[s].plan;
  }
  results.varying = simulate_varying();

  results.idle_is_within_tenth =
      std::all_of(results.ranks.begin(), results.ranks.end(), is_within_tenth);
  results.varying_is_published = is_within_tenth_of_ms(results.varying.barrier, kBarrierStepMs) &&
                                 is_within_tenth_of_ms(results.varying.decoupled, kDecoupledStepMs);
  return results;
}

}  // namespace frazil
