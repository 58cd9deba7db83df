#include "planner/search/advice.h"

#include <gtest/gtest.h>

#include <set>

#include "planner/answers/print_explained_plan.h"
#include "planner/bounds/shape.h"
#include "planner/search/explain_plan.h"
#include "planner/search/search.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

SearchQuestion make_tight_question(int devices, Bytes memory, ReductionMode reduction) {
  SearchQuestion question;
  question.profile = make_chain(6, microseconds(10), microseconds(10), microseconds(10));
  question.cluster = make_uniform_cluster(devices, memory, {});
  question.options.batch_size = 8;
  question.options.micro_batch_sizes = {4, 8};
  question.options.schedules = {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                ScheduleKind::kZbV};
  question.options.mask = FreezeMask::all_active(6);
  question.options.reduction = reduction;
  question.options.joint = true;
  return question;
}

bool fits(const SearchQuestion& question, const Advice& advice) {
  const SearchCase changed = with_advice({question.cluster, question.options}, advice);
  return search_plans({question.profile, changed.cluster}, changed.options).best() != nullptr;
}

std::vector<Advice> find(const SearchQuestion& question) {
  const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
  EXPECT_EQ(ranking.best(), nullptr);
  return find_advice(question.profile, {question.cluster, question.options}, ranking);
}

// Returns the advice with one unit less, or, for micro-batches, with one sample more.
Advice less(Advice advice) {
  advice.amount += advice.kind == Advice::Kind::kMicroBatch ? 1 : -1;
  return advice;
}

TEST(Advice, EachChangeMakesAPlanFitAndAUnitLessDoesNot) {
  std::set<Advice::Kind> seen;
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t memory : {5'000, 9'000, 13'000, 18'000, 25'500}) {
      // The exact tree of many small micro-batches holds more gradient sets; a running sum is one
      // set.
      const auto reduction = memory > 20'000 ? ReductionMode::kFast : ReductionMode::kExact;
      const SearchQuestion question = make_tight_question(devices, Bytes{memory}, reduction);
      const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
      if (ranking.best() != nullptr) continue;
      for (const Advice& advice : find(question)) {
        const std::string text = to_text(advice, question.cluster);
        SCOPED_TRACE(text);
        seen.insert(advice.kind);
        EXPECT_TRUE(fits(question, advice));
        EXPECT_FALSE(fits(question, less(advice)));
      }
    }
  }
  EXPECT_TRUE(seen.count(Advice::Kind::kMemoryOfEach) == 1);
  EXPECT_TRUE(seen.count(Advice::Kind::kMemoryOfOne) == 1);
  EXPECT_TRUE(seen.count(Advice::Kind::kFreeze) == 1);
  EXPECT_TRUE(seen.count(Advice::Kind::kDevices) == 1);
  EXPECT_TRUE(seen.count(Advice::Kind::kMicroBatch) == 1);
}

TEST(Advice, SuggestsRecomputingWhereItIsEnough) {
  SearchQuestion question;
  question.profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  question.cluster = make_uniform_cluster(1, Bytes{25'000}, {});
  question.options.batch_size = 4;
  question.options.micro_batch_sizes = {1};
  question.options.schedules = {ScheduleKind::kGpipe};
  question.options.mask = FreezeMask::all_active(4);
  const std::vector<Advice> all_advice = find(question);
  const Advice recompute{.kind = Advice::Kind::kRecompute, .device = {}, .amount = 1};
  EXPECT_NE(std::find(all_advice.begin(), all_advice.end(), recompute), all_advice.end());
  // The missing bytes are exactly those of the state, three gradient sets and four stashes.
  const Advice memory{.kind = Advice::Kind::kMemoryOfEach, .device = {}, .amount = 600};
  EXPECT_NE(std::find(all_advice.begin(), all_advice.end(), memory), all_advice.end());
  EXPECT_NE(list_advice(all_advice, question.cluster).find("or recompute"), std::string::npos);
}

// The six micro-batches are sums of a tree in mode exact, of which several are held; mode fast has
// one sum.
TEST(Advice, SuggestsTheFastReductionWhereItIsEnough) {
  SearchQuestion question = make_tight_question(1, Bytes{1}, ReductionMode::kFast);
  question.options.batch_size = 6;
  question.options.micro_batch_sizes = {1};
  const std::vector<Advice> memory = find(question);
  ASSERT_EQ(memory.front().kind, Advice::Kind::kMemoryOfOne);
  question.cluster = with_advice({question.cluster, question.options}, memory.front()).cluster;
  question.options.reduction = ReductionMode::kExact;
  const std::vector<Advice> all_advice = find(question);
  const Advice fast{.kind = Advice::Kind::kFast, .device = {}, .amount = 1};
  EXPECT_NE(std::find(all_advice.begin(), all_advice.end(), fast), all_advice.end());
  EXPECT_NE(list_advice(all_advice, question.cluster).find("or reductions in mode fast"),
            std::string::npos);
}

TEST(ExplainedPlan, ItsPartsAddUpToTheMakespanAndItsCountsToTheCandidates) {
  int explained = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
    if (ranking.best() == nullptr) continue;
    ++explained;
    const PlanExplanation explanation =
        explain_plan(ranking, {question.profile, question.cluster}, question.options);
    for (const ExplainedCandidate& best : explanation.best) {
      const StepShares& shares = best.shares;
      const Duration sum =
          shares.compute + shares.bubble + shares.exposed_communication + shares.reduction;
      EXPECT_LE(sum, best.makespan);
      EXPECT_GE(sum + Duration{4}, best.makespan);
      EXPECT_LE(best.bound.time, best.makespan);
    }
    std::int64_t rejected = 0;
    for (const FamilyCount& family : explanation.families) {
      rejected += family.bounded + family.slower + family.too_large + family.refused;
      std::int64_t refused = 0;
      for (const Refusals& refusals : family.refusals) refused += refusals.candidates;
      EXPECT_EQ(refused, family.refused);
      EXPECT_EQ(family.nearest_fit.has_value(), family.too_large > 0);
      if (!family.nearest_fit) continue;
      const Rejection& nearest = family.nearest_fit->rejection;
      EXPECT_GT(nearest.needed, nearest.available);
      for (const RejectedShapes& other : ranking.rejected) {
        if (other.rejection.why != Rejection::Why::kMemory) continue;
        const bool own = other.schedule ? family.schedule == schedule_name(other.schedule->kind)
                                        : family.schedule == "any schedule";
        if (!own) continue;
        EXPECT_GE(other.rejection.needed - other.rejection.available,
                  nearest.needed - nearest.available);
      }
    }
    EXPECT_EQ(rejected + static_cast<std::int64_t>(ranking.candidates.size()),
              explanation.candidates);
    EXPECT_EQ(explanation.idle.devices.empty(), explanation.idle.reason.empty());
    const std::string text = print_plan_explanation(explanation, question.cluster);
    for (const DeviceId device : explanation.idle.devices) {
      EXPECT_NE(text.find(question.cluster.devices[device.index()].name), std::string::npos);
    }
  }
  EXPECT_GT(explained, 30);
}

}  // namespace
}  // namespace frazil
