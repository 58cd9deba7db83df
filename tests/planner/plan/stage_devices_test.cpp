#include <gtest/gtest.h>

#include <random>

#include "planner/plan/plan.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

std::vector<int> numbers(const std::vector<MicroBatches>& intervals) {
  std::vector<int> all;
  for (const MicroBatches& each : intervals) {
    for (int m = each.first.value; m <= each.last.value; ++m) all.push_back(m);
  }
  return all;
}

TEST(StageDevices, TakeTheMicroBatchesOfTheirPipelineInTurn) {
  Pipeline pipeline = make_shared_pipeline({2, 3}, 1, interval(0, 6));
  EXPECT_EQ(numbers(micro_batches_on(pipeline, StageId{0}, DeviceId{0})),
            (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(numbers(micro_batches_on(pipeline, StageId{1}, DeviceId{3})), (std::vector<int>{1, 4}));
  EXPECT_EQ(device_of(pipeline, StageId{1}, MicroBatchId{5}), DeviceId{4});
  EXPECT_TRUE(micro_batches_on(pipeline, StageId{1}, DeviceId{0}).empty());
  // The turn follows the micro-batches that the pipeline owns, not their numbers.
  pipeline.micro_batches = {interval(3, 4), interval(8, 8)};
  EXPECT_EQ(numbers(micro_batches_on(pipeline, StageId{0}, DeviceId{0})), (std::vector<int>{3, 8}));
  EXPECT_EQ(device_of(pipeline, StageId{1}, MicroBatchId{8}), DeviceId{4});
}

TEST(StageDevices, OfOneHaveWhatTheirPipelineOwns) {
  const Pipeline pipeline = make_shared_pipeline({1}, 1, interval(2, 5), 7);
  EXPECT_EQ(micro_batches_on(pipeline, StageId{0}, DeviceId{7}),
            (std::vector<MicroBatches>{interval(2, 5)}));
}

TEST(StageDevices, AgreeHoweverTheyAreAskedAndKeepTheirTurnsInAShorterBatch) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::vector<int> devices{static_cast<int>(random() % 5) + 1};
    Pipeline pipeline = make_shared_pipeline(devices, 1, interval(0, 0));
    pipeline.micro_batches.clear();
    std::vector<int> owned;
    for (int m = 0; m < 20; ++m) {
      if (random() % 2 == 0) continue;
      owned.push_back(m);
      auto& intervals = pipeline.micro_batches;
      if (!intervals.empty() && intervals.back().last.value == m - 1) {
        intervals.back().last = MicroBatchId{m};
      } else {
        intervals.push_back(interval(m, m));
      }
    }
    std::vector<std::vector<int>> dealt(static_cast<std::size_t>(devices[0]));
    for (std::size_t k = 0; k < owned.size(); ++k) {
      dealt[k % dealt.size()].push_back(owned[k]);
      EXPECT_EQ(device_of(pipeline, StageId{0}, MicroBatchId{owned[k]}).index(), k % dealt.size());
    }
    Pipeline shorter = pipeline;
    while (!shorter.micro_batches.empty() && shorter.micro_batches.back().last.value >= 10) {
      MicroBatches& last = shorter.micro_batches.back();
      last.last = MicroBatchId{9};
      if (last.last < last.first) shorter.micro_batches.pop_back();
    }
    for (std::size_t d = 0; d < dealt.size(); ++d) {
      EXPECT_EQ(numbers(micro_batches_on(pipeline, StageId{0}, DeviceId{d})), dealt[d]);
      std::erase_if(dealt[d], [](int m) { return m >= 10; });
      EXPECT_EQ(numbers(micro_batches_on(shorter, StageId{0}, DeviceId{d})), dealt[d]);
    }
  }
}

TEST(StageDevices, AreToldInTheSummaryWhereTheyAreSeveral) {
  Plan plan = make_shared_plan({2, 1}, 1, 6, {});
  EXPECT_EQ(summarize(plan),
            "2 stages x 1 pipeline on 2+1 devices, 1f1b, 6 micro-batches of 1, cut 1");
  plan.pipelines[0].micro_batches = {interval(0, 2)};
  plan.pipelines.push_back(make_shared_pipeline({1, 1}, 1, interval(3, 5), 3));
  EXPECT_EQ(summarize(plan),
            "2 stages x 2 pipelines on 2+1 | 1+1 devices, 1f1b, 6 micro-batches of 1, cut 1");
}

}  // namespace
}  // namespace frazil
