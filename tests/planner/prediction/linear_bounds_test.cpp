#include "planner/prediction/linear_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/orders/linear_orders.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

LinearPipeline pipeline_of_stages(const std::vector<StageTimes>& times, std::int64_t hop, int m,
                                  int in_flight) {
  LinearPipeline pipeline;
  pipeline.times = times;
  pipeline.down.assign(times.size() - 1, Duration{hop});
  pipeline.up = pipeline.down;
  pipeline.micro_batches = m;
  pipeline.in_flight.assign(times.size(), in_flight);
  return pipeline;
}

// An instance of equal stages: p devices, m micro-batches, the times F, I, W of a stage.
struct Case {
  int p = 1, m = 1;
  std::int64_t f = 1, i = 1, w = 1;

  std::int64_t t() const { return f + i + w; }
  LinearPipeline pipeline(int in_flight, std::int64_t hop = 0) const {
    const StageTimes times{Duration{f}, Duration{i}, Duration{w}};
    return pipeline_of_stages(std::vector<StageTimes>(static_cast<std::size_t>(p), times), hop, m,
                              in_flight);
  }
};

const LinearBound& named(const std::vector<LinearBound>& bounds, std::string_view name) {
  return *std::find_if(bounds.begin(), bounds.end(),
                       [&](const LinearBound& bound) { return bound.name == name; });
}

// Returns the bound on one device, from its first start to its last end.
LinearBound device_bound(const LinearPipeline& pipeline) {
  return named(find_linear_bounds(pipeline), "device-warm-up-cool-down");
}
LinearBound chain_bound(const LinearPipeline& pipeline) {
  return named(find_linear_bounds(pipeline), "gradient-chain");
}

struct Largest {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  friend bool operator==(const Largest&, const Largest&) = default;
};

Largest largest(const LinearPipeline& pipeline) {
  Largest largest;
  for (const LinearBound& bound : find_linear_bounds(pipeline)) {
    largest.makespan = std::max<std::int64_t>(largest.makespan, bound.makespan.count());
    largest.span = std::max<std::int64_t>(largest.span, bound.span.count());
  }
  return largest;
}

template <class Check>
void for_random_cases(std::uint64_t first_seed, Check check) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Case x;
    x.p = draw(random, 1, 8);
    x.m = 2 * x.p + draw(random, 0, 12);
    x.f = draw(random, 1, 20);
    x.i = draw(random, 1, 20);
    x.w = draw(random, 1, 20);
    check(x);
  }
}

TEST(LinearBounds, OfOneStageAreItsWork) {
  const Case x{.p = 1, .m = 5, .f = 2, .i = 3, .w = 4};
  for (const LinearBound& bound : find_linear_bounds(x.pipeline(1))) {
    EXPECT_EQ(bound.makespan, Duration{5 * 9});
    EXPECT_EQ(bound.span, Duration{5 * 9});
    EXPECT_EQ(bound.span_of_stage, std::vector<Duration>{Duration{5 * 9}});
  }
}

// Two stages, F = 3, I = 2, W = 1, hops of 4; one micro-batch at a time. D of stage 0 is 4+3+2+4.
//   d0  FFF.............IIWFFF.............IIWFFF.............IIW
//   d1  .......FFFIIW...
TEST(LinearBounds, WithOneMicroBatchInFlightEachWaitsForItsRoundTrip) {
  const Case x{.p = 2, .m = 3, .f = 3, .i = 2, .w = 1};
  const LinearPipeline pipeline = x.pipeline(1, 4);
  const std::vector<Duration> spans{Duration{3 * (6 + 13)}, Duration{3 * 6}};
  EXPECT_EQ(device_bound(pipeline).span_of_stage, spans);
  EXPECT_EQ(device_bound(pipeline).makespan, Duration{57});
  EXPECT_EQ(chain_bound(pipeline).span_of_stage[0], Duration{57});
}

