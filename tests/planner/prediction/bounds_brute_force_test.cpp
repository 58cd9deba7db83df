#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/prediction/linear_bounds.h"
#include "tests/planner/support/order_reference.h"

namespace frazil {
namespace {

// The least times that any order of work reaches on p <= 3 devices with a few micro-batches.
//
// It is enough to look at orders in which each kind of work runs in the order 0 .. m-1 on each
// device (FIFO). Take any legal timing and number the micro-batches anew, kind by kind and device
// by device, in the order of their starts. What a device does when, and how much it holds, stays.
// Where every work x waits for a work x of another kind or device, the i-th of the first starts
// after the i-th of the second ended, because order statistics keep x_i >= y_i. So dependencies
// hold too. OrdersOfNumberedMicroBatchesReachNoLess looks at all orders and finds the same.

constexpr int kMostStages = 3;
constexpr int kMostMicroBatches = 5;
constexpr int kLongAgo = -1'000'000;

enum Kind : int { kF, kI, kW };  // a fused backward is an I as long as both, without a W

// A device's kinds of work in turn and the most that it holds: micro-batches, from F to W or B; or
// halves, of which one is released at I and one at W.
struct DeviceWord {
  std::vector<int> kinds;
  int most = 0;
  int most_halves = 0;
};

void append_words(int m, bool split, std::array<int, 3> done, DeviceWord word,
                  std::vector<DeviceWord>& words) {
  const int held = done[kF] - done[split ? kW : kI];
  word.most = std::max(word.most, held);
  word.most_halves =
      std::max(word.most_halves, split ? 2 * done[kF] - done[kI] - done[kW] : 2 * held);
  if (done[split ? kW : kI] == m) words.push_back(word);
  for (int kind = kF; kind <= (split ? kW : kI); ++kind) {
    const auto at = static_cast<std::size_t>(kind);
    if (done[at] == (kind == kF ? m : done[at - 1])) continue;
    DeviceWord longer = word;
    longer.kinds.push_back(kind);
    ++done[at];
    append_words(m, split, done, longer, words);
    --done[at];
  }
}

struct MicroBatchWork {
  int stage, kind, micro_batch;
};

// One word per device, without a deadlock: all work in an order that every device can follow.
struct Order {
  std::vector<MicroBatchWork> sequence;
  std::array<int, kMostStages> most{}, most_halves{};
};

// Runs the words side by side; an empty sequence is a deadlock.
std::vector<MicroBatchWork> interleave(const std::vector<const DeviceWord*>& words) {
  const int stages = static_cast<int>(words.size());
  std::vector<std::size_t> next(words.size());
  std::vector<std::array<int, 3>> done(words.size() + 2);  // a stage on either side that waits not
  done.front().fill(kMostMicroBatches);
  done.back().fill(kMostMicroBatches);
  std::vector<MicroBatchWork> sequence;
  std::size_t size = 0;
  for (const DeviceWord* word : words) size += word->kinds.size();
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      const auto at = static_cast<std::size_t>(s);
      while (next[at] < words[at]->kinds.size()) {
        const int kind = words[at]->kinds[next[at]];
        int& count = done[at + 1][static_cast<std::size_t>(kind)];
        if (kind == kF && count >= done[at][kF]) break;
        if (kind == kI && count >= done[at + 2][kI]) break;
        sequence.push_back({s, kind, count++});
        ++next[at];
        moved = true;
      }
    }
  }
  if (sequence.size() < size) sequence.clear();
  return sequence;
}

std::vector<Order> list_orders(int stages, int m, bool split) {
  std::vector<DeviceWord> words;
  append_words(m, split, {}, {}, words);
  std::vector<Order> orders;
  std::vector<std::size_t> chosen(static_cast<std::size_t>(stages), 0);
  while (chosen.back() < words.size()) {
    std::vector<const DeviceWord*> of_stage;
    Order order;
    for (std::size_t s = 0; s < chosen.size(); ++s) {
      of_stage.push_back(&words[chosen[s]]);
      order.most[s] = words[chosen[s]].most;
      order.most_halves[s] = words[chosen[s]].most_halves;
    }
    order.sequence = interleave(of_stage);
    if (!order.sequence.empty()) orders.push_back(order);
    for (std::size_t s = 0; s < chosen.size(); ++s) {
      if (++chosen[s] < words.size() || s + 1 == chosen.size()) break;
      chosen[s] = 0;
    }
  }
  return orders;
}

const std::vector<Order>& orders_of(int stages, int m, bool split) {
  static std::map<std::tuple<int, int, bool>, std::vector<Order>> known;
  auto [orders, added] = known.try_emplace({stages, m, split});
  if (added) orders->second = list_orders(stages, m, split);
  return orders->second;
}

