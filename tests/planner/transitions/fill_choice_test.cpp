// Tests fills that pay and fills that do not, on both sides of the point where they begin to pay.

#include "planner/transitions/fill_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <utility>

namespace frazil {
namespace {

using std::chrono::microseconds;

// A byte takes 1 ns.
constexpr Link kGigabyte{Duration{0}, BytesPerSecond{1'000'000'000}};

// Asks about 100 samples of 1 us each to write or to read, in 10 steps an epoch. A step takes 50
// us, or 20 us if all samples are there.
FillQuestion question_of(Step steps) {
  FillQuestion question;
  question.store = {100, {Bytes{1 << 20}, kGigabyte}, {}};
  question.of_sample = Bytes{1000};
  question.micro_batches = 20;
  question.epoch = 10;
  question.steps = steps;
  question.without = microseconds{50};
  question.fills = microseconds{50};
  question.reads = microseconds{20};
  return question;
}

// Writing takes 100 us, and a step that reads spares 30 us.
TEST(FillChoice, PaysFromTheStepOnThatTheClosedFormSays) {
  for (Step steps = 11; steps < 40; ++steps) {
    SCOPED_TRACE(steps);
    const FillQuestion question = question_of(steps);
    const FillChoice choice = choose_fill(question);
    EXPECT_EQ(choice.pays(), 30 * (steps - 10) > 100);
    if (!choice.pays()) continue;
    EXPECT_EQ(choice.in_memory, 100);
    EXPECT_EQ(choice.on_disk, 0);
    EXPECT_EQ(choice.fill, microseconds{500 + 100});
    EXPECT_EQ(choice.total, microseconds{600 + 20 * (steps - 10)});
    EXPECT_EQ(choice.break_even, 14);
  }
  EXPECT_EQ(explain(question_of(13), choose_fill(question_of(13))),
            "with 1 of 100 samples the 13 steps left take 0.650 ms, without 0.650 ms");
  EXPECT_EQ(explain(question_of(20), choose_fill(question_of(20))),
            "100 of 100 samples pay after 14 of 20 steps and save 0.200 ms");
}

TEST(FillChoice, ThatBreaksEvenExactlyIsDeclined) {
  FillQuestion question = question_of(14);
  question.reads = microseconds{25};
  EXPECT_EQ(price_fill(question, 100, 0).total, price_fill(question, 100, 0).without);
  EXPECT_FALSE(choose_fill(question).pays());
  question.reads = Duration{24'999};
  EXPECT_TRUE(choose_fill(question).pays());
}

TEST(FillChoice, DeclinesWhereNoStepIsLeftToReadIn) {
  const FillChoice choice = choose_fill(question_of(10));
  EXPECT_FALSE(choice.pays());
  EXPECT_EQ(explain(question_of(10), choice), "an epoch of 10 steps fills, and 10 are left");
}

TEST(FillChoice, DeclinesWhereNothingFits) {
  FillQuestion question = question_of(1000);
  question.store.memory.limit = Bytes{999};
  const FillChoice choice = choose_fill(question);
  EXPECT_FALSE(choice.pays());
  EXPECT_EQ(explain(question, choice), "no tier has room for a sample's 1000 bytes");
}

// An epoch with n samples works 500 - 3 n us and reads 10 n us: 386 and 380 with 38, 383 and 390
// with 39.
TEST(FillChoice, KeepsAsManyAsASlowTierReadsBesideTheWork) {
  FillQuestion question = question_of(100'000);
  question.store.memory = {};
  question.store.disk = {Bytes{1 << 20}, {Duration{0}, BytesPerSecond{100'000'000}}};
  const FillChoice choice = choose_fill(question);
  EXPECT_TRUE(choice.pays());
  EXPECT_EQ(choice.in_memory, 0);
  EXPECT_EQ(choice.on_disk, 38);
}

TEST(FillChoice, GoesToTheDiskForWhatDoesNotFitIntoMemory) {
  FillQuestion question = question_of(1000);
  question.store.memory.limit = Bytes{60'500};
  question.store.disk = {Bytes{30'000}, {Duration{100}, BytesPerSecond{500'000'000}}};
  const FillChoice choice = choose_fill(question);
  EXPECT_EQ(choice.in_memory, 60);
  EXPECT_EQ(choice.on_disk, 30);
  EXPECT_EQ(choice.reading, microseconds{60 + 2 * 30 + 2});
}

// A micro-batch that lacks even a few samples still runs the prefix: 25 of the 30 us.
TEST(FillChoice, DeclinesAPartThatSparesTooLittleOfAPrefix) {
  FillQuestion question = question_of(30);
  question.fixed = microseconds{25};
  EXPECT_TRUE(choose_fill(question).pays());
  question.store.memory.limit = Bytes{20'000};
  EXPECT_FALSE(choose_fill(question).pays());
  question.fixed = Duration{0};
  EXPECT_TRUE(choose_fill(question).pays());
}

// A plan that has room for a cache may be slower than the best one without.
TEST(FillChoice, IsHeldAgainstTheBestPlanThatCachesNothing) {
  FillQuestion question = question_of(100);
  question.without = microseconds{30};
  EXPECT_TRUE(choose_fill(question).pays());
  question.without = microseconds{20};
  EXPECT_FALSE(choose_fill(question).pays());
  question.without = microseconds{60};
  EXPECT_EQ(choose_fill(question).break_even, 10) << "the epoch that fills takes no longer";
}

// Returns what question_of(steps) takes on average where each sample falls to one of the caches by
// chance, which may not have it.
double draw_total(int caches, Step steps) {
  constexpr int kDraws = 400;
  constexpr int kSamples = 100;
  std::mt19937_64 random(7);
  double all = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::set<std::pair<std::uint64_t, int>> there;
    double total = 600;  // us: the epoch that fills, and its writing
    for (Step epoch = 0; epoch < steps / 10; ++epoch) {
      int missing = 0;
      for (int sample = 0; sample < kSamples; ++sample) {
        const std::uint64_t cache = random() % static_cast<std::uint64_t>(caches);
        missing += there.insert({cache, sample}).second ? 1 : 0;
      }
      // A step takes 20 us and, of 30 us, the part of the missing; each is written in 1 us.
      if (epoch > 0) total += 200 + 3.0 * missing + missing;
    }
    all += total / kDraws;
  }
  return all;
}

TEST(FillChoice, CountsThatEachOfSeveralCachesHasToSeeEverySample) {
  for (const int caches : {1, 2, 3, 8}) {
    SCOPED_TRACE(caches);
    for (const Step steps : {20, 50, 200}) {
      FillQuestion question = question_of(steps);
      question.caches = caches;
      const FillChoice choice = price_fill(question, 100, 0);
      const double total = draw_total(caches, steps);
      EXPECT_NEAR(static_cast<double>(choice.total.count()) / 1e3, total, 0.02 * total);
    }
  }
  FillQuestion question = question_of(20);
  EXPECT_TRUE(choose_fill(question).pays());
  question.caches = 8;
  EXPECT_FALSE(choose_fill(question).pays());
  question.steps = 1000;
  EXPECT_EQ(explain(question, choose_fill(question)).find("100 of 100 samples in each of 8 caches"),
            0U);
}

// The least total over all numbers of samples in both tiers, in real numbers.
struct Least {
  double total = 0;
  bool found = false;
};

double total_of(const FillQuestion& question, std::int64_t in_memory, std::int64_t on_disk) {
  const auto all = static_cast<double>(question.store.samples);
  const auto epoch = static_cast<double>(question.epoch);
  const auto ns = [](Duration time) { return static_cast<double>(time.count()); };
  double moved = 0;
  const auto move = [&](const CacheTier& tier, std::int64_t samples) {
    if (samples == 0) return;
    const auto bytes = static_cast<double>(samples * question.of_sample.count);
    if (tier.link.bandwidth.count > 0) {
      moved += bytes * 1e9 / static_cast<double>(tier.link.bandwidth.count);
    }
    moved += ns(tier.link.latency) * static_cast<double>(question.micro_batches);
  };
  move(question.store.memory, in_memory);
  move(question.store.disk, on_disk);
  const double kept = static_cast<double>(in_memory + on_disk) / all;
  const double saved = std::max(0.0, ns(question.fills) - ns(question.reads));
  const double fixed = std::min(ns(question.fixed), saved);
  const double step =
      kept == 1 ? ns(question.reads) : ns(question.reads) + fixed + (saved - fixed) * (1 - kept);
  double total = epoch * ns(question.fills) + moved;
  for (Step s = question.epoch; s < question.steps; ++s) total += std::max(step, moved / epoch);
  return total;
}

Least find_least(const FillQuestion& question, bool any_mixture) {
  Least least;
  const std::int64_t all = question.store.samples;
  const std::int64_t memory =
      std::min(all, question.store.memory.limit.count / question.of_sample.count);
  const std::int64_t disk =
      std::min(all, question.store.disk.limit.count / question.of_sample.count);
  for (std::int64_t m = 0; m <= memory; ++m) {
    for (std::int64_t d = 0; d <= disk && m + d <= all; ++d) {
      if (m + d == 0 || (!any_mixture && d > 0 && m > 0 && m < memory)) continue;
      const double total = total_of(question, m, d);
      if (!least.found || total < least.total) least = {total, true};
    }
  }
  return least;
}

FillQuestion draw_question(std::mt19937_64& random) {
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  FillQuestion question;
  const auto tier = [&] {
    return CacheTier{Bytes{below(3) == 0 ? 0 : below(30'000)},
                     {Duration{below(2) * below(3'000)}, BytesPerSecond{1'000'000 * below(900)}}};
  };
  question.store = {1 + below(20), tier(), tier()};
  question.of_sample = Bytes{1 + below(2'000)};
  question.epoch = 1 + below(8);
  question.micro_batches = question.epoch * (1 + below(4));
  question.steps = question.epoch + 1 + below(60);
  question.fills = Duration{below(40'000)};
  question.reads = Duration{below(question.fills.count() + 2'000)};
  question.without = below(2) == 0 ? question.fills : Duration{below(40'000)};
  question.fixed = Duration{below(3) == 0 ? 0 : below(20'000)};
  return question;
}

TEST(FillChoice, IsTheBestOfAllNumbersOfSamples) {
  int fills = 0;
  int both = 0;
  int some = 0;
  for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const FillQuestion question = draw_question(random);
    const FillChoice choice = choose_fill(question);
    const Least least = find_least(question, /*any_mixture=*/false);
    ASSERT_EQ(choice.samples() > 0, least.found);
    if (!least.found) continue;
    // Times are rounded to whole ns: a few of them, and up to 2 ns in each of the question's steps.
    const double slack = 4 + 2 * static_cast<double>(question.steps);
    EXPECT_NEAR(static_cast<double>(choice.total.count()), least.total, slack);
    EXPECT_NEAR(total_of(question, choice.in_memory, choice.on_disk), least.total, slack);
    const double without = static_cast<double>((question.without * question.steps).count());
    if (std::abs(least.total - without) > slack) {
      EXPECT_EQ(choice.pays(), least.total < without);
    }
    const Link& memory = question.store.memory.link;
    const Link& disk = question.store.disk.link;
    const auto pace = [](const Link& link) {
      return link.bandwidth.count == 0 ? 0.0 : 1.0 / static_cast<double>(link.bandwidth.count);
    };
    if (pace(memory) <= pace(disk)) {
      EXPECT_NEAR(find_least(question, /*any_mixture=*/true).total, least.total, 1e-6)
          << "where memory is no slower, no other mixture is better";
    }
    fills += choice.pays() ? 1 : 0;
    both += choice.in_memory > 0 && choice.on_disk > 0 ? 1 : 0;
    some += choice.samples() > 1 && choice.samples() < question.store.samples ? 1 : 0;
  }
  EXPECT_GT(fills, 500);
  EXPECT_GT(both, 100);
  EXPECT_GT(some, 500);
}

}  // namespace
}  // namespace frazil
