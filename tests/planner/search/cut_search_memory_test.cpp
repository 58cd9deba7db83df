// Tests what a search proves where memory decides, against the simulator alone under every cut and
// every number of micro-batches in flight: chains with saved activations, frozen layers and layers
// without parameters, on devices that not every plan fits.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "planner/plan/schedule_facts.h"
#include "planner/search/advice.h"
#include "planner/search/search.h"
#include "tests/planner/support/for_each_cuts.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t kAllActions = std::int64_t{1} << 50;
constexpr ScheduleKind kTightKinds[] = {ScheduleKind::kZbH1,
                                        ScheduleKind::kZb1p,
                                        ScheduleKind::kOneForwardOneBackward,
                                        ScheduleKind::kZbH2,
                                        ScheduleKind::kZb2p,
                                        ScheduleKind::kGpipe,
                                        ScheduleKind::kZbH1,
                                        ScheduleKind::kEagerOneForwardOneBackward,
                                        ScheduleKind::kTwoBp};

struct TightCase {
  ModelProfile profile;
  Cluster cluster;
  SearchOptions options;
};

Layer draw_tight_layer(std::mt19937_64& random, int index) {
  const auto pick = [&](std::initializer_list<int> choices) {
    return *(choices.begin() + random() % choices.size());
  };
  Layer layer;
  layer.name = "layer" + std::to_string(index);
  layer.block = BlockId{index};
  layer.parameters = Bytes{pick({0, 0, 64, 4000})};
  CostSample cost;
  const auto time = [&] { return microseconds(random() % 10); };
  cost.forward = cost.forward_frozen = time();
  cost.backward_input = time();
  cost.backward_weight = cost.backward_weight_alone =
      layer.parameters.count > 0 ? time() : Duration{0};
  cost.stash = Bytes{pick({0, 1000, 5000})};
  layer.costs.push_back(cost);
  return layer;
}