struct Instance {
  int stages = 1;
  int micro_batches = 1;
  bool split = true;
  bool halves = false;
  std::array<std::array<int, 3>, kMostStages> time{};  // by stage and Kind
  std::array<int, kMostStages> down{}, up{};           // by boundary
  std::array<int, kMostStages> in_flight{};
};

bool fits(const Order& order, const Instance& x) {
  for (std::size_t s = 0; s < static_cast<std::size_t>(x.stages); ++s) {
    if (x.halves ? order.most_halves[s] > 2 * x.in_flight[s] : order.most[s] > x.in_flight[s]) {
      return false;
    }
  }
  return true;
}

// Returns the end of the last work of each device if only the first F of `from` and its
// consequences take place: the longest paths. From stage 0 these are the times of the order.
std::array<int, kMostStages> last_ends(const Order& order, const Instance& x, int from) {
  std::array<int, kMostStages> free;
  free.fill(kLongAgo);
  free[static_cast<std::size_t>(from)] = 0;
  std::array<std::array<std::array<int, kMostMicroBatches>, 3>, kMostStages> end{};
  for (const auto [stage, kind, micro_batch] : order.sequence) {
    const auto s = static_cast<std::size_t>(stage);
    const auto i = static_cast<std::size_t>(micro_batch);
    int start = free[s];
    if (kind == kF && stage > 0) start = std::max(start, end[s - 1][kF][i] + x.down[s - 1]);
    if (kind == kI && stage + 1 < x.stages) start = std::max(start, end[s + 1][kI][i] + x.up[s]);
    if (kind == kF && stage == from && micro_batch == 0) start = 0;
    free[s] = start + x.time[s][static_cast<std::size_t>(kind)];
    end[s][static_cast<std::size_t>(kind)][i] = free[s];
  }
  return free;
}

struct Least {
  int makespan = -kLongAgo;
  int span = -kLongAgo;  // of the device with the longest
};

int divide_rounding_up(int a, int b) { return (a + b - 1) / b; }

// A device may start later than it could. If path[s][t] goes from the first start of s to the last
// end of t, spans of at most S are possible iff no cycle of paths, each less S, is positive.
int least_span(const std::array<std::array<int, kMostStages>, kMostStages>& path, int stages) {
  const auto& p = path;
  int span = p[0][0];
  if (stages > 1) span = std::max({span, p[1][1], divide_rounding_up(p[0][1] + p[1][0], 2)});
  if (stages > 2) {
    span = std::max({span, p[2][2], divide_rounding_up(p[0][2] + p[2][0], 2),
                     divide_rounding_up(p[1][2] + p[2][1], 2),
                     divide_rounding_up(p[0][1] + p[1][2] + p[2][0], 3),
                     divide_rounding_up(p[0][2] + p[2][1] + p[1][0], 3)});
  }
  return span;
}

Least find_least(const Instance& x) {
  Least least;
  for (const Order& order : orders_of(x.stages, x.micro_batches, x.split)) {
    if (!fits(order, x)) continue;
    std::array<std::array<int, kMostStages>, kMostStages> path{};
    for (int from = 0; from < x.stages; ++from) {
      path[static_cast<std::size_t>(from)] = last_ends(order, x, from);
    }
    const auto ends = path[0].begin();
    least.makespan = std::min(least.makespan, *std::max_element(ends, ends + x.stages));
    least.span = std::min(least.span, least_span(path, x.stages));
  }
  return least;
}

LinearPipeline as_pipeline(const Instance& x) {
  LinearPipeline pipeline;
  pipeline.micro_batches = x.micro_batches;
  pipeline.splits_backward = x.split;
  if (x.halves) pipeline.release = ActivationRelease::kHalfAtInput;
  for (std::size_t s = 0; s < static_cast<std::size_t>(x.stages); ++s) {
    const auto [forward, input, weight] = x.time[s];
    pipeline.times.push_back({Duration{forward}, Duration{input}, Duration{weight}});
    pipeline.in_flight.push_back(x.in_flight[s]);
    if (s == 0) continue;
    pipeline.down.emplace_back(x.down[s - 1]);
    pipeline.up.emplace_back(x.up[s - 1]);
  }
  return pipeline;
}

int draw_int(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
}

struct Size {
  int stages, micro_batches;
};

