// Measures the search of orders for unequal stages: how many moves a CPU second affords, what the
// search finds on published stages, and how far above the bound it ends on stages drawn at random.
//   bench_order_search [drawn, default 200] [moves, default those of a second]
//                      [of the drawn, how many are searched 18 times longer too, default 12]
//                      [first seed, default 1] [threads, default 1]
// Longer searches of all 200 take at most 200 x 18 CPU seconds for each of the two means of the
// stage times; searches that reach their bound end earlier.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/order_search/order_timing.h"
#include "planner/order_search/order_words.h"
#include "planner/orders/zero_bubble_orders.h"
#include "profiles/error.h"
#include "tests/planner/support/linear_pipelines.h"

namespace frazil {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
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

// The highest allowed values, in percent.
struct Bars {
  double median = std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();  // 95th percentile
  double most = std::numeric_limits<double>::infinity();
};

std::string verdict(bool met) { return met ? "met" : "MISSED"; }

void print_quantiles(const std::string& what, std::vector<double> percents,
                     const std::optional<Bars>& bars = std::nullopt) {
  if (percents.empty()) return;
  std::sort(percents.begin(), percents.end());
  const auto quantile = [&](std::size_t percent) {
    return percents[std::min(percents.size() - 1, percents.size() * percent / 100)];
  };
  fmt::print("  {:<52} median {:.2f} %, 95th percentile {:.2f} %, most {:.2f} %{}\n", what,
             quantile(50), quantile(95), percents.back(),
             !bars ? ""
                   : ": " + verdict(quantile(50) <= bars->median && quantile(95) <= bars->high &&
                                    percents.back() <= bars->most));
}

// The results of searching one drawn pipeline.
struct Record {
  double makespan_above = 0;  // makespan above its bound, percent
  double span_above = 0;
  // The span above the span that 18 times as many moves find, percent; none: not compared.
  std::optional<double> above_longer;
  bool worse = false;  // worse than the zero-bubble heuristic in makespan or span
  Spent spent;
};

OrderTiming time_heuristic(const LinearPipeline& pipeline) {
  OrderTiming timing(pipeline, Objective::kMakespan);
  const bool legal =
      timing.assign(to_words(make_zero_bubble_order(problem_of(pipeline), pipeline.release)));
  ENSURE(legal, "the heuristic's order fits its own memory");
  return timing;
}

Record search_one(const LinearPipeline& pipeline, std::int64_t moves, bool compares) {
  Record record;
  const SearchedOrder shortest = search(pipeline, Objective::kMakespan, moves, record.spent);
  const SearchedOrder tightest = search(pipeline, Objective::kSpan, moves, record.spent);
  const OrderTiming heuristic = time_heuristic(pipeline);
  record.makespan_above = percent_above(shortest.makespan, shortest.bounds.makespan.time);
  record.span_above = percent_above(tightest.span, tightest.bounds.span.time);
  record.worse = shortest.makespan > heuristic.makespan() || tightest.span > heuristic.span();
  if (compares) {
    Spent more;
    const SearchedOrder best = search(pipeline, Objective::kSpan, 18 * moves, more);
    record.above_longer = percent_above(tightest.span, best.span);
  }
  return record;
}

struct Question {
  int drawn = 200;
  int compared = 12;
  int threads = 1;
  std::uint64_t first_seed = 1;
  std::int64_t moves = OrderSearchOptions{}.budget;
};

// Searches all drawn pipelines; the records are in the order of the seeds, whichever thread made
// them.
std::vector<Record> search_all(const Question& question, StageTimes mean, Duration hop) {
  std::vector<Record> records(static_cast<std::size_t>(question.drawn));
  std::atomic<int> next = 0;
  std::atomic<int> done = 0;
  const auto work = [&] {
    for (int i = next++; i < question.drawn; i = next++) {
      const std::uint64_t seed = question.first_seed + static_cast<std::uint64_t>(i);
      records[static_cast<std::size_t>(i)] =
          search_one(draw_unequal_stages(seed, mean, hop), question.moves, i < question.compared);
      fmt::print(stderr, "\r  {} of {} searched", ++done, question.drawn);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < question.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  fmt::print(stderr, "\n");
  return records;
}

void search_drawn(const std::string& name, StageTimes mean, Duration hop,
                  const Question& question) {
  fmt::print("{}: {} times 8 stages of +-30 %, 16 micro-batches, K = 8, seeds from {}\n", name,
             question.drawn, question.first_seed);
  Spent spent;
  std::vector<double> makespans, spans, longer;
  int worse = 0;
  for (const Record& record : search_all(question, mean, hop)) {
    makespans.push_back(record.makespan_above);
    spans.push_back(record.span_above);
    if (record.above_longer) longer.push_back(*record.above_longer);
    worse += record.worse ? 1 : 0;
    spent.moves += record.spent.moves;
    spent.seconds += record.spent.seconds;
    spent.longest = std::max(spent.longest, record.spent.longest);
  }
  print_quantiles("makespan above its bound (bars 2, 5 %)", std::move(makespans),
                  Bars{.median = 2, .high = 5});
  print_quantiles("span above its bound", std::move(spans));
  print_quantiles(fmt::format("span above that of 18 times the moves, {} (bar 1 %)", longer.size()),
                  longer, Bars{.most = 1});
  fmt::print("  worse than the zero-bubble heuristic: {} (bar 0): {}\n", worse,
             verdict(worse == 0));
  print(spent);
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, std::int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  Question question;
  question.drawn = static_cast<int>(argument(1, question.drawn));
  question.moves = argument(2, question.moves);
  question.compared = static_cast<int>(argument(3, question.compared));
  question.first_seed = static_cast<std::uint64_t>(argument(4, 1));
  question.threads = static_cast<int>(argument(5, question.threads));
  search_published(question.moves);
  const auto times = [](int f, int i, int w) {
    return StageTimes{Duration{f}, Duration{i}, Duration{w}};
  };
  search_drawn("F = I = W, no hop", times(1'000'000, 1'000'000, 1'000'000), Duration{0}, question);
  search_drawn("times of a GPT, hops of 31", times(1'855'000, 1'807'000, 928'000), Duration{31'000},
               question);
  return 0;
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) { return frazil::run(argc, argv); }
