#include "planner/search/search.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/actions/validate_plan.h"
#include "planner/answers/print_ranking.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// Makes eight layers, of which the last has three times the forward, so that equal cuts are not the
// best.
ModelProfile make_model() {
  ModelProfile profile = make_chain(8, microseconds(10), microseconds(10), microseconds(10));
  for (CostSample& cost : profile.layers.back().costs) cost.forward *= 3;
  return profile;
}

SearchOptions make_options(const ModelProfile& profile) {
  SearchOptions options;
  options.batch_size = 16;
  options.micro_batch_sizes = {1, 2, 4};
  options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  options.keep = 0;
  return options;
}

constexpr Link kLink{microseconds(5), BytesPerSecond{1'000'000}};

TEST(Search, RankingUnderAMemoryLimitIsTheGolden) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(4, Bytes{26'000}, kLink);
  const Ranking ranking = search_plans({profile, cluster}, make_options(profile));
  EXPECT_TRUE(
      matches_golden("planner_b_ranking.txt", print_ranking(ranking, {profile, cluster}, 1000)));
}

TEST(Search, FeasibleCandidatesComeFirstByTimeAndFitIntoMemory) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(4, Bytes{26'000}, kLink);
  const Ranking ranking = search_plans({profile, cluster}, make_options(profile));
  ASSERT_NE(ranking.best(), nullptr);
  bool seen_infeasible = false;
  Duration before{0};
  for (const Candidate& candidate : ranking.candidates) {
    EXPECT_NO_THROW(validate(candidate.plan, {profile, cluster}, "plan"));
    EXPECT_LE(candidate.bounds.makespan.time, candidate.makespan);
    if (candidate.infeasible) {
      seen_infeasible = true;
      EXPECT_GT(candidate.infeasible->needed, candidate.infeasible->available);
      continue;
    }
    EXPECT_FALSE(seen_infeasible);
    EXPECT_GE(candidate.makespan, before);
    before = candidate.makespan;
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
      EXPECT_LE(candidate.memory[d].total, cluster.devices[d].memory_limit);
    }
  }
  EXPECT_TRUE(seen_infeasible);
}

TEST(Search, TriesEveryShapeOnce) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(4, Bytes{10'000'000}, kLink);
  const Ranking ranking = search_plans({profile, cluster}, make_options(profile));
  std::set<std::string> summaries;
  for (const Candidate& candidate : ranking.candidates) {
    summaries.insert(summarize(candidate.plan));
  }
  // There are 4 + 2 + 1 + 1 pairs of stages and replicas, 3 sizes and 2 schedules.
  EXPECT_EQ(ranking.candidates.size(), 8U * 3 * 2);
  EXPECT_EQ(summaries.size(), ranking.candidates.size());
}

TEST(Search, IsNeverWorseWithMoreDevices) {
  const ModelProfile profile = make_model();
  Duration before = Duration::max();
  for (int devices = 1; devices <= 6; ++devices) {
    const Cluster cluster = make_uniform_cluster(devices, Bytes{10'000'000}, kLink);
    const Ranking ranking = search_plans({profile, cluster}, make_options(profile));
    ASSERT_NE(ranking.best(), nullptr);
    EXPECT_LE(ranking.best()->makespan, before);
    before = ranking.best()->makespan;
  }
}