// Stage 0 holds all three, stage 1 takes long: F = 1, 5; I = 1, 5; W = 1, 1; hops of 2.
//   d0  FFF......................IW...IW...IW
//   d1  ...FFFFFFFFFFFFFFFIIIIIIIIIIIIIIIWWW
// The last I of stage 1 ends 3 + 30 after the start, then come a hop, I and W.
TEST(LinearBounds, TheLastGradientComesBackThroughAllStagesBefore) {
  const auto stage = [](int f, int i, int w) {
    return StageTimes{Duration{f}, Duration{i}, Duration{w}};
  };
  const LinearPipeline pipeline = pipeline_of_stages({stage(1, 1, 1), stage(5, 5, 1)}, 2, 3, 3);
  EXPECT_EQ(chain_bound(pipeline).makespan, Duration{3 + 30 + 2 + 1 + 1});
  EXPECT_EQ(chain_bound(pipeline).span, Duration{37});
  EXPECT_EQ(chain_bound(pipeline).span_of_stage[1], Duration{31});
  // Stage 1 gives 3 + 33; stage 0 has its work, and waits D = 14 for its first I, less two F.
  EXPECT_EQ(device_bound(pipeline).makespan, Duration{36});
  EXPECT_EQ(device_bound(pipeline).span_of_stage[0], Duration{9 + 12});
}

TEST(LinearBounds, HopsOfEachBoundaryAndDirectionCount) {
  LinearPipeline pipeline = Case{.p = 3, .m = 1}.pipeline(1);
  pipeline.down = {Duration{10}, Duration{200}};
  pipeline.up = {Duration{3000}, Duration{40000}};
  const LinearBound bound = chain_bound(pipeline);
  EXPECT_EQ(bound.span_of_stage,
            (std::vector<Duration>{Duration{43210 + 7}, Duration{40200 + 5}, Duration{3}}));
  EXPECT_EQ(bound.makespan, Duration{43217});
  EXPECT_EQ(device_bound(pipeline).span_of_stage, bound.span_of_stage);
}

TEST(LinearBounds, EqualStagesWithPInFlightIdleAsZbH1) {
  for_random_cases(1, [](const Case& x) {
    const std::int64_t idle = (x.p - 1) * (x.i + std::max<std::int64_t>(0, x.f - x.w));
    EXPECT_EQ(largest(x.pipeline(x.p)).span, x.m * x.t() + idle);
  });
}

TEST(LinearBounds, EqualStagesWithAlmostTwiceAsManyInFlightIdleLess) {
  for_random_cases(2, [](Case x) {
    x.m = std::max(x.m, 2 * x.p);
    const std::int64_t idle = (x.p - 1) * (std::max<std::int64_t>(0, x.i - x.f) +
                                           std::max<std::int64_t>(0, x.f - x.i - 2 * x.w));
    EXPECT_EQ(device_bound(x.pipeline(2 * x.p - 1)).span, Duration{x.m * x.t() + idle});
  });
}

TEST(LinearBounds, WithEnoughInFlightTheFirstStageNeedNotIdleBeforeItsFirstBackward) {
  for_random_cases(3, [](Case x) {
    x.p = std::max(x.p, 2);
    x.i = std::max(x.f, x.i);  // so that it need not idle after its last F either
    const std::int64_t round_trip = (x.p - 1) * (x.f + x.i);
    const auto enough = static_cast<int>(1 + (round_trip + x.f - 1) / x.f);
    x.m = 2 * enough;
    EXPECT_EQ(device_bound(x.pipeline(enough)).span_of_stage[0], Duration{x.m * x.t()});
    EXPECT_GT(device_bound(x.pipeline(enough - 1)).span_of_stage[0], Duration{x.m * x.t()});
  });
}

TEST(LinearBounds, EqualStagesWithFusedBackwardsIdleAsOneForwardOneBackward) {
  for_random_cases(4, [](const Case& x) {
    LinearPipeline pipeline = x.pipeline(x.p);
    pipeline.splits_backward = false;
    EXPECT_EQ(largest(pipeline), (Largest{(x.m + x.p - 1) * x.t(), (x.m + x.p - 1) * x.t()}));
  });
}

