// Tests the search for plans with stages on several devices against the simulator alone under every
// cut, deal of devices and schedule.

#include "planner/search/shared_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "planner/actions/validate_plan.h"
#include "planner/search/search.h"
#include "planner/search/shared_plan.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

struct SharedCase {
  ModelProfile profile;
  Cluster cluster;
  SearchOptions options;

  Setting setting() const { return {profile, cluster}; }
};

// Draws a chain whose first layers have work, and whose last layers have parameters.
SharedCase draw_shared_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto from = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  const int layers = from(2, 5);
  SharedCase drawn;
  drawn.profile = make_chain(layers, microseconds(1), microseconds(1), microseconds(1));
  for (int l = 0; l < layers; ++l) {
    Layer& layer = drawn.profile.layers[static_cast<std::size_t>(l)];
    const bool is_last = l + 1 == layers;
    layer.parameters = Bytes{is_last ? from(50'000, 200'000) : from(0, 4'000)};
    for (CostSample& cost : layer.costs) {
      const int times = is_last ? from(1, 8) : from(10, 60);
      cost.forward *= times;
      cost.backward_input *= times;
      cost.backward_weight *= times;
      cost.backward_weight_alone *= times;
    }
  }
  for (Edge& edge : drawn.profile.edges) edge.tensor_bytes_per_sample = {Bytes{from(0, 5'000)}};
  drawn.cluster = make_uniform_cluster(from(3, 4), Bytes{seed % 4 == 3 ? 900'000 : 1'000'000'000},
                                       {Duration{from(0, 1'000)}, BytesPerSecond{1'000'000'000}});
  SearchOptions& options = drawn.options;
  options.batch_size = from(2, 8);
  options.micro_batch_sizes = {1};
  options.mask = FreezeMask::all_active(layers);
  options.reduction = seed % 2 == 0 ? ReductionMode::kExact : ReductionMode::kFast;
  options.joint = true;
  options.keep = kKeptPlans;
  options.cut_effort = kCutEffort;
  options.shared_effort = kSharedEffort;
  return drawn;
}

// Simulates every plan of two stages or more with a stage on several devices under 1f1b and gpipe
// at their own depths; returns the least time of those that fit.
class EveryDeal {
 public:
  explicit EveryDeal(const SharedCase& of) : case_(of) {}

  Duration find_least() {
    visit({}, 0, 0);
    return least_;
  }
  const std::string& fastest() const { return fastest_; }

 private:
  int layers() const { return static_cast<int>(case_.profile.layers.size()); }

  void visit(const SharedCuts& begun, int first, int used) {
    const int devices = static_cast<int>(case_.cluster.devices.size());
    for (int own = 1; own <= devices - used; ++own) {
      SharedCuts next = begun;
      next.devices.push_back(own);
      if (next.devices.size() > 1 && has_shared_stage(next)) judge(next);
      for (int cut = first + 1; cut < layers(); ++cut) {
        SharedCuts longer = next;
        longer.cuts.push_back(cut);
        visit(longer, cut, used + own);
      }
    }
  }

  void judge(const SharedCuts& layout) {
    for (const ScheduleKind kind : case_.options.schedules) {
      SharedPlan shared;
      shared.layout = layout;
      shared.schedule = kind;
      Plan plan = make_plan(shared, case_.options, layers());
      plan.model_hash = model_hash(case_.profile);
      const Candidate candidate = judge_plan(plan, case_.setting(), false);
      if (candidate.infeasible || candidate.makespan >= least_) continue;
      least_ = candidate.makespan;
      fastest_ = summarize(plan);
    }
  }

  const SharedCase& case_;
  Duration least_ = kNever;
  std::string fastest_;
};

TEST(SharedStagesSearch, FindsWhatIsAsGoodAsEveryDealOfSmallCases) {
  int first = 0;
  int as_good = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SharedCase drawn = draw_shared_case(seed);
    const Ranking ranking = search_plans(drawn.setting(), drawn.options);
    ASSERT_TRUE(ranking.shared.has_value());
    ASSERT_NE(ranking.best(), nullptr);
    const Candidate& best = *ranking.best();
    EXPECT_NO_THROW(validate(best.plan, drawn.setting(), "plan"));
    EXPECT_EQ(judge_plan(best.plan, drawn.setting(), false).makespan, best.makespan);
    EveryDeal every(drawn);
    const Duration least = every.find_least();
    if (least == kNever) continue;
    ++cases;
    // Depths beside the schedule's own may be faster than every deal.
    if (best.makespan <= least) ++as_good;
    EXPECT_LE(best.makespan.count(), least.count() * 11 / 10)
        << summarize(best.plan) << ", but " << every.fastest();
    if (has_shared_stage(best.plan.pipelines.front())) ++first;

    SearchOptions alone = drawn.options;
    alone.shared_effort = 0;
    const Ranking without = search_plans(drawn.setting(), alone);
    EXPECT_FALSE(without.shared.has_value());
    if (without.best() == nullptr) continue;
    EXPECT_LE(best.makespan, without.best()->makespan);
    // The bound is one over plans with a stage on one device, with or without the others.
    EXPECT_EQ(ranking.cuts->at_least, without.cuts->at_least);
  }
  EXPECT_GE(cases, 50);
  EXPECT_GE(as_good * 100, cases * 95);
  EXPECT_GE(first, 10);
}

TEST(SharedStagesSearch, AsksNothingWhereNoStageMayHaveSeveralDevices) {
  SharedCase drawn = draw_shared_case(0);
  drawn.options.max_replicas = 1;
  EXPECT_FALSE(search_plans(drawn.setting(), drawn.options).shared.has_value());
  drawn.options.max_replicas = 0;
  drawn.options.max_stages = 1;
  EXPECT_FALSE(search_plans(drawn.setting(), drawn.options).shared.has_value());
  drawn.options.max_stages = 0;
  drawn.options.schedules = {ScheduleKind::kZbV};
  EXPECT_FALSE(search_plans(drawn.setting(), drawn.options).shared.has_value());
}

TEST(SharedPlans, AreReadAsTheyAreMade) {
  const SharedCase drawn = draw_shared_case(1);
  const int layers = static_cast<int>(drawn.profile.layers.size());
  SharedPlan shared;
  shared.layout = {{1}, {2, 1}};
  shared.recompute = true;
  shared.in_flight = 3;
  const Plan plan = make_plan(shared, drawn.options, layers);
  EXPECT_EQ(read_shared_plan(plan, drawn.options, layers), shared);
  Plan other = plan;
  std::swap(other.pipelines.front().stages[0].devices[0],
            other.pipelines.front().stages[0].devices[1]);
  EXPECT_EQ(read_shared_plan(other, drawn.options, layers), std::nullopt);
}

TEST(SharedPlans, HaveNeighboursWithOneThingChanged) {
  SharedPlan shared;
  shared.layout = {{2}, {2, 1}};
  const std::vector<ScheduleKind> schedules = {ScheduleKind::kOneForwardOneBackward,
                                               ScheduleKind::kGpipe};
  const std::vector<SharedPlan> next = list_neighbours(shared, {schedules, 4, 4, 3});
  const auto holds = [&](const SharedCuts& layout) {
    return std::any_of(next.begin(), next.end(),
                       [&](const SharedPlan& plan) { return plan.layout == layout; });
  };
  EXPECT_TRUE(holds({{2}, {3, 1}}));
  EXPECT_TRUE(holds({{2}, {2, 2}}));
  EXPECT_TRUE(holds({{2}, {1, 2}}));
  EXPECT_TRUE(holds({{1}, {2, 1}}));
  EXPECT_TRUE(holds({{3}, {2, 1}}));
  EXPECT_FALSE(holds({{2}, {1, 1}})) << "no stage is shared";
  EXPECT_FALSE(holds({{4}, {2, 1}})) << "a stage without layers";
}

}  // namespace
}  // namespace frazil
