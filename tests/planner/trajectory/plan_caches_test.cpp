// Tests trajectories that cache the frozen prefix, and those that do better without.

#include "planner/trajectory/plan_caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/trajectory/plan_trajectory.h"
#include "profiles/error.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kLayers = 8;
constexpr int kBatch = 8;

// Makes layers of 100 us F, I and W, which send 10 bytes per sample to the next.
const ModelProfile& cached_chain() {
  static const ModelProfile profile =
      make_chain(kLayers, microseconds{100}, microseconds{100}, microseconds{100});
  return profile;
}

const Cluster& one_device() {
  static const Cluster cluster = make_uniform_cluster(1, Bytes{1 << 30}, {});
  return cluster;
}

ForecastSegment segment(Step step, Step steps, int frozen) {
  FreezeMask mask = FreezeMask::all_active(kLayers);
  for (int block = 0; block < frozen; ++block) mask.set_active(BlockId{block}, false);
  return {step, steps, mask};
}

// Makes options with a store of 800 samples: an epoch is 100 steps, all features are 8,000 bytes.
TrajectoryOptions options_of(CacheTier memory, CacheTier disk = {}) {
  TrajectoryOptions options;
  options.search.batch_size = kBatch;
  options.search.micro_batch_sizes = {1};
  options.search.schedules = {ScheduleKind::kGpipe};
  options.store = FeatureStore{800, memory, disk};
  return options;
}