Instance make_instance(std::mt19937_64& random, Size size, bool split) {
  Instance x;
  x.stages = size.stages;
  x.micro_batches = size.micro_batches;
  x.split = split;
  x.halves = split && draw_int(random, 0, 3) == 0;
  const bool equal_hops = draw_int(random, 0, 1) == 0;
  const int longest_hop = std::array{0, 3, 20}[random() % 3];
  for (std::size_t s = 0; s < kMostStages; ++s) {
    for (int& time : x.time[s]) time = draw_int(random, draw_int(random, 0, 9) == 0 ? 0 : 1, 9);
    x.down[s] = equal_hops && s > 0 ? x.down[0] : draw_int(random, 0, longest_hop);
    x.up[s] = equal_hops ? x.down[0] : draw_int(random, 0, longest_hop);
    x.in_flight[s] = draw_int(random, 1, x.micro_batches + 1);
  }
  return x;
}

// Draws sizes up to `most`; three of four instances split their backwards.
Instance make_instance(std::mt19937_64& random, Size most) {
  const Size size{draw_int(random, 1, most.stages), draw_int(random, 1, most.micro_batches)};
  return make_instance(random, size, draw_int(random, 0, 3) > 0);
}

Least find_least_of(Instance x) {
  for (auto& time : x.time) {
    if (!x.split) time[kI] += time[kW];
  }
  return find_least(x);
}

struct Counts {
  int makespan = 0;
  int span = 0;
};

// Counts how often a bound is the least possible time, by name and for the larger of both.
struct Tightness {
  int instances = 0;
  std::map<std::string, Counts> tight;

  // Returns percentages, rounded down.
  std::pair<int, int> of(const std::string& name) const {
    const Counts& counts = tight.at(name);
    return {100 * counts.makespan / instances, 100 * counts.span / instances};
  }
};

void expect_bounds_below_the_least(const Instance& x, Tightness& tightness) {
  const Least least = find_least_of(x);
  Least larger{0, 0};
  ++tightness.instances;
  const auto count = [&](const std::string& name, Least bound) {
    Counts& counts = tightness.tight[name];
    counts.makespan += bound.makespan == least.makespan ? 1 : 0;
    counts.span += bound.span == least.span ? 1 : 0;
  };
  for (const LinearBound& bound : find_linear_bounds(as_pipeline(x))) {
    const Least found{static_cast<int>(bound.makespan.count()),
                      static_cast<int>(bound.span.count())};
    EXPECT_LE(found.makespan, least.makespan) << bound.name;
    EXPECT_LE(found.span, least.span) << bound.name;
    larger = {std::max(larger.makespan, found.makespan), std::max(larger.span, found.span)};
    count(std::string(bound.name), found);
  }
  count("larger", larger);
}

// Takes the seeds first .. first + instances - 1.
template <class Make>
void expect_bounds_below_the_least(std::uint64_t first, int instances, Make make,
                                   Tightness& tightness) {
  for (int i = 0; i < instances && !testing::Test::HasFailure(); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    expect_bounds_below_the_least(make(random), tightness);
  }
}

const std::string kDevice = "device-warm-up-cool-down";
const std::string kChain = "gradient-chain";
const std::string kLarger = "larger";
using Percents = std::pair<int, int>;  // of makespans, of spans

