#include "planner/order_search/order_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "planner/orders/zero_bubble_orders.h"
#include "profiles/error.h"
#include "tests/planner/support/linear_pipelines.h"
#include "tests/planner/support/order_cases.h"
#include "tests/planner/support/order_reference.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

// The budget stands for one second of one core; bench_order_search prints the measured figure.
constexpr std::int64_t kBudgetOfASecond = 1'500'000;

// Appends all words of m micro-batches that hold at most `room` halves.
void append_words(int m, int room, int halves_at_input, std::array<int, 3> done, Word word,
                  Words& words) {
  const int held = 2 * done[0] - halves_at_input * done[1] - (2 - halves_at_input) * done[2];
  if (held > room) return;
  if (done[2] == m) words.push_back(word);
  for (const Letter letter : {Letter::kF, Letter::kI, Letter::kW}) {
    const std::size_t kind = index_of(letter);
    if (done[kind] == (kind == 0 ? m : done[kind - 1])) continue;
    Word longer = word;
    longer.push_back(letter);
    std::array<int, 3> more = done;
    ++more[kind];
    append_words(m, room, halves_at_input, more, longer, words);
  }
}

struct Times {
  std::int64_t makespan = std::numeric_limits<std::int64_t>::max();
  std::int64_t span = std::numeric_limits<std::int64_t>::max();
};

// Runs each device's word as far as it comes; returns no times if all devices wait.
Times time_words(const std::vector<const Word*>& words, const LinearPipeline& pipeline) {
  constexpr std::int64_t kUnknown = -1;
  const std::size_t stages = words.size();
  std::array<std::array<std::array<std::int64_t, 3>, 3>, 3> end;
  for (auto& stage : end) {
    for (auto& kind : stage) kind.fill(kUnknown);
  }
  std::array<std::array<std::size_t, 3>, 3> done{};
  std::array<std::size_t, 3> next{};
  std::array<std::int64_t, 3> free{};
  std::array<std::int64_t, 3> first{};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      for (; next[s] < words[s]->size(); ++next[s], moved = true) {
        const std::size_t kind = index_of((*words[s])[next[s]]);
        const std::size_t i = done[s][kind];
        std::int64_t start = free[s];
        const bool waits = kind == 0 ? s > 0 : kind == 1 && s + 1 < stages;
        if (waits) {
          const std::size_t from = kind == 0 ? s - 1 : s + 1;
          if (end[from][kind][i] == kUnknown) break;
          const Duration hop = kind == 0 ? pipeline.down[s - 1] : pipeline.up[s];
          start = std::max(start, end[from][kind][i] + hop.count());
        }
        if (next[s] == 0) first[s] = start;
        const StageTimes& times = pipeline.times[s];
        const Duration length = kind == 0   ? times.forward
                                : kind == 1 ? times.backward_input
                                            : times.backward_weight;
        free[s] = end[s][kind][i] = start + length.count();
        ++done[s][kind];
      }
    }
  }
  Times times{0, 0};
  for (std::size_t s = 0; s < stages; ++s) {
    if (next[s] < words[s]->size()) return {};
    times.makespan = std::max(times.makespan, free[s]);
    times.span = std::max(times.span, free[s] - first[s]);
  }
  return times;
}

Times find_least(const LinearPipeline& pipeline) {
  const std::size_t stages = pipeline.times.size();
  const int at_input = pipeline.release == ActivationRelease::kHalfAtInput ? 1 : 0;
  std::vector<Words> words(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    append_words(pipeline.micro_batches, 2 * pipeline.in_flight[s], at_input, {}, {}, words[s]);
  }
  Times least;
  std::vector<std::size_t> chosen(stages, 0);
  while (chosen.back() < words.back().size()) {
    std::vector<const Word*> order;
    for (std::size_t s = 0; s < stages; ++s) order.push_back(&words[s][chosen[s]]);
    const Times times = time_words(order, pipeline);
    least.makespan = std::min(least.makespan, times.makespan);
    least.span = std::min(least.span, times.span);
    for (std::size_t s = 0; s < stages; ++s) {
      if (++chosen[s] < words[s].size() || s + 1 == stages) break;
      chosen[s] = 0;
    }
  }
  return least;
}

