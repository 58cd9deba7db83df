#include "planner/reproduce/pipe_bd/blockwise_methods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "planner/reproduce/pipe_bd/compression_workload.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

Duration sum_to(const std::vector<Duration>& times, std::size_t last) {
  return std::accumulate(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                         Duration{0});
}

// Data parallelism takes, for each student, the longer of the batch's loading by all workers and
// the teachers up to it with the student, at a quarter of the batch. Layerwise scheduling takes
// what the workers need for a batch of each student, where that is longer than all compute.
TEST(BlockwiseMethods, HaveTheirClosedFormsOnImageNet) {
  const BlockwiseTask task{make_imagenet_times(), make_imagenet_loader()};
  Duration data_parallel{0};
  for (std::size_t b = 0; b < kPublishedBlocks; ++b) {
    const Duration compute = sum_to(task.times.teacher.front(), b) + task.times.student.front()[b];
    data_parallel += std::max(compute, task.loader.alone);
  }
  EXPECT_EQ(time_data_parallel(task, {}).plain, data_parallel);
  EXPECT_EQ(data_parallel, kPublishedBlocks * task.loader.alone) << "loading decides";
  EXPECT_EQ(time_layerwise(task, deal_as_published(), {}).plain,
            kPublishedBlocks * task.loader.alone);
}

TEST(BlockwiseMethods, DealTheLongestTrainingFirst) {
  const std::vector<Duration> teachers(5, microseconds(10));
  const std::vector<Duration> students(5, microseconds(1));
  const BlockwiseTimes even{{1}, {teachers}, {students}};
  // Trainings take 11, 21, 31, 41 and 51 us: the last student first.
  EXPECT_EQ(deal_by_time(even), (Dealing{{4}, {3}, {2}, {1, 0}}));
}

TEST(BlockwiseMethods, FindTheFastestOfAllHybridPlans) {
  for (const BlockwiseTask& task : {BlockwiseTask{make_imagenet_times(), make_imagenet_loader()},
                                    BlockwiseTask{make_cifar_times(), make_cifar_loader()}}) {
    Duration fastest = kNever;
    visit_hybrid_plans(
        kPipeBdDevices, task.times.blocks(), [&](const auto& groups, const auto& cuts) {
          LoadedSteps training(task.loader);
          training.append(price_step(make_relayed(task.times, {groups, cuts, {}}), false), 40);
          fastest = std::min(fastest, training.find_period());
        });
    EXPECT_EQ(find_own_hybrid(task, Bytes{kLargestQuantity}).step, fastest);
  }
}

TEST(BlockwiseMethods, KeepOwnPlansWithinTheMemoryOfDevices) {
  const BlockwiseTask task{make_compression_times(ImageSet::kImageNet),
                           make_compression_loader(ImageSet::kImageNet)};
  const OwnHybrid roomy = find_own_hybrid(task, Bytes{kLargestQuantity});
  const HybridCosts costs = find_hybrid_costs(task.times, Bytes{kLargestQuantity});
  // Leaves the fastest plan a byte too little.
  Bytes most;
  for (std::size_t s = 0; s < roomy.plan.groups.size(); ++s) {
    most = std::max(most,
                    costs.memory(roomy.plan.groups[s], roomy.plan.cuts[s], roomy.plan.cuts[s + 1]));
  }
  const Bytes limit{most.count - 1};
  const OwnHybrid tight = find_own_hybrid(task, limit);
  EXPECT_NE(tight.plan, roomy.plan);
  EXPECT_GE(tight.step, roomy.step);
  EXPECT_TRUE(
      fits_memory(find_hybrid_costs(task.times, limit), tight.plan.groups, tight.plan.cuts));
}

}  // namespace
}  // namespace frazil