TEST(BoundsBruteForce, NoOrderTakesLessThanItsBounds) {
  Tightness tightness;
  const auto run = [&](std::uint64_t first, int instances, Size most) {
    const auto make = [&](std::mt19937_64& random) { return make_instance(random, most); };
    expect_bounds_below_the_least(first, instances, make, tightness);
  };
  run(0, 30'000, {2, 2});
  run(100'000, 10'000, {3, 2});
  run(200'000, 10'000, {2, 3});
  run(300'000, 10'000, {3, 3});
  EXPECT_EQ(tightness.instances, 60'000);
  EXPECT_EQ(tightness.of(kDevice), Percents(88, 87));
  EXPECT_EQ(tightness.of(kChain), Percents(79, 81));
  EXPECT_EQ(tightness.of(kLarger), Percents(99, 99));
}

TEST(BoundsBruteForce, NoOrderOfThreeMicroBatchesOverThreeStagesTakesLessThanItsBounds) {
  const auto run = [](std::uint64_t first, int instances, bool split) {
    Tightness tightness;
    const auto make = [&](std::mt19937_64& random) { return make_instance(random, {3, 3}, split); };
    expect_bounds_below_the_least(first, instances, make, tightness);
    return tightness;
  };
  const Tightness split = run(400'000, 1'000, true);
  EXPECT_EQ(split.of(kDevice), Percents(55, 51));
  EXPECT_EQ(split.of(kChain), Percents(70, 76));
  EXPECT_EQ(split.of(kLarger), Percents(85, 88));
  const Tightness fused = run(400'000, 5'000, false);
  EXPECT_EQ(fused.of(kDevice), Percents(47, 47));
  EXPECT_EQ(fused.of(kChain), Percents(96, 96));
  EXPECT_EQ(fused.of(kLarger), Percents(96, 96));
}

// Micro-batches wait for each other several times: floor((m-1)/K) is up to 4.
TEST(BoundsBruteForce, NoOrderOfMoreMicroBatchesTakesLessThanItsBounds) {
  Tightness tightness;
  const auto run = [&](std::uint64_t first, int instances, Size size, bool split) {
    const auto make = [&](std::mt19937_64& random) { return make_instance(random, size, split); };
    expect_bounds_below_the_least(first, instances, make, tightness);
  };
  run(500'000, 100, {2, 4}, true);
  run(600'000, 1'000, {3, 4}, false);
  run(700'000, 500, {3, 5}, false);
  EXPECT_EQ(tightness.of(kLarger), Percents(85, 85));
}

// Appends every order of one device, in which micro-batches overtake each other at will: each F
// stands before its I (or B), and each I before its W.
void append_orders(const Instance& x, int stage, std::vector<int> done, DeviceOrder order,
                   DeviceOrders& orders) {
  const std::array kinds{ActionKind::kForward,
                         x.split ? ActionKind::kBackwardInput : ActionKind::kBackward,
                         ActionKind::kBackwardWeight};
  bool whole = true;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] == (x.split ? 3 : 2)) continue;
    whole = false;
    order.push_back(
        {kinds[static_cast<std::size_t>(done[i])], false, 0, stage, static_cast<std::int32_t>(i)});
    ++done[i];
    append_orders(x, stage, done, order, orders);
    --done[i];
    order.pop_back();
  }
  if (whole) orders.push_back(order);
}

// Calls `visit` with every combination of one order per device.
template <class Visit>
void for_each_combination(const std::vector<DeviceOrders>& choices, DeviceOrders& chosen,
                          Visit visit) {
  if (chosen.size() == choices.size()) {
    visit(chosen);
    return;
  }
  for (const DeviceOrder& order : choices[chosen.size()]) {
    chosen.push_back(order);
    for_each_combination(choices, chosen, visit);
    chosen.pop_back();
  }
}

bool fits(const ReferenceTimes& times, const Instance& x) {
  for (std::size_t s = 0; s < times.peak_chunks.size(); ++s) {
    const int limit = x.in_flight[s];
    if (x.halves ? times.peak_half_chunks[s] > 2 * limit : times.peak_chunks[s] > limit) {
      return false;
    }
  }
  return true;
}

// Times every order as early as it allows with the independent reference. Hops must be equal.
Least find_least_of_all_orders(const Instance& x) {
  OrderProblem problem;
  problem.devices = x.stages;
  problem.micro_batches = x.micro_batches;
  problem.times = as_pipeline(x).times;
  problem.hop = Duration{x.down[0]};
  std::vector<DeviceOrders> choices(static_cast<std::size_t>(x.stages));
  for (std::size_t s = 0; s < choices.size(); ++s) {
    const std::vector<int> none(static_cast<std::size_t>(x.micro_batches), 0);
    append_orders(x, static_cast<int>(s), none, {}, choices[s]);
  }
  Least least;
  DeviceOrders chosen;
  for_each_combination(choices, chosen, [&](const DeviceOrders& orders) {
    try {
      const ReferenceTimes times = time_orders(orders, problem, Placement::kLinear);
      if (!fits(times, x)) return;
      least.makespan = std::min(least.makespan, static_cast<int>(times.makespan));
      least.span = std::min(least.span, static_cast<int>(times.span));
    } catch (const std::runtime_error&) {  // a deadlock
    }
  });
  return least;
}

TEST(BoundsBruteForce, OrdersOfNumberedMicroBatchesReachNoLess) {
  int same_span = 0;
  for (std::uint64_t seed = 800'000; seed < 800'200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const bool split = draw_int(random, 0, 1) == 0;
    const Size size = split ? Size{2, 2} : std::array{Size{3, 2}, Size{2, 3}}[random() % 2];
    Instance x = make_instance(random, size, split);
    x.down.fill(x.down[0]);
    x.up = x.down;
    const Least least = find_least_of(x);
    const Least numbered = find_least_of_all_orders(x);
    EXPECT_EQ(numbered.makespan, least.makespan);
    EXPECT_GE(numbered.span, least.span);
    same_span += numbered.span == least.span ? 1 : 0;
  }
  EXPECT_EQ(same_span, 199);  // once it is shorter where a device starts later than it could
}

}  // namespace
}  // namespace frazil