TEST(OrderSearch, FindsTheOptimumOfEverySmallPipeline) {
  int proven = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(draws(600)); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LinearPipeline pipeline = draw_linear_pipeline(random, 3, 3);
    const Times least = find_least(pipeline);
    for (const Objective objective : {Objective::kMakespan, Objective::kSpan}) {
      const SearchedOrder found =
          search_order(pipeline, {.objective = objective, .budget = 40'000, .seed = seed});
      const std::int64_t expected = objective == Objective::kMakespan ? least.makespan : least.span;
      ASSERT_EQ(found.time(objective), Duration{expected});
      ASSERT_LE(found.bound(objective).time, Duration{expected});
      if (found.bound(objective).time == Duration{expected}) ++proven;
    }
  }
  EXPECT_GE(proven, draws(800));
}

TEST(OrderSearch, NeverHoldsMoreThanFitsAndTimesAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LinearPipeline pipeline = draw_equal_hops(random, 6, 12);
    const Objective objective = seed % 2 == 0 ? Objective::kMakespan : Objective::kSpan;
    const SearchedOrder found =
        search_order(pipeline, {.objective = objective, .budget = 5'000, .seed = seed});
    const ReferenceTimes times =
        time_orders(found.orders, problem_of(pipeline), Placement::kLinear);
    EXPECT_EQ(found.makespan, Duration{times.makespan});
    EXPECT_EQ(found.span, Duration{times.span});
    EXPECT_GE(found.time(objective), found.bound(objective).time);
    EXPECT_LE(found.time(objective), found.first_time);
    const bool halves = pipeline.release == ActivationRelease::kHalfAtInput;
    for (const int held : halves ? times.peak_half_chunks : times.peak_chunks) {
      EXPECT_LE(held, (halves ? 2 : 1) * pipeline.in_flight.front());
    }
  }
}

TEST(OrderSearch, IsNeverWorseThanTheZeroBubbleHeuristic) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const LinearPipeline pipeline =
        draw_unequal_stages(seed, make_times(1000, 1000, 700), Duration{30});
    const OrderProblem problem = problem_of(pipeline);
    const ReferenceTimes heuristic =
        time_orders(make_zero_bubble_order(problem, pipeline.release), problem, Placement::kLinear);
    const Duration makespan = search_order(pipeline, {.budget = 10'000}).makespan;
    const Duration span =
        search_order(pipeline, {.objective = Objective::kSpan, .budget = 10'000}).span;
    EXPECT_LE(makespan, Duration{heuristic.makespan});
    EXPECT_LE(span, Duration{heuristic.span});
    if (makespan < Duration{heuristic.makespan}) ++better;
  }
  EXPECT_GE(better, 30);
}

TEST(OrderSearch, AnswersTheSameQuestionTheSameWay) {
  const LinearPipeline pipeline = draw_unequal_stages(5, make_times(1000, 1000, 500), Duration{31});
  const OrderSearchOptions options{.budget = 30'000, .seed = 3};
  const SearchedOrder first = search_order(pipeline, options);
  const SearchedOrder second = search_order(pipeline, options);
  EXPECT_EQ(first.orders, second.orders);
  EXPECT_EQ(first.moves_tried, second.moves_tried);
}

TEST(OrderSearch, FindsNothingWorseWithALargerBudgetOfWholeRounds) {
  const LinearPipeline pipeline = draw_unequal_stages(7, make_times(1000, 1000, 500), Duration{31});
  Duration before = Duration::max();
  for (const std::int64_t budget : {0, 1'000, 100'000}) {
    const SearchedOrder found = search_order(pipeline, {.budget = budget});
    EXPECT_LE(found.moves_tried, budget);
    EXPECT_LE(found.makespan, found.first_time);
    EXPECT_LE(found.makespan, before);
    before = budget == 0 ? found.makespan : before;
  }
}

TEST(OrderSearch, ReachesThePublishedTimesOfUnequalStagesAndProvesThem) {
  for (const auto& [name, pipeline, span, makespan] : published_stages()) {
    SCOPED_TRACE(name);
    const SearchedOrder shortest = search_order(pipeline, {.budget = kBudgetOfASecond});
    EXPECT_EQ(shortest.makespan, makespan);
    EXPECT_EQ(shortest.makespan, shortest.bounds.makespan.time);
    const SearchedOrder tightest =
        search_order(pipeline, {.objective = Objective::kSpan, .budget = kBudgetOfASecond});
    EXPECT_EQ(tightest.span, span);
    EXPECT_EQ(tightest.span, tightest.bounds.span.time);
  }
}

}  // namespace
}  // namespace frazil
