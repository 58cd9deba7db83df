#include "planner/schedules/dispatch.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

constexpr Bytes kHeld{4000};  // parameters, one gradient set, optimizer state of a layer
constexpr Bytes kStash{100};  // of a layer and a sample

// A chain of one layer per stage; `rooms` holds the micro-batches that fit on each device.
struct Chain {
  ModelProfile profile;
  Cluster cluster;
  Plan plan;

  Chain(DispatchPolicy policy, int micro_batches, const std::vector<int>& rooms,
        Duration hop = nanoseconds(0))
      : profile(make_chain(static_cast<int>(rooms.size()), nanoseconds(10), nanoseconds(10),
                           nanoseconds(10))),
        cluster(make_uniform_cluster(static_cast<int>(rooms.size()), Bytes{0}, {hop, {}})) {
    const auto stages = static_cast<int>(rooms.size());
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices;
    for (int s = 0; s < stages; ++s) {
      if (s > 0) cuts.push_back(LayerId{s});
      devices.push_back(DeviceId{s});
      cluster.devices[static_cast<std::size_t>(s)].memory_limit =
          kHeld + kStash * rooms[static_cast<std::size_t>(s)];
    }
    plan.batch_size = micro_batches;
    plan.mask = FreezeMask::all_active(stages);
    plan.reduction = ReductionMode::kFast;
    plan.pipelines = {
        make_pipeline(stages, cuts, devices, {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
    plan.schedule = policy;
  }
  Schedule lists() const {
    return make_schedule(plan, static_cast<int>(cluster.devices.size()), Setting{profile, cluster});
  }
};

TEST(Dispatch, BackwardsFirstWithRoomForWhat1F1BHoldsIs1F1B) {
  for (const int micro_batches : {1, 3, 4, 9}) {
    Chain chain(DispatchPolicy::kPriority, micro_batches, {4, 3, 2, 1});
    const Schedule dispatched = chain.lists();
    chain.plan.schedule = NamedSchedule{};
    EXPECT_EQ(to_text(dispatched), to_text(make_schedule(chain.plan, 4)));
  }
}

TEST(Dispatch, FifoTakesWhatWasReadyFirstAndForwardsAmongEquals) {
  // F takes 10; B takes 10 on device 0, which has no I, and 20 on device 1. At 20 1F1 and 1B0 are
  // ready, at 30 1F2 and 1B1.
  EXPECT_EQ(to_text(Chain(DispatchPolicy::kFifo, 4, {4, 4}).lists()),
            "d0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n"
            "d1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3\n");
}

// Applies the rules again to a chain, by looking at every action at every moment at which something
// ends.
struct Rules {
  DispatchPolicy policy;
  int micro_batches;
  std::vector<int> rooms;
  std::vector<std::int64_t> forward, backward;
  std::int64_t hop;

  std::string run() const {
    constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();
    const std::size_t p = rooms.size();
    const auto m = static_cast<std::size_t>(micro_batches);
    // The indices are [is backward][stage][micro-batch].
    std::vector<std::vector<std::vector<std::int64_t>>> end(
        2, std::vector<std::vector<std::int64_t>>(p, std::vector<std::int64_t>(m, kNotYet)));
    std::vector<std::int64_t> free_at(p, 0);
    std::vector<int> held(p, 0);
    std::vector<std::string> lists(p);
    std::vector<std::multimap<std::int64_t, int>> releases(p);
    for (std::int64_t now = 0, left = static_cast<std::int64_t>(2 * p * m); left > 0; ++now) {
      for (std::size_t s = 0; s < p; ++s) {
        while (!releases[s].empty() && releases[s].begin()->first <= now) {
          releases[s].erase(releases[s].begin());
          --held[s];
        }
      }
      for (std::size_t s = 0; s < p; ++s) {
        if (free_at[s] > now) continue;
        std::tuple<std::int64_t, std::int64_t> best{kNotYet, kNotYet};
        std::pair<std::size_t, std::size_t> chosen{2, 0};
        for (std::size_t b = 0; b < 2; ++b) {
          for (std::size_t i = 0; i < m; ++i) {
            if (end[b][s][i] != kNotYet) continue;
            std::int64_t ready = 0;
            const auto after = [&](std::int64_t other, std::int64_t delay) {
              ready =
                  other == kNotYet || ready == kNotYet ? kNotYet : std::max(ready, other + delay);
            };
            if (b == 0 && s > 0) after(end[0][s - 1][i], hop);
            if (b == 1) after(end[0][s][i], 0);
            if (b == 1 && s + 1 < p) after(end[1][s + 1][i], hop);
            if (ready == kNotYet || ready > now) continue;
            if (b == 0 && held[s] >= rooms[s]) continue;
            const auto id = static_cast<std::int64_t>(b * m + i);
            const auto early = static_cast<std::int64_t>(m - i + b * (m + 1));
            const std::tuple<std::int64_t, std::int64_t> key{
                policy == DispatchPolicy::kFifo ? ready : -early, id};
            if (key < best) {
              best = key;
              chosen = {b, i};
            }
          }
        }
        if (chosen.first == 2) continue;
        const auto [b, i] = chosen;
        end[b][s][i] = now + (b == 0 ? forward[s] : backward[s]);
        free_at[s] = end[b][s][i];
        if (b == 0) ++held[s];
        if (b == 1) releases[s].emplace(end[b][s][i], 0);
        lists[s] += " " + std::to_string(s) + (b == 0 ? "F" : "B") + std::to_string(i);
        --left;
      }
    }
    std::string text;
    for (std::size_t s = 0; s < p; ++s) text += "d" + std::to_string(s) + ":" + lists[s] + "\n";
    return text;
  }
};

TEST(Dispatch, FollowsItsRulesOnRandomChains) {
  const unsigned seed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int trial = 0; trial < 400; ++trial) {
    Rules rules{draw(0, 1) == 0 ? DispatchPolicy::kFifo : DispatchPolicy::kPriority,
                draw(1, 7),
                {},
                {},
                {},
                draw(1, 4)};
    for (int s = draw(1, 4); s > 0; --s) {
      rules.rooms.push_back(draw(1, 5));
      rules.forward.push_back(draw(1, 9));
      rules.backward.push_back(draw(1, 15));
    }
    Chain chain(rules.policy, rules.micro_batches, rules.rooms, nanoseconds(rules.hop));
    for (std::size_t s = 0; s < rules.rooms.size(); ++s) {
      for (CostSample& cost : chain.profile.layers[s].costs) {
        cost.forward = nanoseconds(rules.forward[s]) * cost.micro_batch_size;
        cost.backward_input = nanoseconds(0);
        cost.backward_weight = nanoseconds(rules.backward[s]) * cost.micro_batch_size;
        cost.backward_weight_alone = cost.backward_weight;
      }
    }
    EXPECT_EQ(to_text(chain.lists()), rules.run()) << "trial " << trial;
  }
}

TEST(Dispatch, ThePlanOfAPolicyIsSimulatedAsItsLists) {
  Chain chain(DispatchPolicy::kFifo, 6, {3, 2, 1}, nanoseconds(3));
  const Duration makespan = simulate_plan(chain.plan, {chain.profile, chain.cluster}).makespan;
  chain.plan.schedule = ExplicitSchedule{chain.lists().devices};
  EXPECT_EQ(makespan, simulate_plan(chain.plan, {chain.profile, chain.cluster}).makespan);
}

TEST(Dispatch, TheLongestRemainingTimeGoesFirst) {
  // The first pipeline has one stage, on device 0; the second begins there and goes on to device 1.
  Chain chain(DispatchPolicy::kLrtf, 2, {9, 9});
  const Pipeline longer = make_pipeline(2, {LayerId{1}}, {DeviceId{0}, DeviceId{1}},
                                        {MicroBatchId{1}, MicroBatchId{1}});
  const Pipeline shorter = make_pipeline(2, {}, {DeviceId{0}}, {MicroBatchId{0}, MicroBatchId{0}});
  chain.cluster.devices[0].memory_limit = Bytes{1'000'000};
  chain.plan.pipelines = {shorter, longer};
  chain.profile.layers[1].costs[0].backward_weight = nanoseconds(500);
  const std::string lists = to_text(chain.lists());
  // Both pass through layers 0 and 1; if the times are the same, the hop makes the second longer.
  chain.cluster.default_link.latency = nanoseconds(40);
  EXPECT_EQ(to_text(chain.lists()).substr(0, 10), "d0: 1:0F1 ") << to_text(chain.lists());
  EXPECT_EQ(lists.substr(0, 8), "d0: 0F0 ") << lists;
}

std::string refusal(const Chain& chain) {
  try {
    chain.lists();
    return "";
  } catch (const InfeasibleError& error) {
    return error.what();
  }
}

TEST(Dispatch, RefusesWhatItCannotDoInOneSentence) {
  EXPECT_EQ(refusal(Chain(DispatchPolicy::kSteal, 2, {2, 2})),
            "the dispatch policy steal is not interpreted yet");
  Chain stash(DispatchPolicy::kFifo, 2, {2, 2});
  stash.plan.versions = WeightVersions::kStash;
  EXPECT_EQ(refusal(stash), "a dispatch policy goes with the weight versions sync");
  const std::string starved = refusal(Chain(DispatchPolicy::kFifo, 2, {2, 0}));
  EXPECT_NE(starved.find("1F0 on device 1"), std::string::npos) << starved;
}

}  // namespace
}  // namespace frazil
