#include "planner/reproduce/pipe_bd/blockwise_methods.h"

#include <algorithm>
#include <numeric>

#include "planner/partition/pipe_bd.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Steps whose mean time is taken, behind as many in which pipelines fill.
constexpr int kCounted = 100;
// A search simulates many plans, none of which varies.
constexpr int kCountedOfSearch = 20;

// Makes the devices train `steps` steps of each of their students.
LoadedSteps deal_steps(const BlockwiseTask& task, const Dealing& dealing, int steps) {
  LoadedSteps training(task.loader);
  for (std::size_t device = 0; device < dealing.size(); ++device) {
    for (const int block : dealing[device]) {
      const Workload alone = make_single_student(task.times, block, 1);
      training.append(price_step(alone, /*barrier=*/false), steps, DeviceId{device});
    }
  }
  return training;
}

Duration time_plainly(const BlockwiseTask& task, const HybridPlan& plan) {
  LoadedSteps training(task.loader);
  training.append(price_step(make_relayed(task.times, plan), /*barrier=*/false),
                  2 * kCountedOfSearch);
  return training.find_period();
}

}  // namespace

Dealing deal_as_published() { return {{0}, {1}, {2, 3}, {4, 5}}; }

Dealing deal_by_time(const BlockwiseTimes& times) {
  std::vector<Duration> training;
  Duration teachers{0};
  for (std::size_t b = 0; b < times.teacher.back().size(); ++b) {
    teachers += times.teacher.back()[b];
    training.push_back(teachers + times.student.back()[b]);
  }
  std::vector<int> order(training.size());
  std::iota(order.begin(), order.end(), 0);
  const auto time_of = [&](int block) { return training[static_cast<std::size_t>(block)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return time_of(a) > time_of(b); });
  Dealing dealing(kPipeBdDevices);
  std::vector<Duration> work(kPipeBdDevices, Duration{0});
  for (const int block : order) {
    const auto least = std::min_element(work.begin(), work.end());
    dealing[static_cast<std::size_t>(least - work.begin())].push_back(block);
    *least += time_of(block);
  }
  return dealing;
}

MethodTime time_data_parallel(const BlockwiseTask& task, const StudentDraws& draws) {
  MethodTime sum{.plain = {}, .drawn = std::vector<Duration>(static_cast<std::size_t>(draws.runs))};
  for (int block = 0; block < task.times.blocks(); ++block) {
    LoadedSteps training(task.loader);
    const Workload shared = make_single_student(task.times, block, kPipeBdDevices);
    training.append(price_step(shared, /*barrier=*/false), 2 * kCounted);
    sum.plain += training.find_period();
    StudentDraws own = draws;
    own.seed += static_cast<std::uint64_t>(block);
    std::size_t run = 0;
    for (const Duration period : training.draw_periods(own)) sum.drawn[run++] += period;
  }
  return sum;
}

MethodTime time_layerwise(const BlockwiseTask& task, const Dealing& dealing,
                          const StudentDraws& draws) {
  const LoadedSteps twice = deal_steps(task, dealing, 2 * kCounted);
  const Duration once = deal_steps(task, dealing, kCounted).find_end();
  MethodTime time{.plain = (twice.find_end() - once) / kCounted, .drawn = twice.draw_ends(draws)};
  for (Duration& end : time.drawn) end /= 2 * kCounted;
  return time;
}

MethodTime time_relayed(const BlockwiseTask& task, const HybridPlan& plan, bool barrier,
                        const StudentDraws& draws) {
  LoadedSteps training(task.loader);
  training.append(price_step(make_relayed(task.times, plan), barrier), 2 * kCounted);
  return {.plain = training.find_period(), .drawn = training.draw_periods(draws)};
}

HybridCosts find_hybrid_costs(const BlockwiseTimes& times, Bytes memory_limit) {
  const ModelProfile model = make_pipeline_model(times);
  const Cluster cluster = make_uniform_cluster(kPipeBdDevices, memory_limit, {});
  return measure_hybrid_with_memory({model, cluster}, FreezeMask::all_active(times.blocks()),
                                    times.batches.back());
}

HybridPlan find_pipeline(const std::vector<HybridPlan>& ranked) {
  const auto found = std::find_if(ranked.begin(), ranked.end(), [](const HybridPlan& plan) {
    return plan.groups.size() == static_cast<std::size_t>(kPipeBdDevices);
  });
  ENSURE(found != ranked.end(), "a plan with one device per stage");
  return *found;
}

OwnHybrid find_own_hybrid(const BlockwiseTask& task, Bytes memory_limit) {
  std::optional<OwnHybrid> best;
  for (const HybridPlan& plan : rank_hybrid_plans(find_hybrid_costs(task.times, memory_limit))) {
    // A step takes no less than its most expensive stage, and plans come by that cost.
    if (best && plan.cost >= best->step) break;
    const Duration step = time_plainly(task, plan);
    if (!best || step < best->step) best = OwnHybrid{plan, step};
  }
  ENSURE(best.has_value(), "a plan that fits");
  return *best;
}

}  // namespace frazil
