// Tests that no step takes less than StageLimits says of any of its stages, whatever the cuts.

#include "planner/bounds/stage_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "planner/search/evaluate.h"
#include "tests/planner/support/search_cases.h"

namespace frazil {
namespace {

// Draws ascending cuts for the stages of one class, as far as a cached prefix allows.
std::vector<LayerId> draw_cuts(const StageLimits& limits, std::mt19937_64& random) {
  std::vector<LayerId> cuts;
  for (int s = 1; s < limits.stages(); ++s) {
    const int before = cuts.empty() ? 0 : cuts.back().value;
    const int least = std::max(before + 1, limits.least_first(s));
    const int choices = limits.most_first(s) - least + 1;
    cuts.emplace_back(least + static_cast<int>(random() % static_cast<std::uint64_t>(choices)));
  }
  return cuts;
}

Duration bound_cuts(const StageLimits& limits, const std::vector<LayerId>& cuts) {
  Duration bound{0};
  for (int s = 0; s < limits.stages(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    const int first = s == 0 ? 0 : cuts[at - 1].value;
    const int end = s + 1 == limits.stages() ? limits.layers() : cuts[at].value;
    bound = std::max(bound, limits.at_least(s, {first, end}));
  }
  return bound;
}

void expect_below_all_steps(SearchQuestion (*draw)(std::uint64_t), std::uint64_t seeds) {
  int tight = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const SearchQuestion question = draw(seed);
    OrderTable orders;
    const Setting setting{question.profile, question.cluster};
    Evaluator evaluator(setting, question.options, orders);
    const std::vector<Shape> shapes = list_shapes(evaluator);
    for (int i = 0; i < 40 && !shapes.empty(); ++i) {
      const Shape& shape = shapes[random() % shapes.size()];
      Proposal proposal = evaluator.deal(shape);
      std::vector<StageLimits> limits = evaluator.limit_stages(shape, proposal);
      Duration bound{0};
      for (std::size_t c = 0; c < limits.size(); ++c) {
        limits[c].bound_all_cuts();
        proposal.classes[c].cuts = draw_cuts(limits[c], random);
        const Duration own = bound_cuts(limits[c], proposal.classes[c].cuts);
        ASSERT_LE(limits[c].at_least(), own) << "the bound over all cuts";
        bound = std::max(bound, own);
      }
      const auto verdict = evaluator.judge_below(shape, proposal, kNever);
      if (!verdict) continue;
      ASSERT_LE(bound, verdict->makespan);
      tight += bound == verdict->makespan ? 1 : 0;
    }
  }
  EXPECT_GT(tight, 20);
}

TEST(StageLimits, AreBelowEveryStepUnderAnyMask) {
  expect_below_all_steps(draw_search_question, 200);
}

TEST(StageLimits, AreBelowEveryStepWithACachedPrefix) {
  expect_below_all_steps(draw_cached_question, 100);
}

TEST(StageLimits, AreBelowEveryStepWithLittleMemoryAndLargeMessages) {
  expect_below_all_steps(draw_tight_question, 200);
}

}  // namespace
}  // namespace frazil
