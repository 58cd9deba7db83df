#include "tests/bench/transitions/transition_walk.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>

#include "exec/devices/steady_time.h"
#include "exec/models/vit.h"
#include "exec/train/plans/memory_probe.h"
#include "planner/plan/activity.h"

namespace frazil {
namespace {

constexpr int kDevices = 4;
constexpr int kMicroBatches = 4;
constexpr int kMicroBatch = 2;  // samples

Duration median(std::array<Duration, 5> times) {
  std::sort(times.begin(), times.end());
  return times[2];
}

std::string name_of(const Plan& plan) {
  std::string name;
  for (const Pipeline& pipeline : plan.pipelines) {
    name += (name.empty() ? "" : "+") + std::to_string(pipeline.stages.size());
  }
  return name + " frozen " + std::to_string(plan.mask.frozen_count());
}

}  // namespace

TransitionWalk::TransitionWalk(const BenchModel& model, std::uint64_t seed, int surprises)
    : run_(make_vit(model.config), optimizer_, seed, kDevices),
      profile_(with_even_times(run_.structure(), kMicroBatch)),
      cluster_(make_uniform_cluster(kDevices, Bytes{kLargestQuantity}, {})),
      search_({profile_, cluster_}),
      random_(seed),
      surprises_(surprises) {
  shape_.batch_size = kMicroBatch * kMicroBatches;
  shape_.micro_batches = kMicroBatches;
  batches_ = make_batches(model.config, shape_, 1, seed);
  for (int i = 0; i < shape_.batch_size; ++i) ids_.push_back(i);
  cache_.emplace(run_.model(), run_.outputs(narrow(batches_[0][0], 0, 1)), shape_.batch_size,
                 files_, PrefixCacheOptions{.limits = {Bytes{1 << 28}, {}, {}}});
  run_.attach(*cache_);
}

void TransitionWalk::begin() {
  const Plan plan = draw();
  (void)ask(plan.mask);
  run_.transition_to(plan);
  train();
  std::array<Duration, 5> plan_times;
  std::array<Duration, 5> move_times;
  std::array<Duration, 5> start_times;
  for (std::size_t i = 0; i < plan_times.size(); ++i) {
    train();
    plan_times[i] = ask(plan.mask);
    const TransitionReport again = run_.transition_to(plan);
    move_times[i] = again.move_time;
    start_times[i] = again.program_time + again.executor_time;
  }
  overhead_.plan = median(plan_times);
  overhead_.move = median(move_times);
  overhead_.start = median(start_times);
  ProcessorCaches caches;
  overhead_.memory = probe_memory(run_, caches);
}

// Draws the plan to go to, which in a surprise is not the one that memory is reserved for.
Plan TransitionWalk::expect_and_draw(WalkedTransition& taken) {
  const Plan before = run_.plan();
  const Plan expected = draw_other(before);
  run_.state_memory().reserve(run_.copied_blocks(expected));
  taken.is_surprise = static_cast<int>(random_() % 100) < surprises_;
  Plan next = expected;
  while (taken.is_surprise && next == expected) next = draw_other(before);
  taken.name = name_of(before) + " -> " + name_of(next);
  return next;
}

WalkedTransition TransitionWalk::take() {
  WalkedTransition taken;
  const Plan next = expect_and_draw(taken);
  const Plan before = run_.plan();
  const TransitionCost cost = price_transition(before, next, {profile_, cluster_},
                                               find_activity(profile_, before.mask), overhead_);
  taken.predicted = {overhead_.plan, cost.move, cost.total - cost.move - overhead_.plan};
  taken.measured.plan = ask(next.mask);
  const TransitionReport report = run_.transition_to(next);
  taken.measured.move = report.move_time;
  taken.measured.start = report.start_time();
  taken.move = report.move;
  taken.program = report.program_time;
  taken.executors = report.executor_time;
  taken.cache = report.cache_time;
  const Duration first = train();
  taken.warm_up = first - train();
  return taken;
}

// Draws a plan: one to four devices, even cuts, and a mask that freezes none or some blocks from
// the front.
Plan TransitionWalk::draw() {
  struct Shape {
    int stages;
    int replicas;
  };
  static constexpr Shape kShapes[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {2, 2}, {1, 4}};
  const Shape& drawn = kShapes[random_() % std::size(kShapes)];
  BenchPlan shape = shape_;
  shape.devices = drawn.stages;
  shape.replicas = drawn.replicas;
  Plan plan = make_bench_plan(run_.structure(), shape);
  const auto blocks = static_cast<int>(run_.structure().blocks.size());
  const int frozen = static_cast<int>(random_() % static_cast<unsigned>(blocks - 1));
  if (frozen > 0) plan.mask = FreezeMask::frozen_prefix(blocks, BlockId{frozen});
  return with_cached_prefix(plan, profile_).value_or(plan);
}

Plan TransitionWalk::draw_other(const Plan& before) {
  Plan next = draw();
  while (next.pipelines == before.pipelines) next = draw();
  return next;
}

Duration TransitionWalk::ask(const FreezeMask& mask) {
  const SteadyTime start = std::chrono::steady_clock::now();
  SearchOptions search;
  search.batch_size = shape_.batch_size;
  search.micro_batch_sizes = {kMicroBatch};
  search.mask = mask;
  search.cache = true;
  (void)search_.search(search);
  return since(start);
}

Duration TransitionWalk::train() {
  const SteadyTime start = std::chrono::steady_clock::now();
  run_.step(step_++, optimizer_.learning_rate, batches_[0], false, {}, ids_);
  return since(start);
}

}  // namespace frazil