TEST(Search, NamesTheCandidateThatMissesLeastWhenNothingFits) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(2, Bytes{10'000}, kLink);
  const Ranking ranking = search_plans({profile, cluster}, make_options(profile));
  EXPECT_EQ(ranking.best(), nullptr);
  const Infeasible& nearest = *ranking.candidates.front().infeasible;
  for (const Candidate& candidate : ranking.candidates) {
    EXPECT_LE(nearest.needed - nearest.available,
              candidate.infeasible->needed - candidate.infeasible->available);
  }
  EXPECT_NE(explain_infeasible(ranking).find(nearest.reason), std::string::npos);
}

TEST(Search, AFrozenModelFitsWhereTheActiveOneDoesNot) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(1, Bytes{20'000}, kLink);
  SearchOptions options = make_options(profile);
  EXPECT_EQ(search_plans({profile, cluster}, options).best(), nullptr);
  options.mask = FreezeMask::frozen_prefix(8, BlockId{5});
  EXPECT_NE(search_plans({profile, cluster}, options).best(), nullptr);
}

TEST(Search, KeepsWithinTheStagesAndReplicasAllowed) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(6, Bytes{10'000'000}, kLink);
  SearchOptions options = make_options(profile);
  options.max_stages = 2;
  options.max_replicas = 1;
  for (const Candidate& candidate : search_plans({profile, cluster}, options).candidates) {
    EXPECT_LE(candidate.plan.pipelines.front().stages.size(), 2U);
    EXPECT_EQ(candidate.plan.pipelines.size(), 1U);
  }
}

TEST(Search, GivesASlowDeviceLess) {
  const ModelProfile profile = make_chain(6, microseconds(10), microseconds(10), microseconds(10));
  Cluster cluster = make_uniform_cluster(2, Bytes{10'000'000}, {});
  cluster.devices[0].time_ppm = 2'000'000;
  SearchOptions options = make_options(profile);
  options.max_replicas = 1;
  options.micro_batch_sizes = {1};
  const Ranking ranking = search_plans({profile, cluster}, options);
  const Candidate* best = ranking.best();
  ASSERT_EQ(best->plan.pipelines.front().stages.size(), 2U);
  EXPECT_EQ(best->plan.pipelines.front().stages[1].layers.front().first, LayerId{2});
}

// The sixth of twelve equal layers sends a large message. A search that takes the message for work
// cuts elsewhere; sent while the devices work, it is best left in the middle.
TEST(Search, LeavesAMessageThatHidesBehindWorkWhereTheStagesAreEqual) {
  ModelProfile profile = make_chain(12, microseconds{100}, microseconds{100}, microseconds{100});
  profile.edges[5].tensor_bytes_per_sample = {Bytes{150'000}};
  const Cluster cluster =
      make_uniform_cluster(2, Bytes{1 << 30}, {microseconds{1}, BytesPerSecond{1'000'000'000}});
  SearchOptions options;
  options.batch_size = 16;
  options.micro_batch_sizes = {1};
  options.max_replicas = 1;
  options.mask = FreezeMask::all_active(12);
  options.schedules = {ScheduleKind::kZbH2};
  const Candidate best = search_plans({profile, cluster}, options).candidates.front();
  Duration least = Duration::max();
  for (std::int32_t cut = 1; cut < 12; ++cut) {
    Plan plan = best.plan;
    plan.pipelines = {make_pipeline(12, {LayerId{cut}}, {DeviceId{0}, DeviceId{1}},
                                    best.plan.pipelines.front().micro_batches.front())};
    least = std::min(least, judge_plan(plan, {profile, cluster}, false).makespan);
  }
  EXPECT_EQ(best.makespan, least) << "of all cuts";
  EXPECT_EQ(best.plan.pipelines.front().stages[1].layers.front().first, LayerId{6});
  options.overlapped_cuts = false;
  EXPECT_GT(search_plans({profile, cluster}, options).candidates.front().makespan, least);
}

// Nine micro-batches have four samples each, the last one sample. If the pipelines take five and
// four, a step is as long as five whole ones; if they take four and five, hardly longer than four.
TEST(Search, GivesTheShortMicroBatchToAPipelineWithOneMore) {
  const ModelProfile profile = make_chain(2, microseconds{10}, microseconds{10}, microseconds{10});
  const Cluster cluster = make_uniform_cluster(2, Bytes{1 << 30}, {});
  SearchOptions options;
  options.batch_size = 33;
  options.micro_batch_sizes = {4};
  options.max_stages = 1;
  options.mask = FreezeMask::all_active(2);
  for (const bool joint : {false, true}) {
    options.joint = joint;
    const Candidate best = search_plans({profile, cluster}, options).candidates.front();
    ASSERT_EQ(best.plan.pipelines.size(), 2U);
    Duration least = Duration::max();
    for (std::int32_t first = 1; first < 9; ++first) {
      Plan plan = best.plan;
      plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{first - 1}}};
      plan.pipelines[1].micro_batches = {{MicroBatchId{first}, MicroBatchId{8}}};
      least = std::min(least, judge_plan(plan, {profile, cluster}, false).makespan);
    }
    EXPECT_EQ(best.makespan, least);
  }
}

TEST(Search, OfEqualTimesTheOneThatNeedsLeastMemoryComesFirst) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(2, Bytes{1 << 30}, {});
  SearchOptions options = make_options(profile);
  options.max_replicas = 1;
  const Ranking ranking = search_plans({profile, cluster}, options);
  const auto most = [](const Candidate& candidate) {
    Bytes peak;
    for (const MemoryPeak& device : candidate.memory) peak = std::max(peak, device.total);
    return peak;
  };
  int ties = 0;
  for (std::size_t c = 1; c < ranking.candidates.size(); ++c) {
    const auto [before_key, after_key] =
        std::pair(ranking_key(ranking.candidates[c - 1]), ranking_key(ranking.candidates[c]));
    const auto front = [](const RankingKey& key) {
      return std::tuple(std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                        std::get<4>(key), std::get<5>(key), std::get<6>(key));
    };
    if (front(before_key) != front(after_key)) continue;
    EXPECT_LE(most(ranking.candidates[c - 1]), most(ranking.candidates[c]));
    ties += most(ranking.candidates[c - 1]) < most(ranking.candidates[c]) ? 1 : 0;
  }
  EXPECT_GT(ties, 0);
}

TEST(Search, KeepsAScheduleItCannotMakeWithItsReason) {
  const ModelProfile profile = make_model();
  const Cluster cluster = make_uniform_cluster(1, Bytes{10'000'000}, kLink);
  SearchOptions options = make_options(profile);
  options.schedules = {ScheduleKind::kDualPipe};
  const Ranking ranking = search_plans({profile, cluster}, options);
  EXPECT_EQ(ranking.best(), nullptr);
  EXPECT_NE(ranking.candidates.front().infeasible->reason.find("dualpipe"), std::string::npos);
}

TEST(Search, MeasuredSizesArePowersOfTwoWithinTheProfile) {
  ModelProfile profile = make_model();  // measured at 1 and 64
  EXPECT_EQ(measured_sizes(profile, 16), (std::vector<int>{1, 2, 4, 8, 16}));
  EXPECT_EQ(measured_sizes(profile, 1000), (std::vector<int>{1, 2, 4, 8, 16, 32, 64}));
  profile.layers[3].costs.front().micro_batch_size = 3;
  EXPECT_EQ(measured_sizes(profile, 10), (std::vector<int>{4, 8}));
  EXPECT_EQ(measured_sizes(profile, 3), (std::vector<int>{3}));
  EXPECT_EQ(measured_sizes(profile, 2), (std::vector<int>{2}));
}

}  // namespace
}  // namespace frazil