// Reading a step's 80 bytes takes 80 us.
constexpr Link kSlow{Duration{0}, BytesPerSecond{1'000'000}};
constexpr Link kFast{Duration{0}, BytesPerSecond{1'000'000'000}};

HeldFeatures in(FeatureTier tier, int depth) { return {depth, tier}; }

TEST(PlanCaches, FillsOnceAndReadsFromThenOn) {
  const std::vector<ForecastSegment> segments{segment(0, 500, 0), segment(500, 1000, 4)};
  const auto planned =
      plan_trajectory({cached_chain(), one_device()}, segments, options_of({Bytes{8'000}, kSlow}));
  ASSERT_TRUE(planned.caches.has_value());
  ASSERT_EQ(planned.caches->fills.size(), 1U);
  const PlannedFill& fill = planned.caches->fills[0];
  EXPECT_EQ(fill.segment, 1U);
  EXPECT_EQ(fill.features, in(FeatureTier::kMemory, 4));
  EXPECT_EQ(fill.bytes, Bytes{8'000});
  EXPECT_EQ(fill.steps, 100);
  // A micro-batch runs F of the prefix, and F, I and W of four layers, of which the first has no I.
  const Duration trains = kBatch * microseconds{4 * 300 - 100};
  const Duration prefix = kBatch * microseconds{4 * 100};
  const microseconds write{80};
  EXPECT_EQ(planned.caches->step_times[1], trains);
  EXPECT_EQ(fill.cost, 100 * (prefix + write));
  // Filling takes 100 x 80 us, which are regained when enough steps have saved the prefix.
  EXPECT_EQ(fill.break_even, 100 + (100 * write + prefix - Duration{1}) / prefix);
  EXPECT_EQ(planned.best.total, planned.uncached->total - 900 * prefix + 100 * write);
}

TEST(PlanCaches, KnowsWhenNotTo) {
  const CacheTier memory{Bytes{8'000}, kSlow};
  const auto fills = [&](Step steps, CacheTier tier) {
    const std::vector<ForecastSegment> segments{segment(0, 500, 0), segment(500, steps, 4)};
    const auto planned =
        plan_trajectory({cached_chain(), one_device()}, segments, options_of(tier));
    if (planned.caches->fills.empty()) {
      EXPECT_EQ(planned.best, *planned.uncached);
    }
    EXPECT_LE(planned.best.total, planned.uncached->total);
    return planned.caches->fills.size();
  };
  // Filling costs 100 x 80 us, and each step after the first 100 saves 3,200 us.
  EXPECT_EQ(fills(90, memory), 0U) << "less than an epoch is left";
  EXPECT_EQ(fills(102, memory), 0U) << "two steps save less than filling costs";
  EXPECT_EQ(fills(103, memory), 1U);
  EXPECT_EQ(fills(1000, {Bytes{7'999}, kSlow}), 0U) << "no room";
  // Reading is slower than a whole step is to compute: 80 bytes at 6 kB/s take more than 12 ms.
  EXPECT_EQ(fills(100'000, {Bytes{8'000}, {Duration{0}, BytesPerSecond{6'000}}}), 0U);
  EXPECT_EQ(fills(100'000, {Bytes{8'000}, {microseconds{1500}, {}}}), 0U) << "latency alone";
  EXPECT_EQ(fills(100'000, {Bytes{8'000}, {Duration{0}, BytesPerSecond{7'000}}}), 1U)
      << "less than the step without";
}

// A step takes the longer of its work and of reading in the background.
TEST(PlanCaches, ReadingHidesBehindTheStepUpToItsLength) {
  const std::vector<ForecastSegment> segments{segment(0, 100'000, 4)};
  const Duration trains = kBatch * microseconds{4 * 300 - 100};
  const auto step = [&](Link link) {
    return plan_trajectory({cached_chain(), one_device()}, segments,
                           options_of({Bytes{8'000}, link}))
        .caches->step_times[0];
  };
  EXPECT_EQ(step(kFast), trains);
  EXPECT_EQ(step({Duration{0}, BytesPerSecond{8'000}}), microseconds{10'000});
  EXPECT_EQ(step({microseconds{1200}, {}}), kBatch * microseconds{1200});
}

TEST(PlanCaches, TakesTheTierThatHasRoomAndIsFast) {
  const std::vector<ForecastSegment> segments{segment(0, 10'000, 4)};
  const auto tier = [&](Bytes memory) {
    const auto planned = plan_trajectory({cached_chain(), one_device()}, segments,
                                         options_of({memory, kFast}, {Bytes{100'000}, kSlow}));
    return planned.caches->walk.caches[0].features;
  };
  EXPECT_EQ(tier(Bytes{8'000}), in(FeatureTier::kMemory, 4));
  EXPECT_EQ(tier(Bytes{7'999}), in(FeatureTier::kDisk, 4));
}

TEST(PlanCaches, KeepsAShallowerCacheWhereFillingADeeperOneDoesNotPay) {
  const CacheTier memory{Bytes{8'000}, kSlow};
  const auto walk = [&](Step last) {
    const std::vector<ForecastSegment> segments{segment(0, 1000, 4), segment(1000, last, 5)};
    return plan_trajectory({cached_chain(), one_device()}, segments, options_of(memory));
  };
  const auto kept = walk(50);
  EXPECT_EQ(kept.caches->fills.size(), 1U);
  EXPECT_EQ(kept.caches->walk.caches[1], (HeldCache{in(FeatureTier::kMemory, 4)}));
  // Layer 4 has F alone by now, and is not cached.
  EXPECT_EQ(kept.caches->step_times[1], kBatch * microseconds{3 * 300 - 100 + 100});
  const auto deeper = walk(5000);
  ASSERT_EQ(deeper.caches->fills.size(), 2U);
  const PlannedFill& fill = deeper.caches->fills[1];
  EXPECT_EQ(fill.source, in(FeatureTier::kMemory, 4)) << "it goes on from there";
  EXPECT_EQ(fill.cost, 100 * (kBatch * microseconds{100} + microseconds{80}));
}

TEST(PlanCaches, LosesWhatReachesBeyondAPrefixThatThaws) {
  const std::vector<ForecastSegment> segments{segment(0, 1000, 4), segment(1000, 1, 2),
                                              segment(1001, 1000, 4)};
  const auto planned =
      plan_trajectory({cached_chain(), one_device()}, segments, options_of({Bytes{8'000}, kFast}));
  ASSERT_EQ(planned.caches->fills.size(), 2U);
  EXPECT_EQ(planned.caches->fills[1].segment, 2U);
  EXPECT_EQ(planned.caches->fills[1].source, HeldFeatures{});
}

TEST(PlanCaches, CountsATensorThatSeveralLayersReadOnce) {
  ModelProfile profile = cached_chain();
  profile.edges.push_back({LayerId{1}, LayerId{5}, EdgeKind::kGradient, {Bytes{10}}});
  profile.edges.push_back({LayerId{0}, LayerId{6}, EdgeKind::kGradient, {Bytes{3}}});
  EXPECT_EQ(find_feature_bytes(profile, 2), Bytes{13});
  EXPECT_EQ(find_feature_bytes(profile, 4), Bytes{23});
  EXPECT_EQ(find_feature_bytes(profile, 7), Bytes{10});
  EXPECT_EQ(find_feature_bytes(profile, kLayers), std::nullopt);
}

// A random question, where bounds decide what is simulated.
struct CachedCase {
  SearchQuestion question;
  std::vector<ForecastSegment> segments;
  TrajectoryOptions options;
};

CachedCase draw_cached_case(std::uint64_t seed) {
  CachedCase drawn{draw_search_question(seed), {}, {}};
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  const int blocks = drawn.question.options.mask.blocks();
  Step step = 0;
  for (int k = 0; k < 4; ++k) {
    FreezeMask mask = FreezeMask::all_active(blocks);
    for (auto block = below(blocks); block-- > 0;) {
      mask.set_active(BlockId{static_cast<int>(block)}, false);
    }
    const Step steps = 1 + below(40);
    drawn.segments.push_back({step, steps, mask});
    step += steps;
  }
  drawn.options.search = drawn.question.options;
  drawn.options.search.overlap = std::nullopt;
  drawn.options.plans_per_mask = 1;
  drawn.options.overhead.start = Duration{below(3) * 50'000};
  const auto tier = [&] {
    return CacheTier{Bytes{below(4) * 800},
                     {Duration{below(2) * 1000}, BytesPerSecond{1'000'000 + below(100'000'000)}}};
  };
  const std::int64_t samples = 1 + below(8 * drawn.question.options.batch_size);
  const CacheTier memory = tier();
  drawn.options.store = FeatureStore{samples, memory, tier()};
  return drawn;
}

// Simulates a whole plan for one segment and one depth of the cache.
Duration simulated(const CachedCase& drawn, const Plan& plan, std::size_t k, int depth) {
  const auto& [profile, cluster, options] = drawn.question;
  Plan masked = plan;
  masked.mask = drawn.segments[k].mask;
  Activity activity = find_activity(profile, masked.mask);
  const int prefix = count_frozen_prefix(profile, activity);
  if (depth > prefix) return kFarAway;
  for (const Pipeline& pipeline : plan.pipelines) {
    if (depth > 0 && pipeline.stages[0].layers[0].last.value + 1 < prefix) return kFarAway;
  }
  if (depth == prefix && depth > 0) {
    masked.cache_frozen_prefix = true;
    const Candidate whole = judge_plan(masked, {profile, cluster}, drawn.options.search.clip);
    return whole.infeasible ? kFarAway : whole.makespan;
  }
  activity.cached = depth;
  try {
    const Simulation step =
        simulate_step(masked, activity, {profile, cluster}, {.clip = drawn.options.search.clip})
            .simulation;
    return find_overflow(step.memory, cluster) ? kFarAway : step.makespan;
  } catch (const InfeasibleError&) {
    return kFarAway;
  }
}

class EveryCachedWalk {
 public:
  EveryCachedWalk(const CachedCase& drawn, const std::vector<Plan>& plans)
      : drawn_(drawn), plans_(plans), store_(*drawn.options.store) {
    const int batch = drawn.options.search.batch_size;
    epoch_ = (store_.samples + batch - 1) / batch;
    for (const ForecastSegment& segment : drawn.segments) {
      const Activity activity = find_activity(drawn.question.profile, segment.mask);
      prefix_.push_back(count_frozen_prefix(drawn.question.profile, activity));
    }
  }

  Duration find() {
    for (std::size_t p = 0; p < plans_.size(); ++p) go(0, p, {}, {}, 0, Duration{0});
    return least_;
  }

  // Returns the time of a step of any plan beside a cache, or without one if the plan cannot use
  // it.
  Duration step(std::size_t k, std::size_t plan, const HeldCache& cache) {
    if (cache.left == 0) return read(k, plan, cache.features);
    const bool fills =
        all_begin_with(plan, prefix_[k]) && work(k, plan, cache.source.depth) < kFarAway;
    return read(k, plan, cache.source) + (fills ? move(plan, cache.features) : Duration{0});
  }

 private:
  Duration read(std::size_t k, std::size_t plan, HeldFeatures features) {
    const Duration own = work(k, plan, features.depth);
    if (own >= kFarAway) return work(k, plan, 0);
    return std::max(own, move(plan, features));
  }

  void go(std::size_t k, std::size_t plan, HeldFeatures full, HeldFeatures filling, Step left,
          Duration paid) {
    if (paid >= least_) return;
    if (k == drawn_.segments.size()) {
      least_ = paid;
      return;
    }
    hold(k, plan, {}, {}, 0, paid);
    const int at = (left > 0 ? filling : full).depth;
    if (at > 0 && at == prefix_[k] && k > 0 && prefix_[k - 1] == at) {
      hold(k, plan, full, filling, left, paid);
      return;
    }
    const HeldFeatures source = left == 0 && full.depth < prefix_[k] ? full : HeldFeatures{};
    if (source.depth > 0) hold(k, plan, source, {}, 0, paid);
    for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
      const HeldFeatures next{prefix_[k], tier};
      if (next.depth == 0) continue;
      const auto bytes = find_feature_bytes(drawn_.question.profile, next.depth);
      const Bytes limit = store_.tier(tier).limit;
      if (!bytes || limit.count == 0 || bytes->count * store_.samples > limit.count) continue;
      hold(k, plan, source, next, epoch_, paid);
    }
  }

  Duration move(std::size_t plan, HeldFeatures features) const {
    if (features.depth == 0) return Duration{0};
    const Link link = store_.tier(features.tier).link;
    const Plan& own = plans_[plan];
    const Bytes of_sample = *find_feature_bytes(drawn_.question.profile, features.depth);
    return Bytes{of_sample.count * own.batch_size} / link.bandwidth +
           link.latency * own.micro_batches();
  }

  Duration work(std::size_t k, std::size_t plan, int depth) {
    const auto [known, is_new] = works_.try_emplace({k, plan, depth});
    if (is_new) known->second = simulated(drawn_, plans_[plan], k, depth);
    return known->second;
  }

  void hold(std::size_t k, std::size_t plan, HeldFeatures full, HeldFeatures filling, Step left,
            Duration paid) {
    const Step fills = std::min(left, drawn_.segments[k].steps);
    const Step reads = drawn_.segments[k].steps - fills;
    if (fills > 0) {
      const Duration own = work(k, plan, full.depth);
      if (own >= kFarAway || !all_begin_with(plan, prefix_[k])) return;
      paid += fills * (std::max(own, move(plan, full)) + move(plan, filling));
      left -= fills;
      if (left == 0) full = filling;
    }
    if (reads > 0) {
      const Duration own = work(k, plan, full.depth);
      if (own >= kFarAway) return;
      paid += reads * std::max(own, move(plan, full));
    }
    const bool ends = k + 1 == drawn_.segments.size();
    for (std::size_t next = 0; next < plans_.size(); ++next) {
      if (ends && next != plan) continue;
      go(k + 1, next, full, filling, left, paid + change(k, plan, next));
    }
  }

  bool all_begin_with(std::size_t plan, int depth) const {
    const auto& pipelines = plans_[plan].pipelines;
    return std::all_of(pipelines.begin(), pipelines.end(), [&](const Pipeline& pipeline) {
      return pipeline.stages.front().layers.front().last.value >= depth - 1;
    });
  }

  Duration change(std::size_t k, std::size_t from, std::size_t to) const {
    if (from == to) return Duration{0};
    const auto& [profile, cluster, options] = drawn_.question;
    return price_transition(plans_[from], plans_[to], {profile, cluster},
                            find_activity(profile, drawn_.segments[k].mask),
                            drawn_.options.overhead)
        .total;
  }

  const CachedCase& drawn_;
  const std::vector<Plan>& plans_;
  const FeatureStore& store_;
  Step epoch_ = 1;
  std::vector<int> prefix_;
  std::map<std::tuple<std::size_t, std::size_t, int>, Duration> works_;
  Duration least_ = kFarAway;
};

// Returns nothing if some mask has no plan that fits.
std::optional<PlannedTrajectory> plan(const CachedCase& drawn) {
  try {
    return plan_trajectory({drawn.question.profile, drawn.question.cluster}, drawn.segments,
                           drawn.options);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

TEST(PlanCaches, IsTheCheapestOfAllWalks) {
  int walks = 0;
  int fills = 0;
  int deeper = 0;  // fills that go on from a cache
  int gains = 0;
  for (int seed = 1; seed <= draws(200); ++seed) {
    SCOPED_TRACE(seed);
    const CachedCase drawn = draw_cached_case(static_cast<std::uint64_t>(seed));
    const std::optional<PlannedTrajectory> planned = plan(drawn);
    if (!planned) continue;
    ++walks;
    ASSERT_EQ(planned->best.total, EveryCachedWalk(drawn, planned->candidates).find());
    ASSERT_LE(planned->best.total, planned->uncached->total);
    gains += planned->best.total < planned->uncached->total ? 1 : 0;
    for (const PlannedFill& fill : planned->caches->fills) {
      ++fills;
      deeper += fill.source.depth > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(walks, draws(100));
  EXPECT_GT(fills, draws(40));
  EXPECT_GT(deeper, draws(3));
  EXPECT_GT(gains, draws(40));
}

// Counts one step after the other, with the cache as it is at that step.
std::optional<Step> count_break_even(EveryCachedWalk& walks, const CachedCase& drawn,
                                     const PlannedTrajectory& planned,
                                     const PlannedTransition& change) {
  Duration missing = change.cost.total;
  Step steps = 0;
  for (std::size_t k = change.segment; k < drawn.segments.size(); ++k) {
    for (Step i = 0; i < drawn.segments[k].steps; ++i) {
      if (missing <= Duration{0}) return steps;
      const HeldCache cache = after(planned.caches->walk.caches[k], i);
      const Duration old_step = walks.step(k, change.from, cache);
      const Duration new_step = walks.step(k, change.to, cache);
      if (old_step >= kFarAway || new_step >= kFarAway) return std::nullopt;
      missing -= old_step - new_step;
      ++steps;
    }
  }
  return missing <= Duration{0} ? std::optional(steps) : std::nullopt;
}

TEST(PlanCaches, ASwitchHasPaidAfterTheStepsThatAreCountedOneByOneAlsoWhileACacheFills) {
  int paid = 0;
  int filling = 0;
  for (int seed = 1; seed <= draws(300); ++seed) {
    SCOPED_TRACE(seed);
    const CachedCase drawn = draw_cached_case(static_cast<std::uint64_t>(seed));
    const std::optional<PlannedTrajectory> planned = plan(drawn);
    if (!planned) continue;
    EveryCachedWalk walks(drawn, planned->candidates);
    for (const PlannedTransition& change : planned->transitions) {
      if (change.forced) continue;
      ASSERT_EQ(change.break_even, count_break_even(walks, drawn, *planned, change));
      paid += change.break_even ? 1 : 0;
      filling += planned->caches->walk.caches[change.segment].left > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(paid, draws(20));
  EXPECT_GT(filling, draws(5));
}

}  // namespace
}  // namespace frazil