// These orders reach the bounds, so no other order is better at the same memory.
TEST(LinearBounds, ZbH1AndOneForwardOneBackwardReachThemOnEqualStages) {
  for_random_cases(5, [](const Case& x) {
    const OrderProblem problem =
        make_order_problem(x.p, 1, x.m, {Duration{x.f}, Duration{x.i}, Duration{x.w}});
    const ReferenceTimes split =
        time_orders(make_split_linear_order(problem, x.p), problem, Placement::kLinear);
    EXPECT_EQ(largest(x.pipeline(x.p)), (Largest{split.makespan, split.span}));
    const ReferenceTimes fused =
        time_orders(make_one_forward_one_backward_order(problem, x.p), problem, Placement::kLinear);
    LinearPipeline pipeline = x.pipeline(x.p);
    pipeline.splits_backward = false;
    pipeline.in_flight = fused.peak_chunks;
    EXPECT_EQ(largest(pipeline), (Largest{fused.makespan, fused.span}));
  });
}

// 1F1B pays two hops for almost every micro-batch because it holds p - s of them on stage s: it
// pays 16 c here, of which 14 c are due to that and not to its order.
TEST(LinearBounds, WithHopsMicroBatchesWaitForEachOther) {
  const Case x{.p = 4, .m = 8, .f = 1000, .i = 1000, .w = 1000};
  LinearPipeline pipeline = x.pipeline(1, 313);
  pipeline.in_flight = {4, 3, 2, 1};
  pipeline.splits_backward = false;
  EXPECT_EQ(chain_bound(pipeline).makespan, Duration{11 * 3000 + 14 * 313});
  EXPECT_EQ(device_bound(pipeline).makespan, Duration{11 * 3000 + 12 * 313});
  OrderProblem problem = make_order_problem(4, 1, 8, pipeline.times[0], Duration{313});
  const ReferenceTimes times =
      time_orders(make_one_forward_one_backward_order(problem, 4), problem, Placement::kLinear);
  EXPECT_EQ(times.makespan, 11 * 3000 + 16 * 313);
}

LinearPipeline random_pipeline(Random& random) {
  LinearPipeline pipeline;
  const std::int64_t stages = draw(random, 1, 6);
  for (std::int64_t s = 0; s < stages; ++s) {
    const auto time = [&] { return Duration{draw(random, 0, 20)}; };
    pipeline.times.push_back({time(), time(), time()});
    pipeline.in_flight.push_back(draw(random, 1, 9));
    if (s == 0) continue;
    pipeline.down.push_back(time());
    pipeline.up.push_back(time());
  }
  pipeline.micro_batches = draw(random, 1, 12);
  pipeline.splits_backward = draw(random, 0, 3) > 0;
  return pipeline;
}

void expect_not_above(const LinearPipeline& less, const LinearPipeline& more) {
  const std::vector<LinearBound> lower = find_linear_bounds(less);
  const std::vector<LinearBound> upper = find_linear_bounds(more);
  for (std::size_t b = 0; b < lower.size(); ++b) {
    for (std::size_t s = 0; s < less.times.size(); ++s) {
      EXPECT_LE(lower[b].span_of_stage[s], upper[b].span_of_stage[s]) << lower[b].name << s;
    }
  }
}

TEST(LinearBounds, FallWithMoreMemoryAndWithFreerOrders) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LinearPipeline pipeline = random_pipeline(random);
    LinearPipeline roomier = pipeline;
    ++roomier.in_flight[random() % roomier.in_flight.size()];
    expect_not_above(roomier, pipeline);
    LinearPipeline halves = pipeline;
    halves.release = ActivationRelease::kHalfAtInput;
    expect_not_above(halves, pipeline);
    LinearPipeline fused = pipeline;
    fused.splits_backward = false;
    expect_not_above(pipeline, fused);
    LinearPipeline longer = pipeline;
    ++longer.micro_batches;
    expect_not_above(pipeline, longer);
  }
}

