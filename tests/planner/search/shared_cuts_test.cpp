#include "planner/search/shared_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "planner/plan/activity.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

ModelProfile draw_chain(std::mt19937_64& random, int layers) {
  ModelProfile profile = make_chain(layers, microseconds(1), microseconds(1), microseconds(1));
  for (Layer& layer : profile.layers) {
    layer.parameters = Bytes{static_cast<std::int64_t>(random() % 40'000)};
    for (CostSample& cost : layer.costs) {
      cost.forward *= static_cast<int>(random() % 20 + 1);
      cost.backward_weight *= static_cast<int>(random() % 20 + 1);
      cost.stash = Bytes{static_cast<std::int64_t>(random() % 20'000)};
    }
  }
  for (Edge& edge : profile.edges) {
    edge.tensor_bytes_per_sample = {Bytes{static_cast<std::int64_t>(random() % 20'000)}};
  }
  return profile;
}

// Finds the least busiest stage over all cuts and deals, by number of stages.
struct BruteForce {
  const SharedProblem& problem;
  std::map<std::size_t, Duration> least;

  void visit(int first, int devices_left, std::vector<int>& ends, std::vector<int>& devices) {
    if (first == problem.sums.layers()) return judge(ends, devices);
    for (int end = first + 1; end <= problem.sums.layers(); ++end) {
      for (int own = 1; own <= std::min(devices_left, problem.most_copies); ++own) {
        ends.push_back(end);
        devices.push_back(own);
        visit(end, devices_left - own, ends, devices);
        ends.pop_back();
        devices.pop_back();
      }
    }
  }

  void judge(const std::vector<int>& ends, const std::vector<int>& devices) {
    if (devices.size() < 2 || static_cast<int>(devices.size()) > problem.most_stages) return;
    const Duration busiest = busiest_of(ends, devices);
    if (busiest == kNever) return;
    const auto [known, is_new] = least.try_emplace(devices.size(), busiest);
    if (!is_new) known->second = std::min(known->second, busiest);
  }

  Duration busiest_of(const std::vector<int>& ends, const std::vector<int>& devices) const {
    Duration busiest{0};
    int behind = 0;
    for (std::size_t s = devices.size(); s-- > 0;) {
      const LayerSpan span{s == 0 ? 0 : ends[s - 1], ends[s]};
      behind += devices[s];
      if (problem.memory(span, devices[s], behind) > problem.memory_limit) return kNever;
      busiest = std::max(busiest, problem.time(span, devices[s]));
    }
    return busiest;
  }
};

TEST(SharedCuts, AreTheBestOfAllCutsAndDeals) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int layers = static_cast<int>(random() % 5) + 2;
    const ModelProfile profile = draw_chain(random, layers);
    const Activity activity = find_activity(profile, FreezeMask::all_active(layers));
    const ChainSums sums(profile, activity, 1);
    const SharedProblem problem{.sums = sums,
                                .micro_batches = static_cast<int>(random() % 9) + 1,
                                .devices = static_cast<int>(random() % 5) + 1,
                                .most_stages = static_cast<int>(random() % 3) + 2,
                                .most_copies = static_cast<int>(random() % 4) + 1,
                                .recompute = random() % 2 == 0,
                                .is_exact = random() % 2 == 0,
                                .bandwidth = {random() % 3 == 0 ? 0 : 1'000'000'000},
                                .memory_limit = Bytes{seed % 2 == 0 ? 1'000'000'000 : 150'000}};
    BruteForce oracle{problem, {}};
    std::vector<int> ends;
    std::vector<int> devices;
    oracle.visit(0, problem.devices, ends, devices);
    const std::vector<SharedCuts> found = cut_shared_stages(problem);
    ASSERT_EQ(found.size(), oracle.least.size());
    for (const SharedCuts& cuts : found) {
      std::vector<int> found_ends = cuts.cuts;
      found_ends.push_back(layers);
      EXPECT_EQ(oracle.busiest_of(found_ends, cuts.devices), oracle.least.at(cuts.devices.size()));
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(SharedCuts, LeaveOutWhatIsNotBelow) {
  const ModelProfile profile = make_chain(4, microseconds(1), microseconds(1), microseconds(1));
  const Activity activity = find_activity(profile, FreezeMask::all_active(4));
  const ChainSums sums(profile, activity, 1);
  SharedProblem problem{.sums = sums,
                        .micro_batches = 6,
                        .devices = 3,
                        .most_stages = 2,
                        .most_copies = 2,
                        .memory_limit = Bytes{1'000'000'000}};
  const std::vector<SharedCuts> found = cut_shared_stages(problem);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().devices, (std::vector<int>{2, 1}));
  problem.below = problem.time({0, found.front().cuts.front()}, 2) + Duration{1};
  EXPECT_LE(cut_shared_stages(problem).size(), 1U);
  problem.below = microseconds(1);
  EXPECT_TRUE(cut_shared_stages(problem).empty());
}

TEST(SharedCuts, OfLongChainsOnManyDevicesUseAll) {
  const ModelProfile profile = make_chain(200, microseconds(1), microseconds(1), microseconds(1));
  const Activity activity = find_activity(profile, FreezeMask::all_active(200));
  const ChainSums sums(profile, activity, 1);
  const SharedProblem problem{.sums = sums,
                              .micro_batches = 128,
                              .devices = 64,
                              .most_stages = 3,
                              .most_copies = 64,
                              .memory_limit = Bytes{1'000'000'000'000}};
  const std::vector<SharedCuts> found = cut_shared_stages(problem);
  ASSERT_EQ(found.size(), 2U);
  for (const SharedCuts& cuts : found) {
    int devices = 0;
    for (const int own : cuts.devices) devices += own;
    EXPECT_LE(devices, 64);
    EXPECT_GE(devices, 60);
    EXPECT_TRUE(std::is_sorted(cuts.cuts.begin(), cuts.cuts.end()));
  }
}

}  // namespace
}  // namespace frazil
