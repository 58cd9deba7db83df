// Compares the step time that follows from the order of work alone with the simulation of the whole
// plan.

#include <gtest/gtest.h>

#include <random>

#include "planner/search/best_first.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

// Counts over every family of the menu: `compared` bounds, of which `equal` are what the simulation
// says.
struct Comparison {
  int compared = 0;
  int equal = 0;
  int too_large = 0;
};

void compare(const SearchQuestion& question, Comparison& comparison) {
  OrderTable orders;
  Evaluator evaluator({question.profile, question.cluster}, question.options, orders);
  for (const Shape& shape : list_shapes(evaluator)) {
    if (std::holds_alternative<Rejection>(evaluator.bound(shape))) continue;
    const auto bound = evaluator.bound_by_order(shape);
    if (!bound) continue;
    const Candidate whole = evaluator.judge_whole(shape);
    const std::string name = summarize(whole.plan);
    if (const auto* rejection = std::get_if<Rejection>(&*bound)) {
      ++comparison.too_large;
      ASSERT_TRUE(whole.infeasible.has_value()) << name;
      EXPECT_LE(rejection->needed - rejection->available,
                whole.infeasible->needed - whole.infeasible->available)
          << name;
      continue;
    }
    if (whole.infeasible) continue;
    ++comparison.compared;
    const NamedBound& own = std::get<NamedBound>(*bound);
    ASSERT_LE(own.time, whole.makespan) << name;
    ASSERT_LE(evaluator.bound_by_shares(shape).time, whole.makespan) << name;
    const ChainSums& sums = evaluator.sums_of(shape.cell.micro_batch_size, shape.variant.cached);
    const VariantClass variant = class_of(shape.variant);
    if (variant.one_way || shape.cell.longer > 0 || shape.cell.devices % 2 == 0) {
      ASSERT_LE(evaluator.work_bounds().bound(sums, shape.cell, variant).time, whole.makespan)
          << name;
    }
    if (own.time == whole.makespan) ++comparison.equal;
  }
}

TEST(OrderBound, IsNeverAboveTheSimulatedStepNorRejectsAPlanThatFits) {
  Comparison all;
  for (std::uint64_t seed = 5000; seed < 6000; ++seed) {
    SCOPED_TRACE(seed);
    compare(seed % 3 == 0 ? draw_cached_question(seed) : draw_search_question(seed), all);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(all.compared, 5000);
  EXPECT_GT(all.too_large, 50);
}

TEST(OrderBound, AskedUpToSomeTimeIsAboveItOnlyWhereTheStepIs) {
  int above = 0;
  int below = 0;
  for (std::uint64_t seed = 6000; seed < 6200; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    std::mt19937_64 random(seed);
    OrderTable orders;
    Evaluator whole({question.profile, question.cluster}, question.options, orders);
    for (const Shape& shape : list_shapes(whole)) {
      if (std::holds_alternative<Rejection>(whole.bound(shape))) continue;
      const auto bound = whole.bound_by_order(shape);
      if (!bound || std::holds_alternative<Rejection>(*bound)) continue;
      const Duration all = std::get<NamedBound>(*bound).time;
      const Duration most = all * static_cast<std::int64_t>(50 + random() % 100) / 100;
      // The evaluator is a new one, because an evaluator keeps what it knows of a shape.
      Evaluator brief({question.profile, question.cluster}, question.options, orders);
      const auto up_to = brief.bound_by_order(shape, most);
      ASSERT_TRUE(up_to.has_value());
      ASSERT_TRUE(std::holds_alternative<NamedBound>(*up_to));
      const Duration time = std::get<NamedBound>(*up_to).time;
      if (all <= most) {
        EXPECT_EQ(time, all);
        ++below;
      } else {
        EXPECT_GT(time, most);
        EXPECT_LE(time, all);
        ++above;
      }
      // A bound that was cut short is not taken for a verdict on the shape.
      EXPECT_EQ(brief.judge(shape).makespan, whole.judge(shape).makespan);
    }
  }
  EXPECT_GT(above, 500);
  EXPECT_GT(below, 500);
}

// The bound leaves out skips and the short micro-batch.
TEST(OrderBound, IsTheSimulatedStepWhereEdgesJoinNeighboursAndMicroBatchesAreWhole) {
  Comparison all;
  for (std::uint64_t seed = 7000; seed < 7300; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question =
        seed % 2 == 0 ? draw_cached_question(seed) : draw_search_question(seed);
    const auto skips = [](const Edge& edge) { return edge.from.value + 1 != edge.to.value; };
    const auto& edges = question.profile.edges;
    if (std::any_of(edges.begin(), edges.end(), skips)) continue;
    question.options.micro_batch_sizes = {1};
    for (Device& device : question.cluster.devices) device.memory_limit = Bytes{10'000'000};
    compare(question, all);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(all.compared, 2000);
  EXPECT_EQ(all.equal, all.compared);
}

}  // namespace
}  // namespace frazil
