// Tests that a search with a cut effort finds the fastest cuts, against the simulator alone under
// every cut and depth.

#include "planner/search/cut_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "planner/actions/validate_plan.h"
#include "planner/plan/schedule_facts.h"
#include "planner/search/search.h"
#include "tests/planner/support/for_each_cuts.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t kUnlimited = std::int64_t{1} << 50;

struct SmallCase {
  ModelProfile profile;
  Cluster cluster;
  SearchOptions options;
};

// Draws a chain of at most 8 layers on at most 4 devices with at most 8 micro-batches: every other
// time with equal layers and messages that take no time.
SmallCase draw_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto from = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  const bool equal = seed % 2 == 0;
  SmallCase drawn;
  const int layers = from(2, 8);
  const int forward = from(1, 3);
  for (int l = 0; l < layers; ++l) {
    Layer layer;
    layer.name = "layer" + std::to_string(l);
    layer.block = BlockId{l};
    layer.has_loss = l + 1 == layers;
    layer.parameters = Bytes{1'000'000};
    CostSample cost;
    const auto time = [&] { return microseconds(equal ? forward : from(1, 20)); };
    cost.forward = cost.forward_frozen = time();
    cost.backward_input = l == 0 ? Duration{0} : time();
    cost.backward_weight = time();
    cost.backward_weight_alone = cost.backward_weight + (l == 0 && equal ? time() : Duration{0});
    layer.costs.push_back(cost);
    drawn.profile.blocks.push_back(layer.name);
    drawn.profile.layers.push_back(layer);
    if (l == 0) continue;
    drawn.profile.edges.push_back(
        {LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {Bytes{equal ? 0 : from(0, 4000)}}});
  }
  const Link link = equal ? Link{} : Link{Duration{from(0, 2000)}, BytesPerSecond{1'000'000'000}};
  drawn.cluster = make_uniform_cluster(from(2, 4), Bytes{1'000'000'000}, link);
  SearchOptions& options = drawn.options;
  options.batch_size = from(1, 8);
  options.micro_batch_sizes = {1};
  options.mask = FreezeMask::all_active(layers);
  options.joint = true;
  options.max_replicas = 1;
  options.keep = kKeptPlans;
  options.cut_effort = kUnlimited;
  return drawn;
}

// Returns the least makespan over all numbers of devices, cuts and depths, each plan simulated.
Duration find_fastest(const SmallCase& drawn, ScheduleKind kind) {
  const auto layers = static_cast<int>(drawn.profile.layers.size());
  const auto devices = static_cast<int>(drawn.cluster.devices.size());
  Duration fastest = kNever;
  for (int p = 1; p <= std::min(layers, devices); ++p) {
    std::set<std::optional<int>> depths{std::nullopt};
    const int most = std::max(2 * p, 1 + (drawn.options.batch_size - 1) * std::max(1, p - 1));
    for (int depth = 1; facts_of(kind).takes_in_flight && depth <= most; ++depth) {
      depths.insert(depth);
    }
    std::vector<DeviceId> device_of;
    for (int d = 0; d < p; ++d) device_of.emplace_back(d);
    for_each_cuts(layers, p - 1, [&](const std::vector<LayerId>& chosen) {
      for (const std::optional<int> depth : depths) {
        Plan plan;
        plan.batch_size = drawn.options.batch_size;
        plan.micro_batch_size = 1;
        plan.mask = drawn.options.mask;
        plan.schedule = NamedSchedule{kind, depth, 1};
        plan.pipelines = {
            make_pipeline(layers, chosen, device_of,
                          {MicroBatchId{0}, MicroBatchId{drawn.options.batch_size - 1}})};
        const Candidate judged = judge_plan(plan, {drawn.profile, drawn.cluster}, false);
        if (!judged.infeasible) fastest = std::min(fastest, judged.makespan);
      }
    });
  }
  return fastest;
}

void expect_fastest(std::uint64_t first, std::uint64_t last) {
  constexpr ScheduleKind kKinds[] = {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kGpipe,
                                     ScheduleKind::kZbH1,
                                     ScheduleKind::kEagerOneForwardOneBackward};
  int improved = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SmallCase drawn = draw_case(seed);
    const ScheduleKind kind = kKinds[seed / 2 % 4];
    drawn.options.schedules = {kind};
    const Setting setting{drawn.profile, drawn.cluster};
    const Ranking ranking = search_plans(setting, drawn.options);
    ASSERT_NE(ranking.best(), nullptr);
    const Duration fastest = find_fastest(drawn, kind);
    ASSERT_EQ(ranking.best()->makespan, fastest);
    ASSERT_TRUE(ranking.cuts.has_value());
    EXPECT_LE(ranking.cuts->at_least, ranking.best()->makespan);
    EXPECT_EQ(ranking.cuts->at_least, ranking.best()->makespan) << "the budget suffices";
    drawn.options.cut_effort = 0;
    const Ranking chosen = search_plans(setting, drawn.options);
    EXPECT_LE(ranking.best()->makespan, chosen.best()->makespan);
    improved += ranking.best()->makespan < chosen.best()->makespan ? 1 : 0;
  }
  EXPECT_GT(improved, 0);
}

TEST(CutSearch, IsNeverSlowerThanAnyCutAndDepth) { expect_fastest(1, 200); }

// The same over ten times as many questions.
TEST(CutSearchSoak, IsNeverSlowerThanAnyCutAndDepth) { expect_fastest(1000, 3100); }

// With messages over skips, frozen and tied layers, unequal devices and tight memory.
TEST(CutSearch, IsNeverWorseAndEachPlanTakesWhatIsSimulated) {
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto [profile, cluster, options] = draw_search_question(seed);
    const Setting setting{profile, cluster};
    const Ranking before = search_plans(setting, options);
    options.cut_effort = kUnlimited;
    const Ranking ranking = search_plans(setting, options);
    ASSERT_TRUE(ranking.best() != nullptr || before.best() == nullptr);
    if (ranking.best() == nullptr) continue;
    const Duration chosen = before.best() != nullptr ? before.best()->makespan : kNever;
    ASSERT_LE(ranking.best()->makespan, chosen);
    faster += ranking.best()->makespan < chosen ? 1 : 0;
    ASSERT_TRUE(ranking.cuts.has_value());
    EXPECT_LE(ranking.cuts->at_least, ranking.best()->makespan);
    const StepOptions step{.clip = options.clip, .overlap = options.overlap};
    for (const Candidate& candidate : ranking.candidates) {
      if (candidate.infeasible) continue;
      const Candidate judged = judge_plan(candidate.plan, setting, step);
      ASSERT_EQ(judged.makespan, candidate.makespan);
      ASSERT_FALSE(judged.infeasible);
      validate(candidate.plan, setting, "searched");
    }
  }
  EXPECT_GT(faster, 10);
}

TEST(CutSearch, CountsAsManyCandidatesAsWithoutIt) {
  const auto count = [](const Ranking& ranking) {
    std::int64_t candidates = static_cast<std::int64_t>(ranking.candidates.size());
    for (const RejectedShapes& rejected : ranking.rejected) candidates += rejected.candidates;
    return candidates;
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto [profile, cluster, options] = draw_search_question(seed);
    const Ranking before = search_plans({profile, cluster}, options);
    options.cut_effort = kUnlimited;
    EXPECT_EQ(count(search_plans({profile, cluster}, options)), count(before));
  }
}

TEST(CutSearch, EndsWithItsBudgetAndTheBoundStaysTrue) {
  for (std::uint64_t seed = 2; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SmallCase drawn = draw_case(seed);
    drawn.options.schedules = {ScheduleKind::kOneForwardOneBackward};
    const Setting setting{drawn.profile, drawn.cluster};
    const Duration proven = search_plans(setting, drawn.options).best()->makespan;
    for (const std::int64_t effort : {1, 50, 500, 5000}) {
      drawn.options.cut_effort = effort;
      const Ranking ranking = search_plans(setting, drawn.options);
      EXPECT_LE(ranking.cuts->at_least, proven);
      EXPECT_GE(ranking.best()->makespan, proven);
    }
  }
}

}  // namespace
}  // namespace frazil
