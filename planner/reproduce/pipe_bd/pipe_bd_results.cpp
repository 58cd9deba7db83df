#include "planner/reproduce/pipe_bd/pipe_bd_results.h"

#include <algorithm>
#include <cmath>

#include "planner/reproduce/pipe_bd/compression_workload.h"

namespace frazil {
namespace {

// Simulates all methods of a chart and looks for our own plan.
SpeedupResult simulate_methods(const SpeedupChart& chart, const BlockwiseTask& task,
                               const Dealing& dealing, const StudentDraws& draws) {
  const std::vector<HybridPlan> ranked =
      rank_hybrid_plans(find_hybrid_costs(task.times, Bytes{kLargestQuantity}));
  const HybridPlan pipeline = find_pipeline(ranked);
  const HybridPlan& best = ranked.front();
  return {.published = chart,
          .times = {time_data_parallel(task, draws), time_layerwise(task, dealing, draws),
                    time_relayed(task, pipeline, /*barrier=*/true, draws),
                    time_relayed(task, pipeline, /*barrier=*/false, draws),
                    time_relayed(task, best, /*barrier=*/false, draws)},
          .pipeline_cuts = pipeline.cuts,
          .distribution = best,
          .own = find_own_hybrid(task, kPipeBdMemory)};
}

SpeedupResult simulate_search(const SpeedupChart& chart, const BlockwiseTask& task, double bar) {
  const Dealing dealing = deal_as_published();
  SpeedupResult result = simulate_methods(chart, task, dealing, kPathDraws);
  result.bar = bar;
  constexpr auto kLs = static_cast<std::size_t>(BlockwiseMethod::kLs);
  result.open_load =
      find_open_load(task, dealing, result.times.front().plain, chart.thousandths[kLs] / 1000.0);
  return result;
}

SpeedupResult simulate_compression(const SpeedupChart& chart, ImageSet images) {
  const BlockwiseTask task{make_compression_times(images), make_compression_loader(images)};
  return simulate_methods(chart, task, deal_by_time(task.times), {});
}

// Converts a time in a step to hundredths of a second of an epoch of 100 steps.
int hundredths(Duration step) {
  return static_cast<int>(std::llround(static_cast<double>(step.count()) / 1e5));
}

// Parts of a step that one device spends.
struct StepShares {
  Duration teacher{0};
  Duration student{0};
};

StepShares share_step(const PricedStep& step, DeviceId device) {
  StepShares shares;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    if (step.graph.lanes()[step.graph.lane_of()[task]].device != device) continue;
    Duration students{0};
    for (const Duration student : step.costs[task].drawn) students += student;
    shares.student += students;
    shares.teacher += step.costs[task].time - students;
  }
  return shares;
}

EpochShares share_rank(const BlockwiseTask& task, DeviceId rank, std::string_view name) {
  const PricedStep step = price_step(make_relayed(task.times, make_cifar_pipeline()), false);
  LoadedSteps training(task.loader);
  training.append(step, 100);
  const auto& loading = step.load_for;
  const bool loads = std::find(loading.begin(), loading.end(), rank) != loading.end();
  const Duration load = loads ? training.find_load_time(rank) : kNoTime;
  const auto [teacher, student] = share_step(step, rank);
  return {name, hundredths(load), hundredths(teacher), hundredths(student),
          hundredths(training.find_period() - load - teacher - student)};
}

// Data parallelism: the sum over all students, on the first device.
EpochShares share_data_parallel(const BlockwiseTask& task) {
  Duration load{0};
  Duration teacher{0};
  Duration student{0};
  Duration period{0};
  for (int block = 0; block < task.times.blocks(); ++block) {
    const PricedStep step =
        price_step(make_single_student(task.times, block, kPipeBdDevices), false);
    LoadedSteps training(task.loader);
    training.append(step, 2);
    const StepShares shares = share_step(step, DeviceId{0});
    load += training.find_load_time(DeviceId{0});
    teacher += shares.teacher;
    student += shares.student;
    period += training.find_period();
  }
  return {kDataParallelEpoch.name, hundredths(load), hundredths(teacher), hundredths(student),
          hundredths(period - load - teacher - student)};
}

bool is_within_tenth(const EpochResult& result) {
  // The breakdown's epoch takes 10.6 s.
  constexpr int kTenthOfPeriod = 106;
  return std::abs(result.simulated.idle - result.published.idle) <= kTenthOfPeriod;
}

void share_epoch(PipeBdResults& results) {
  const BlockwiseTask task{make_cifar_times(), make_cifar_loader()};
  results.data_parallel = {kDataParallelEpoch, share_data_parallel(task)};
  for (std::size_t rank = 0; rank < kPipeBdEpoch.size(); ++rank) {
    const EpochShares& published = kPipeBdEpoch[rank];
    results.ranks.push_back({published, share_rank(task, DeviceId{rank}, published.name)});
  }
  results.idle_is_within_tenth =
      std::all_of(results.ranks.begin(), results.ranks.end(), is_within_tenth);
}

void find_schedules(PipeBdResults& results) {
  const BlockwiseTask task{make_imagenet_times(), make_imagenet_loader()};
  const std::vector<HybridPlan> ranked = rank_hybrid_plans(make_published_costs());
  const Duration data_parallel = time_data_parallel(task, {}).plain;
  results.schedules_are_exact = true;
  const std::vector<PublishedSchedule> schedules = list_published_schedules();
  for (std::size_t s = 0; s < schedules.size(); ++s) {
    const Duration period = time_relayed(task, ranked[s], /*barrier=*/false, {}).plain;
    results.schedules.push_back(
        {schedules[s], ranked[s], period,
         static_cast<double>(data_parallel.count()) / static_cast<double>(period.count())});
    results.schedules_are_exact = results.schedules_are_exact && ranked[s] == schedules[s].plan;
  }
}

}  // namespace

std::vector<SpeedupResult> simulate_speedups() {
  std::vector<SpeedupResult> results = {
      simulate_search(kSpeedups[0], {make_cifar_times(), make_cifar_loader()}, kCifarBar),
      simulate_search(kSpeedups[1], {make_imagenet_times(), make_imagenet_loader()}, kImageNetBar),
      simulate_compression(kSpeedups[2], ImageSet::kCifar10),
      simulate_compression(kSpeedups[3], ImageSet::kImageNet)};
  results[1].fitted = BlockwiseMethod::kTrDpu;
  return results;
}

PipeBdResults simulate_pipe_bd(const VaryingOptions& varying) {
  PipeBdResults results;
  results.speedups = simulate_speedups();
  share_epoch(results);
  find_schedules(results);
  results.varying = simulate_varying(varying);
  return results;
}

}  // namespace frazil