// Draws a chain of at most 5 layers, every third time with frozen ones, on at most 3 devices with
// at most 5 micro-batches.
TightCase draw_tight_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto from = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  TightCase drawn;
  const int layers = from(2, 5);
  drawn.options.mask = FreezeMask::all_active(layers);
  for (int l = 0; l < layers; ++l) {
    drawn.profile.layers.push_back(draw_tight_layer(random, l));
    drawn.profile.blocks.push_back(drawn.profile.layers.back().name);
    if (seed % 3 == 0 && l + 1 < layers && from(0, 2) == 0)
      drawn.options.mask.set_active(BlockId{l}, false);
    if (l == 0) continue;
    drawn.profile.edges.push_back(
        {LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {Bytes{from(0, 500)}}});
  }
  drawn.profile.layers.back().has_loss = true;
  const Link link{Duration{from(0, 3) * 1000}, BytesPerSecond{1'000'000'000}};
  drawn.cluster = make_uniform_cluster(from(2, 3), Bytes{from(8, 32) * 1000}, link);
  SearchOptions& options = drawn.options;
  options.batch_size = from(1, 5);
  options.micro_batch_sizes = {1};
  options.joint = true;
  options.max_replicas = 1;
  options.keep = 4;
  options.cut_effort = kAllActions;
  options.schedules = {kTightKinds[seed % std::size(kTightKinds)]};
  return drawn;
}

std::set<std::optional<int>> list_tight_depths(const TightCase& drawn, int devices) {
  std::set<std::optional<int>> depths{std::nullopt};
  // One device runs the schedule's own number alone.
  if (devices == 1 || !facts_of(drawn.options.schedules.front()).takes_in_flight) return depths;
  const int most = 1 + (drawn.options.batch_size - 1) * (devices - 1);
  for (int depth = 1; depth <= most; ++depth) depths.insert(depth);
  return depths;
}

// Returns the least makespan over all plans of the searched space that fit; kNever if none does.
Duration find_fastest_that_fits(const TightCase& drawn) {
  const auto layers = static_cast<int>(drawn.profile.layers.size());
  const auto devices = static_cast<int>(drawn.cluster.devices.size());
  const MicroBatches all{MicroBatchId{0}, MicroBatchId{drawn.options.batch_size - 1}};
  Duration fastest = kNever;
  for (int p = 1; p <= std::min(layers, devices); ++p) {
    const std::set<std::optional<int>> depths = list_tight_depths(drawn, p);
    std::vector<DeviceId> on;
    for (int d = 0; d < p; ++d) on.emplace_back(d);
    for_each_cuts(layers, p - 1, [&](const std::vector<LayerId>& cuts) {
      for (const std::optional<int> depth : depths) {
        Plan plan;
        plan.batch_size = drawn.options.batch_size;
        plan.micro_batch_size = 1;
        plan.mask = drawn.options.mask;
        plan.schedule = NamedSchedule{drawn.options.schedules.front(), depth, 1};
        plan.pipelines = {make_pipeline(layers, cuts, on, all)};
        const Candidate judged = judge_plan(plan, {drawn.profile, drawn.cluster}, false);
        if (!judged.infeasible) fastest = std::min(fastest, judged.makespan);
      }
    });
  }
  return fastest;
}

// What the drawn cases came to, so that a test can tell that it saw something.
struct SeenTight {
  int bound = 0;    // memory rules out the plan that would be the fastest
  int none = 0;     // nothing fits
  int partial = 0;  // a search with little effort proved nothing
};

void expect_true(std::uint64_t seed, SeenTight& seen) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  TightCase drawn = draw_tight_case(seed);
  const Duration fastest = find_fastest_that_fits(drawn);
  const Setting setting{drawn.profile, drawn.cluster};
  const Ranking ranking = search_plans(setting, drawn.options);
  ASSERT_EQ(ranking.best() != nullptr, fastest < kNever) << "a plan fits";
  if (fastest == kNever) {
    EXPECT_FALSE(ranking.cuts.has_value());
    ++seen.none;
    return;
  }
  EXPECT_EQ(ranking.fastest()->makespan, fastest);
  ASSERT_TRUE(ranking.cuts.has_value());
  EXPECT_EQ(ranking.cuts->at_least, fastest) << "the effort suffices";
  for (const std::int64_t effort : {1, 300}) {
    drawn.options.cut_effort = effort;
    const Ranking partial = search_plans(setting, drawn.options);
    if (partial.best() == nullptr) continue;
    EXPECT_LE(partial.cuts->at_least, fastest);
    EXPECT_GE(partial.fastest()->makespan, fastest);
    seen.partial += partial.cuts->at_least < partial.fastest()->makespan ? 1 : 0;
  }
  TightCase roomy = drawn;
  roomy.options.cut_effort = kAllActions;
  for (Device& device : roomy.cluster.devices) device.memory_limit = Bytes{1'000'000'000};
  const Duration without =
      search_plans({roomy.profile, roomy.cluster}, roomy.options).fastest()->makespan;
  EXPECT_LE(without, fastest);
  seen.bound += without < fastest ? 1 : 0;
}

void expect_true(std::uint64_t first, std::uint64_t last) {
  SeenTight seen;
  for (std::uint64_t seed = first; seed <= last; ++seed) expect_true(seed, seen);
  const auto cases = static_cast<int>(last - first + 1);
  EXPECT_GT(seen.bound, cases / 20);
  EXPECT_GT(seen.none, cases / 100);
  EXPECT_LT(seen.none, cases / 2);
  EXPECT_GT(seen.partial, cases / 100);
}

// Three micro-batches in flight fit where each of the middle layer's stashes, which has no W,
// counts from F to I; counted to W they would need more than each device has.
TEST(TightCuts, CountTheStashOfALayerWithoutWToItsInputGradient) {
  struct Row {
    int forward, input, weight, stash, parameters;
  };
  TightCase drawn;
  for (const Row& row : {Row{5, 6, 3, 1000, 64}, Row{6, 1, 7, 5000, 4000}, Row{3, 4, 0, 1000, 0},
                         Row{3, 0, 8, 0, 4000}}) {
    Layer layer;
    layer.name = "layer" + std::to_string(drawn.profile.layers.size());
    layer.block = BlockId{drawn.profile.layers.size()};
    layer.parameters = Bytes{row.parameters};
    CostSample cost;
    cost.forward = cost.forward_frozen = microseconds(row.forward);
    cost.backward_input = microseconds(row.input);
    cost.backward_weight = cost.backward_weight_alone = microseconds(row.weight);
    cost.stash = Bytes{row.stash};
    layer.costs.push_back(cost);
    drawn.profile.blocks.push_back(layer.name);
    drawn.profile.layers.push_back(layer);
  }
  drawn.profile.layers.back().has_loss = true;
  for (int l = 1; l < 4; ++l) {
    const Bytes sent = drawn.profile.layers[static_cast<std::size_t>(l) - 1].costs.front().stash;
    drawn.profile.edges.push_back({LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {sent}});
  }
  drawn.cluster =
      make_uniform_cluster(2, Bytes{20'000}, {microseconds(3), BytesPerSecond{1'000'000'000}});
  drawn.options = draw_tight_case(1).options;
  drawn.options.mask = FreezeMask::all_active(4);
  drawn.options.batch_size = 3;
  drawn.options.schedules = {ScheduleKind::kZbH1};
  const Ranking ranking = search_plans({drawn.profile, drawn.cluster}, drawn.options);
  ASSERT_NE(ranking.best(), nullptr);
  EXPECT_EQ(ranking.fastest()->makespan, find_fastest_that_fits(drawn));
  EXPECT_EQ(ranking.cuts->at_least, find_fastest_that_fits(drawn));
}

TEST(TightCuts, AreProvenOnlyWhereNoPlanThatFitsIsFaster) { expect_true(1, 200); }

// The same over ten times as many questions.
TEST(TightCutsSoak, AreProvenOnlyWhereNoPlanThatFitsIsFaster) { expect_true(1000, 3100); }

// Without a search of cuts a plan may be proposed only where more memory is offered than it needs.
TEST(TightCuts, AdviceMayNameAPlanThatFitsWithoutIt) {
  int fitting = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TightCase drawn = draw_tight_case(seed);
    drawn.options.cut_effort = 0;
    drawn.options.schedules = {seed % 2 == 0 ? ScheduleKind::kZb1p : ScheduleKind::kZb2p};
    const Ranking ranking = search_plans({drawn.profile, drawn.cluster}, drawn.options);
    if (ranking.best() != nullptr) continue;
    const SearchCase question{drawn.cluster, drawn.options};
    const std::vector<Advice> all_advice = find_advice(drawn.profile, question, ranking);
    const std::vector<Candidate> relieved = find_relieved(drawn.profile, question, all_advice);
    EXPECT_FALSE(explain_no_plan(drawn.profile, question, ranking, all_advice).empty());
    if (relieved.empty() || relieved.front().infeasible) continue;
    ++fitting;
    EXPECT_GE(relieved.front().makespan, find_fastest_that_fits(drawn));
  }
  EXPECT_GT(fitting, 0);
}

}  // namespace
}  // namespace frazil