TEST(LinearBounds, OfAFusedBackwardAreThoseOfAnInputPartAsLong) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    LinearPipeline fused = random_pipeline(random);
    fused.splits_backward = false;
    LinearPipeline whole = fused;
    whole.splits_backward = true;
    for (StageTimes& times : whole.times) {
      times = {times.forward, times.backward_input + times.backward_weight, Duration{0}};
    }
    EXPECT_EQ(largest(fused), largest(whole));
  }
}

// A published instance of eight unequal stages, with the best times that a long local search found;
// half of each micro-batch is released at I. Each instance is at its bound, so no better order
// exists.
struct Row {
  std::string name;
  int m, in_flight;
  std::int64_t hop;
  std::vector<int> f, i, w;
  Largest bound, found;
};

LinearPipeline pipeline_of(const Row& row) {
  std::vector<StageTimes> times;
  for (std::size_t s = 0; s < row.f.size(); ++s) {
    times.push_back({Duration{row.f[s]}, Duration{row.i[s]}, Duration{row.w[s]}});
  }
  LinearPipeline pipeline = pipeline_of_stages(times, row.hop, row.m, row.in_flight);
  pipeline.release = ActivationRelease::kHalfAtInput;
  return pipeline;
}

TEST(LinearBounds, AreThePublishedOnesOfUnequalStages) {
  const std::vector<int> heavy_f{30715, 29233, 29106, 29078, 28850, 28919, 28924, 41678};
  const std::vector<int> heavy_i{31308, 29344, 29357, 29455, 29217, 29384, 29354, 38731};
  const std::vector<int> heavy_w{18746, 18789, 19062, 19367, 19455, 19967, 20096, 32833};
  const std::vector<int> tiers{1000, 1000, 1000, 1000, 2000, 2000, 2000, 2000};
  const std::vector<int> half_tiers{500, 500, 500, 500, 1000, 1000, 1000, 1000};
  const std::vector<int> equal(8, 1000);
  const std::vector<Row> rows{
      {"heavy last stage, K = 8",
       32,
       8,
       473,
       heavy_f,
       heavy_i,
       heavy_w,
       {3831880, 3623744},
       {3831880, 3623744}},
      {"heavy last stage, K = 16",
       32,
       16,
       473,
       heavy_f,
       heavy_i,
       heavy_w,
       {3831880, 3623744},
       {3831880, 3623744}},
      // The published bound on the span is 84934. It lacks the W of one micro-batch, 1000 on stage
      // 4: the last of 16 F fits only if of the 15 other micro-batches no more than 14 still owe
      // their W.
      {"two tiers, fast first",
       16,
       8,
       31,
       tiers,
       tiers,
       half_tiers,
       {90217, 84934 + 1000},
       {90217, 85934}},
      {"hops of half an F, K = 8", 16, 8, 500, equal, equal, equal, {69000, 69000}, {69000, 69000}},
      {"hops of half an F, K = 16",
       16,
       16,
       500,
       equal,
       equal,
       equal,
       {58500, 54000},
       {58500, 54000}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(largest(pipeline_of(row)), row.bound);
    EXPECT_EQ(row.bound, row.found);
  }
}

TEST(LinearBounds, NeedAStageAMicroBatchAndRoomForOne) {
  const LinearPipeline good = Case{.p = 2, .m = 2}.pipeline(1);
  EXPECT_NO_THROW(find_linear_bounds(good));
  LinearPipeline bad = good;
  bad.micro_batches = 0;
  EXPECT_THROW(find_linear_bounds(bad), std::logic_error);
  bad = good;
  bad.in_flight[1] = 0;
  EXPECT_THROW(find_linear_bounds(bad), std::logic_error);
  bad = good;
  bad.up.clear();
  EXPECT_THROW(find_linear_bounds(bad), std::logic_error);
  EXPECT_THROW(find_linear_bounds(LinearPipeline{}), std::logic_error);
}

}  // namespace
}  // namespace frazil
