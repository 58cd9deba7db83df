// The search of orders for unequal stages: how many moves a CPU second affords, what it finds on
// published stages, and how far above the bound it ends on stages drawn at random.
//   bench_order_search [drawn, default 200] [moves, default those of a second]
//                      [of the drawn, how many are searched 18 times longer for the least span]

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "planner/order_search.h"
#include "planner/zero_bubble_orders.h"
#include "tests/planner/linear_pipelines.h"

namespace frazil {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double percent_above(Duration time, Duration least) {
  return 100 * (static_cast<double>(time.count()) / static_cast<double>(least.count()) - 1);
}

struct Spent {
  std::int64_t moves = 0;
  double seconds = 0;
  double longest = 0;
};

SearchedOrder search(const LinearPipeline& pipeline, Objective objective, std::int64_t moves,
                     Spent& spent) {
  const double begin = cpu_seconds();
  SearchedOrder found = search_order(pipeline, {.objective = objective, .budget = moves});
  const double seconds = cpu_seconds() - begin;
  spent.moves += found.moves_tried;
  spent.seconds += seconds;
  spent.longest = std::max(spent.longest, seconds);
  return found;
}

void print(const Spent& spent) {
  fmt::print("  {} moves in {:.1f} CPU s, {:.2f} million/s; the longest search {:.2f} s\n",
             spent.moves, spent.seconds, static_cast<double>(spent.moves) / spent.seconds / 1e6,
             spent.longest);
}

void search_published(std::int64_t moves) {
  fmt::print("{:<26} {:<9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "published stages", "least", "seeds",
             "found", "published", "bound", "moves");
  Spent spent;
  for (const auto& [name, pipeline, span, makespan] : published_stages()) {
    for (const Objective objective : {Objective::kSpan, Objective::kMakespan}) {
      const SearchedOrder found = search(pipeline, objective, moves, spent);
      fmt::print("{:<26} {:<9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", name, objective_name(objective),
                 found.first_time.count(), found.time(objective).count(),
                 (objective == Objective::kSpan ? span : makespan).count(),
                 found.bound(objective).time.count(), found.moves_tried);
    }
  }
  print(spent);
}

void print_quantiles(const std::string& what, std::vector<double> percents) {
  if (percents.empty()) return;
  std::sort(percents.begin(), percents.end());
  const auto quantile = [&](std::size_t percent) {
    return percents[std::min(percents.size() - 1, percents.size() * percent / 100)];
  };
  fmt::print("  {:<44} median {:.2f} %, 95th percentile {:.2f} %, most {:.2f} %\n", what,
             quantile(50), quantile(95), percents.back());
}

void search_drawn(const std::string& name, StageTimes mean, Duration hop, int drawn, int compared,
                  std::int64_t moves) {
  fmt::print("{}: {} times 8 stages of +-30 %, 16 micro-batches, K = 8\n", name, drawn);
  Spent spent;
  std::vector<double> makespans, spans, longer;
  int worse = 0;
  for (int i = 1; i <= drawn; ++i) {
    const LinearPipeline pipeline = draw_unequal_stages(static_cast<std::uint64_t>(i), mean, hop);
    const SearchedOrder shortest = search(pipeline, Objective::kMakespan, moves, spent);
    const SearchedOrder tightest = search(pipeline, Objective::kSpan, moves, spent);
    makespans.push_back(percent_above(shortest.makespan, shortest.bounds.makespan.time));
    spans.push_back(percent_above(tightest.span, tightest.bounds.span.time));
    if (shortest.makespan > shortest.first_time || tightest.span > tightest.first_time) ++worse;
    if (i > compared) continue;
    Spent more;
    const SearchedOrder best = search(pipeline, Objective::kSpan, 18 * moves, more);
    longer.push_back(percent_above(tightest.span, best.span));
  }
  print_quantiles("makespan above its bound", std::move(makespans));
  print_quantiles("span above its bound", std::move(spans));
  print_quantiles("span above that of 18 times as many moves", std::move(longer));
  fmt::print("  worse than a seed, the zero-bubble heuristic among them: {}\n", worse);
  print(spent);
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  const int drawn = static_cast<int>(argument(1, 200));
  const std::int64_t moves = argument(2, OrderSearchOptions{}.budget);
  const int compared = static_cast<int>(argument(3, 12));
  search_published(moves);
  const auto times = [](int f, int i, int w) {
    return StageTimes{Duration{f}, Duration{i}, Duration{w}};
  };
  search_drawn("F = I = W, no hop", times(1'000'000, 1'000'000, 1'000'000), Duration{0}, drawn,
               compared, moves);
  search_drawn("times of a GPT, hops of 31", times(1'855'000, 1'807'000, 928'000), Duration{31'000},
               drawn, compared, moves);
  return 0;
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run(argc, argv); }
