#include "planner/drift/rebalance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "planner/prediction/simulate_plan.h"
#include "tests/planner/drift/chain_cases.h"

namespace frazil {
namespace {

std::vector<int> cuts_of(const Plan& plan) {
  std::vector<int> cuts;
  for (const Stage& stage : plan.pipelines[0].stages) {
    if (stage.layers.front().first.value > 0) cuts.push_back(stage.layers.front().first.value);
  }
  return cuts;
}

std::vector<std::int64_t> loads_of(const std::vector<std::int64_t>& times,
                                   const std::vector<std::int64_t>& time_ppm,
                                   const std::vector<int>& cuts) {
  std::vector<std::int64_t> loads(cuts.size() + 1);
  for (std::size_t l = 0; l < times.size(); ++l) {
    const auto stage = std::upper_bound(cuts.begin(), cuts.end(), static_cast<int>(l));
    loads[static_cast<std::size_t>(stage - cuts.begin())] += 3 * times[l];
  }
  for (std::size_t s = 0; s < loads.size(); ++s) loads[s] = loads[s] * time_ppm[s] / 1'000'000;
  return loads;
}

std::int64_t largest(const std::vector<std::int64_t>& loads) {
  return *std::max_element(loads.begin(), loads.end());
}

double variance(const std::vector<std::int64_t>& loads) {
  double sum = 0;
  double squares = 0;
  for (const std::int64_t load : loads) {
    sum += static_cast<double>(load);
    squares += static_cast<double>(load) * static_cast<double>(load);
  }
  const auto count = static_cast<double>(loads.size());
  return squares / count - sum / count * (sum / count);
}

void for_each_cuts(int layers, std::size_t count, std::vector<int>& cuts,
                   const std::function<void(const std::vector<int>&)>& visit) {
  if (cuts.size() == count) return visit(cuts);
  for (int cut = cuts.empty() ? 1 : cuts.back() + 1; cut < layers; ++cut) {
    cuts.push_back(cut);
    for_each_cuts(layers, count, cuts, visit);
    cuts.pop_back();
  }
}

struct Case {
  std::vector<std::int64_t> times;
  std::vector<std::int64_t> time_ppm;
  std::vector<int> cuts;
};

Case draw_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Case drawn;
  const int layers = 3 + static_cast<int>(random() % 7);
  for (int l = 0; l < layers; ++l) {
    drawn.times.push_back(1'000 + static_cast<std::int64_t>(random() % 9'000));
  }
  const int devices =
      2 + static_cast<int>(random() % static_cast<std::uint64_t>(std::min(3, layers - 1)));
  for (int d = 0; d < devices; ++d) {
    drawn.time_ppm.push_back(1'000'000 + static_cast<std::int64_t>(random() % 4) * 500'000);
  }
  std::vector<int> all;
  for (int cut = 1; cut < layers; ++cut) all.push_back(cut);
  std::shuffle(all.begin(), all.end(), random);
  drawn.cuts.assign(all.begin(), all.begin() + devices - 1);
  std::sort(drawn.cuts.begin(), drawn.cuts.end());
  return drawn;
}

TEST(Rebalance, ByPartitionHasTheSmallestLargestLoadOfAllCuts) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Case drawn = draw_case(seed);
    const ModelProfile profile = make_chain(drawn.times);
    const Cluster cluster = make_row(drawn.time_ppm);
    const auto layers = static_cast<int>(drawn.times.size());
    const Plan plan = make_chain_plan(layers, drawn.cuts, 4);
    const Plan cut = rebalance_by_partition(plan, {profile, cluster});
    std::int64_t least = INT64_MAX;
    std::vector<int> cuts;
    for_each_cuts(layers, drawn.cuts.size(), cuts, [&](const std::vector<int>& tried) {
      least = std::min(least, largest(loads_of(drawn.times, drawn.time_ppm, tried)));
    });
    EXPECT_EQ(largest(loads_of(drawn.times, drawn.time_ppm, cuts_of(cut))), least);
    // Nothing but the cuts is another.
    EXPECT_EQ(cut, make_chain_plan(layers, cuts_of(cut), 4));
  }
}

