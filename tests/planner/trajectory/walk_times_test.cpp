#include "planner/trajectory/walk_times.h"

#include <gtest/gtest.h>

#include <random>

#include "profiles/error.h"
#include "tests/support/mask_of.h"
#include "tests/support/sample_models.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Four layers of 100 us for each of F, I and W of a sample. Behind a boundary of 10 bytes a sample
// the features of a batch take 80 bytes: 10 ns at the 8 GB/s of memory.
class WalkTimesTest : public testing::Test {
 protected:
  WalkTimesTest() {
    plan.batch_size = 8;
    plan.micro_batch_size = 8;
    plan.mask = mask_of("1111");
    plan.schedule = NamedSchedule{};
    plan.pipelines = {make_pipeline(4, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{0}})};
    rules.search.batch_size = 8;
    rules.search.micro_batch_sizes = {8};
    rules.store = FeatureStore{.samples = 32, .memory = {Bytes{1000}, kMemoryLink}, .disk = {}};
  }
  WalkTimes time(const std::vector<HeldSegment>& walk) const {
    return time_walk({profile, cluster}, rules, walk);
  }

  ModelProfile profile = make_chain(4, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster =
      make_uniform_cluster(2, Bytes{100'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  Plan plan;
  WalkRules rules;
};

TEST_F(WalkTimesTest, AreThoseOfTheLayersThatComputeUnderEachMask) {
  const WalkTimes times = time({{plan, {0, 3, mask_of("1111")}}, {plan, {3, 5, mask_of("0011")}}});
  // 4 F, 3 I (layer 0 has no input gradient) and 4 W of 8 samples; then 4 F, 1 I and 2 W.
  const std::vector<Duration> expected{microseconds{8800}, microseconds{5600}};
  EXPECT_EQ(times.step_times, expected);
  EXPECT_EQ(times.parts, (RunParts{.steps = microseconds{3 * 8800 + 5 * 5600}}));
  EXPECT_EQ(times.held_device_time, times.parts.total());
  EXPECT_EQ(times.plans, 1);
  EXPECT_EQ(times.transitions, 0);
  EXPECT_FALSE(times.extrapolated);
}

TEST_F(WalkTimesTest, ChargeFillingBesideStepsThatRead) {
  const HeldFeatures features{2, FeatureTier::kMemory};
  const WalkTimes times = time({{plan, {0, 3, mask_of("1111")}},
                                {plan, {3, 5, mask_of("0011")}, {features, {}, 4}},
                                {plan, {8, 2, mask_of("0011")}, {features}}});
  // A step that reads has 2 F, 1 I and 2 W; one that fills has 4 F and writes for 10 ns.
  const Duration reads = microseconds{4000};
  const Duration fills = microseconds{5600} + Duration{10};
  EXPECT_EQ(times.parts.steps, 3 * microseconds{8800} + 7 * reads);
  EXPECT_EQ(times.parts.filling, 4 * (fills - reads));
  EXPECT_EQ(times.step_times[1], reads);
}

TEST_F(WalkTimesTest, CountTheDevicesOfThePlanThatIsHeldAndTheTransitionToIt) {
  Plan wide = plan;
  wide.micro_batch_size = 4;
  wide.pipelines = {make_pipeline(4, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{0}}),
                    make_pipeline(4, {}, {DeviceId{1}}, {MicroBatchId{1}, MicroBatchId{1}})};
  rules.overhead.start = microseconds{7};
  const WalkTimes times = time({{plan, {0, 3, mask_of("1111")}}, {wide, {3, 5, mask_of("1111")}}});
  // A device gets four layers of 3000 bytes at 1 GB/s in messages with a latency of 2 us each.
  const Activity all = find_activity(profile, mask_of("1111"));
  const TransitionCost cost = price_transition(plan, wide, {profile, cluster}, all, rules.overhead);
  EXPECT_EQ(cost.moved, Bytes{12'000});
  EXPECT_EQ(times.parts.transitions, cost.total);
  EXPECT_GE(cost.total, microseconds{7 + 12});
  EXPECT_EQ(times.transitions, 1);
  EXPECT_EQ(times.plans, 2);
  const Duration before = 3 * microseconds{8800};
  EXPECT_EQ(times.held_device_time, before + (times.parts.total() - before) * 2);
}

TEST_F(WalkTimesTest, SayWhichMaskAPlanDoesNotFitUnder) {
  // A device of 10,000 bytes holds neither 4 x 4000 bytes of state nor the stash beside them.
  cluster = make_uniform_cluster(2, Bytes{10'000}, {microseconds{2}, BytesPerSecond{}});
  try {
    time({{plan, {0, 3, mask_of("0001")}}, {plan, {3, 5, mask_of("1111")}}});
    FAIL() << "it fits";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("under the mask 1111 device0"), std::string::npos)
        << error.what();
  }
}

TEST_F(WalkTimesTest, OfAPlannedTrajectoryAreItsTotalWhateverIsForeseen) {
  int with_fill = 0;
  int with_transition = 0;
  for (int draw = 0; draw < draws(80); ++draw) {
    SCOPED_TRACE("seed " + std::to_string(draw));
    std::mt19937_64 random(static_cast<std::uint64_t>(draw));
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    const int layers = 3 + below(5);
    ModelProfile model = make_chain(layers, microseconds{50 + below(100)},
                                    microseconds{50 + below(100)}, microseconds{50 + below(100)});
    for (Layer& layer : model.layers) layer.parameters = Bytes{500 + below(3000)};
    const Cluster devices = make_uniform_cluster(
        1 + below(4), Bytes{1'000'000}, {microseconds{below(200)}, BytesPerSecond{100'000'000}});
    std::vector<ForecastSegment> forecast;
    Step step = 0;
    int frozen = 0;
    for (int k = 0; k < 4; ++k) {
      FreezeMask drawn = FreezeMask::all_active(layers);
      for (int block = 0; block < frozen; ++block) drawn.set_active(BlockId{block}, false);
      const Step steps = 1 + below(60);
      if (forecast.empty() || forecast.back().mask != drawn)
        forecast.push_back({step, steps, drawn});
      else
        forecast.back().steps += steps;
      step += steps;
      frozen = std::min(layers - 1, frozen + below(3));
    }
    rules.search = {};
    rules.search.batch_size = 8;
    rules.search.micro_batch_sizes = {1, 2, 4};
    rules.search.clip = below(2) == 0;
    rules.overhead.start = microseconds{below(300)};
    rules.store.reset();
    if (below(3) > 0) {
      rules.store = FeatureStore{
          .samples = 8 * (1 + below(10)), .memory = {Bytes{10'000}, kMemoryLink}, .disk = {}};
    }
    const PlannedTrajectory planned = plan_trajectory({model, devices}, forecast,
                                                      {.search = rules.search,
                                                       .overhead = rules.overhead,
                                                       .store = rules.store,
                                                       .compares = false});
    const WalkTimes times = time_walk({model, devices}, rules, list_held_segments(planned));
    ASSERT_EQ(times.parts.total(), planned.best.total);
    Duration filling{0};
    if (planned.caches) {
      for (const PlannedFill& fill : planned.caches->fills) filling += fill.cost;
    }
    EXPECT_EQ(times.parts.filling, filling);
    Duration transitions{0};
    for (const PlannedTransition& change : planned.transitions) transitions += change.cost.total;
    EXPECT_EQ(times.parts.transitions, transitions);
    EXPECT_EQ(times.transitions, static_cast<int>(planned.transitions.size()));
    with_fill += filling > kNoTime ? 1 : 0;
    with_transition += transitions > kNoTime ? 1 : 0;
  }
  EXPECT_GE(with_fill, draws(8));
  EXPECT_GE(with_transition, draws(8));
}

}  // namespace
}  // namespace frazil
