// What is said where no plan fits: the plan that is named is the one that the hint is of.

#include <gtest/gtest.h>

#include "planner/print_plan.h"
#include "planner/search/relief.h"
#include "tests/planner/search_cases.h"

namespace frazil {
namespace {

// The best plan with the change, as the simulator sees it without.
Candidate judge_without(const SearchQuestion& question, const Relief& relief) {
  SearchCase changed = with_relief({question.cluster, question.options}, relief);
  changed.options.keep = 1;
  const Ranking ranking = search_plans(question.profile, changed.cluster, changed.options);
  return judge_plan(ranking.best()->plan, question.profile, question.cluster,
                    question.options.clip);
}

TEST(NoPlan, TheNamedPlanMissesJustWhatTheHintGives) {
  int told = 0;
  int further = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    for (Device& device : question.cluster.devices) device.memory_limit.count /= 3;
    const Ranking ranking = search_plans(question.profile, question.cluster, question.options);
    if (ranking.best() != nullptr) continue;
    const SearchCase asked{question.cluster, question.options};
    const std::vector<Relief> reliefs = find_relief(question.profile, asked, ranking);
    const std::string text = explain_no_plan(question.profile, asked, ranking, reliefs);
    if (reliefs.empty() || reliefs.front().kind > Relief::Kind::kMemoryOfEach) {
      EXPECT_EQ(text.find("it would fit with "), std::string::npos) << text;
      continue;
    }
    const Relief& first = reliefs.front();
    const Candidate named = judge_without(question, first);
    ASSERT_TRUE(named.infeasible);
    const std::int64_t missing = named.infeasible->needed.count - named.infeasible->available.count;
    EXPECT_LE(missing, first.amount);
    if (missing != first.amount) {
      EXPECT_EQ(text.find(explain_infeasible(ranking) + "; another plan would fit with "), 0U)
          << text;
      continue;
    }
    EXPECT_EQ(text.find("no plan is feasible; the nearest, " + summarize(named.plan) + ": " +
                        named.infeasible->reason + "; it would fit with " +
                        to_text(first, question.cluster)),
              0U)
        << text;
    ++told;
    further += explain_infeasible(ranking).find(named.infeasible->reason) == std::string::npos;
  }
  EXPECT_GT(told, 20);
  EXPECT_GT(further, 0) << "the ranking's first is another plan, at times";
}

}  // namespace
}  // namespace frazil