// No neighbour of a stage above the mean, the lighter one, would make the loads more even.
TEST(Rebalance, ByDiffusionMakesLoadsMoreEvenUntilNoOfferHolds) {
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Case drawn = draw_case(seed);
    const ModelProfile profile = make_chain(drawn.times);
    const Cluster cluster = make_row(drawn.time_ppm);
    const Plan plan = make_chain_plan(static_cast<int>(drawn.times.size()), drawn.cuts, 4);
    const std::vector<int> cuts = cuts_of(rebalance_by_diffusion(plan, {profile, cluster}));
    const std::vector<std::int64_t> loads = loads_of(drawn.times, drawn.time_ppm, cuts);
    const double even = variance(loads);
    EXPECT_LE(even, variance(loads_of(drawn.times, drawn.time_ppm, drawn.cuts)));
    moved += cuts != drawn.cuts ? 1 : 0;
    double mean = 0;
    for (const std::int64_t load : loads) {
      mean += static_cast<double>(load) / static_cast<double>(loads.size());
    }
    for (std::size_t s = 0; s < loads.size(); ++s) {
      const int first = s == 0 ? 0 : cuts[s - 1];
      const int end = s < cuts.size() ? cuts[s] : static_cast<int>(drawn.times.size());
      if (static_cast<double>(loads[s]) <= mean + 1 || end - first == 1) continue;
      const bool goes_back = s > 0 && (s == cuts.size() || loads[s - 1] <= loads[s + 1]);
      std::vector<int> offered = cuts;
      goes_back ? ++offered[s - 1] : --offered[s];
      EXPECT_GE(variance(loads_of(drawn.times, drawn.time_ppm, offered)), even * (1 - 1e-9));
    }
  }
  EXPECT_GT(moved, 50);
}

TEST(Rebalance, NeedsStagesOnDevicesOfTheirOwn) {
  EXPECT_TRUE(can_rebalance(make_chain_plan(4, {2}, 4)));
  EXPECT_FALSE(can_rebalance(make_chain_plan(4, {}, 4))) << "there is nothing to cut";
  Plan shared = make_chain_plan(4, {2}, 4);
  shared.pipelines[0].stages[1].devices = {DeviceId{0}};
  EXPECT_FALSE(can_rebalance(shared));
  Plan listed = make_chain_plan(4, {2}, 4);
  listed.schedule = ExplicitSchedule{};
  EXPECT_FALSE(can_rebalance(listed));
}

// By hand: stages of 60, 15, 15 and 60 us. The middle two take 30 us together, and a third one more
// would take 90. Where the second device is at a quarter of its speed, the third one has both;
// where both are, neither has.
TEST(Rebalance, PackingReleasesTheDeviceThatItsNeighbourCanReplace) {
  const ModelProfile profile = make_chain({20'000, 5'000, 5'000, 20'000});
  const Plan plan = make_chain_plan(4, {1, 2, 3}, 8);
  const auto devices_of = [&](const std::vector<std::int64_t>& time_ppm) {
    const Cluster cluster = make_row(time_ppm);
    const Plan packed = rebalance_by_packing(plan, {profile, cluster});
    std::vector<int> devices;
    for (const Stage& stage : packed.pipelines[0].stages) {
      devices.push_back(stage.devices.front().value);
    }
    if (devices.size() == 3) {
      EXPECT_EQ(cuts_of(packed), (std::vector<int>{1, 3}));
    }
    return devices;
  };
  const std::int64_t even = 1'000'000;
  const std::int64_t slow = 4'000'000;
  EXPECT_EQ(devices_of({even, even, even, even}), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(devices_of({even, slow, even, even}), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(devices_of({even, slow, slow, even}), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Rebalance, PackingTakesNoLongerThanTheCutThatItPacks) {
  int fewer = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const Case drawn = draw_case(seed);
    const ModelProfile profile = make_chain(drawn.times);
    const Cluster cluster = make_row(drawn.time_ppm);
    const Plan plan = make_chain_plan(static_cast<int>(drawn.times.size()), drawn.cuts, 4);
    const Plan cut = rebalance_by_partition(plan, {profile, cluster});
    const Plan packed = rebalance_by_packing(plan, {profile, cluster});
    std::vector<std::int64_t> own_ppm;
    for (const Stage& stage : packed.pipelines[0].stages) {
      own_ppm.push_back(drawn.time_ppm.at(stage.devices.front().index()));
    }
    ASSERT_EQ(own_ppm.size(), cuts_of(packed).size() + 1) << "one stage lies behind the other";
    EXPECT_LE(largest(loads_of(drawn.times, own_ppm, cuts_of(packed))),
              largest(loads_of(drawn.times, drawn.time_ppm, cuts_of(cut))));
    EXPECT_GT(simulate_plan(packed, {profile, cluster}).makespan, kNoTime);
    fewer += own_ppm.size() < drawn.time_ppm.size() ? 1 : 0;
  }
  EXPECT_GT(fewer, 30);
}

}  // namespace
}  // namespace frazil
