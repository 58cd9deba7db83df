// Tests what is said if no plan fits: the hint belongs to the plan that is named.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/answers/print_ranking.h"
#include "planner/plan/schedule_facts.h"
#include "planner/search/advice.h"
#include "planner/search/explain_plan.h"
#include "planner/search/search.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/golden.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/sanitizer.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

Candidate judge(const SearchQuestion& question, const Plan& plan, const Cluster& cluster) {
  const StepOptions options{.clip = question.options.clip, .overlap = question.options.overlap};
  return judge_plan(plan, {question.profile, cluster}, options);
}

// Judges the best plan of the changed question under the question without the change.
Candidate judge_without(const SearchQuestion& question, const Advice& advice) {
  SearchCase changed = with_advice({question.cluster, question.options}, advice);
  changed.options.keep = 1;
  const Ranking ranking = search_plans({question.profile, changed.cluster}, changed.options);
  return judge(question, ranking.best()->plan, question.cluster);
}

// The named plan fits with the advised amount where it is advised, and with no byte less.
void expect_just_enough(const SearchQuestion& question, const Candidate& named, Advice advice) {
  const bool is_of_one = advice.kind == Advice::Kind::kMemoryOfOne;
  if (is_of_one) {
    EXPECT_EQ(named.infeasible->device, advice.device);
  }
  for (const bool is_enough : {true, false}) {
    advice.amount -= is_enough ? 0 : 1;
    const SearchCase changed = with_advice({question.cluster, question.options}, advice);
    const Candidate judged = judge(question, named.plan, changed.cluster);
    EXPECT_EQ(!judged.infeasible, is_enough) << advice.amount;
    if (!is_enough && judged.infeasible) {
      EXPECT_EQ(judged.infeasible->device, named.infeasible->device);
    }
  }
}

TEST(NoPlan, TheNamedPlanMissesJustWhatTheHintGives) {
  int told = 0;
  int elsewhere = 0;
  int further = 0;
  for (int seed = 1; seed <= draws(200); ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(static_cast<std::uint64_t>(seed));
    for (Device& device : question.cluster.devices) device.memory_limit.count /= 3;
    const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
    if (ranking.best() != nullptr) continue;
    const SearchCase asked{question.cluster, question.options};
    const std::vector<Advice> all_advice = find_advice(question.profile, asked, ranking);
    const std::string text = explain_no_plan(question.profile, asked, ranking, all_advice);
    if (all_advice.empty() || all_advice.front().kind > Advice::Kind::kMemoryOfEach) {
      EXPECT_EQ(text.find("it would fit with "), std::string::npos) << text;
      continue;
    }
    const Advice& first = all_advice.front();
    const Candidate named = judge_without(question, first);
    ASSERT_TRUE(named.infeasible);
    const std::int64_t missing = named.infeasible->needed.count - named.infeasible->available.count;
    EXPECT_LE(missing, first.amount);
    if (missing != first.amount) {
      EXPECT_EQ(text.find(explain_infeasible(ranking) + "; another plan would fit with "), 0U)
          << text;
      continue;
    }
    const std::string by = first.kind == Advice::Kind::kMemoryOfOne ? "one" : "each";
    EXPECT_EQ(text.find("no plan is feasible; the nearest by the memory of " + by + " device, " +
                        summarize(named.plan) + ": " + named.infeasible->reason +
                        "; it would fit with " + to_text(first, question.cluster)),
              0U)
        << text;
    expect_just_enough(question, named, first);
    ++told;
    elsewhere += first.kind == Advice::Kind::kMemoryOfOne && first.device.value > 0;
    further += explain_infeasible(ranking).find(named.infeasible->reason) == std::string::npos;
  }
  EXPECT_GT(told, draws(20));
  EXPECT_GT(further, 0) << "the ranking's first is another plan, at times";
  EXPECT_GT(elsewhere, 0) << "it is another device than the first that lacks memory, at times";
}

// A model of unequal layers, and devices that are too small for it.
class NoPlanVerb : public testing::Test {
 protected:
  void SetUp() override {
    ModelProfile profile = make_chain(6, microseconds(10), microseconds(20), microseconds(10));
    profile.layers[1].parameters = Bytes{3'000};
    write_model_profile(profile, folder_.path("model.json"));
    Cluster cluster = make_uniform_cluster(4, Bytes{9'000}, {});
    cluster.devices[2].memory_limit = Bytes{10'000};
    write_cluster(cluster, folder_.path("tight.json"));
  }
  Outcome plan(const std::string& flags) const {
    return folder_.run("plan", "--profile model.json --cluster tight.json --batch 8 " + flags);
  }

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(NoPlanVerb, ExplainsWhatCameNearestAndWhatWouldHelp) {
  const Outcome outcome = plan("--explain --top 5 --schedules gpipe,1f1b,dualpipe,zb-v");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(matches_golden("planner/no_plan_explained.txt", outcome.out + outcome.err));
}

TEST_F(NoPlanVerb, ExplainsInJsonTheNamedPlanAndThenFromTheLeastThatIsMissingOn) {
  const Outcome outcome = plan("--explain --top 5 --json");
  EXPECT_EQ(outcome.code, 3);
  JsonFields answer(parse_json(outcome.out, "answer"));
  JsonFields explanation(answer.required("explanation"));
  EXPECT_TRUE(explanation.required("best").items().empty());
  const auto misses = [](JsonFields& row) {
    return row.required("needed_bytes").integer(0, kLargestQuantity) -
           row.required("available_bytes").integer(0, kLargestQuantity);
  };
  std::int64_t missed = 0;
  std::int64_t candidates = 0;
  const std::vector<JsonCursor> rows = explanation.required("nearest").items();
  for (const JsonCursor& row : rows) {
    JsonFields nearest(row);
    const std::int64_t missing = misses(nearest);
    EXPECT_GT(missing, 0);
    EXPECT_GE(missing, missed);
    if (&row != &rows.front()) missed = missing;
    candidates += nearest.required("candidates").integer(1, kLargestQuantity);
  }
  EXPECT_GT(missed, 0);
  JsonFields named(answer.required("infeasible").items()[0]);
  JsonFields first(rows.at(0));
  EXPECT_EQ(misses(first), misses(named));
  EXPECT_NE(outcome.err.find(named.required("reason").text()), std::string::npos) << outcome.err;
  const std::string device =
      fmt::format("device{}", named.required("device").integer(0, kLargestQuantity));
  EXPECT_EQ(first.required("device").text(), device);
  const auto number = [&](const char* key) {
    return named.required(key).integer(1, kLargestQuantity);
  };
  EXPECT_EQ(first.required("shape").text(),
            fmt::format("{} x {}, micro-batch {}, {}", number("pp"), number("dp"),
                        number("micro_batch_size"), named.required("schedule").text()));
  JsonFields hint(answer.required("relief").items()[0]);
  EXPECT_EQ(hint.required("change").text(), "memory_of_one_device_bytes");
  EXPECT_EQ(hint.required("amount").integer(1, kLargestQuantity), misses(first));
  EXPECT_TRUE(hint.required("text").text().ends_with(" more on " + device));
  EXPECT_LT(candidates, explanation.required("candidates").integer(1, kLargestQuantity));
}

TEST(NoPlan, TheNamedPlanStandsForItsRowAndNoPlanIsCountedTwice) {
  int named_alone = 0;
  int told = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    for (Device& device : question.cluster.devices) device.memory_limit.count /= 3;
    const Setting setting{question.profile, question.cluster};
    const Ranking ranking = search_plans(setting, question.options);
    if (ranking.best() != nullptr || ranking.candidates.empty()) continue;
    const SearchCase asked{question.cluster, question.options};
    const std::vector<Candidate> relieved =
        find_relieved(question.profile, asked, find_advice(question.profile, asked, ranking));
    const Candidate& named = relieved.empty() ? ranking.candidates.front() : relieved.front();
    if (named.infeasible->needed <= named.infeasible->available) continue;
    SearchOptions all = question.options;
    all.keep = 1'000'000;
    const PlanExplanation whole = explain_plan(ranking, setting, all, &named);
    // The ranking's own nearest plan is no rejection. An interpreter may refuse it.
    const Infeasible& own = *ranking.candidates.front().infeasible;
    std::int64_t too_large = own.needed > own.available ? 1 : 0;
    for (const FamilyCount& family : whole.families) too_large += family.too_large;
    std::int64_t listed = 0;
    std::set<std::string> rows;
    for (const RejectedShapes& row : whole.nearest) {
      listed += row.candidates;
      const std::string schedule{row.schedule ? schedule_name(row.schedule->kind) : "any"};
      EXPECT_TRUE(rows.insert(schedule + " " + shape_notation(row)).second);
    }
    EXPECT_EQ(listed, too_large);
    EXPECT_TRUE(whole.names_nearest);
    const Rejection& first = whole.nearest.front().rejection;
    EXPECT_EQ(first.needed, named.infeasible->needed);
    EXPECT_EQ(first.available, named.infeasible->available);
    for (const int rows_shown : {1, 2, 3}) {
      all.keep = rows_shown;
      const PlanExplanation shown = explain_plan(ranking, setting, all, &named);
      ASSERT_EQ(shown.nearest.size(),
                std::min(whole.nearest.size(), static_cast<std::size_t>(rows_shown)));
      for (std::size_t r = 0; r < shown.nearest.size(); ++r) {
        EXPECT_EQ(describe_shapes(shown.nearest[r]), describe_shapes(whole.nearest[r]));
        EXPECT_EQ(shown.nearest[r].candidates, whole.nearest[r].candidates);
      }
    }
    ++told;
    named_alone += whole.nearest.front().candidates == 1 ? 1 : 0;
  }
  EXPECT_GT(told, 20);
  EXPECT_LT(named_alone, told);
}

TEST(NoPlan, OfEachShapeAndScheduleTheRowThatMissesLeastStandsForAll) {
  int explained = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    SearchQuestion question = draw_search_question(seed);
    for (Device& device : question.cluster.devices) device.memory_limit.count /= 100'000;
    question.options.keep = 1'000'000;
    const Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
    if (ranking.best() != nullptr) continue;
    const PlanExplanation explanation =
        explain_plan(ranking, {question.profile, question.cluster}, question.options);
    EXPECT_TRUE(explanation.best.empty());
    EXPECT_TRUE(explanation.idle.devices.empty());
    std::int64_t too_large = 0;
    std::int64_t listed = 0;
    for (const RejectedShapes& rejected : ranking.rejected) {
      if (rejected.rejection.why != Rejection::Why::kMemory) continue;
      too_large += rejected.candidates;
      const auto same = [&](const RejectedShapes& row) {
        return row.group_devices == rejected.group_devices && row.groups == rejected.groups &&
               row.longer == rejected.longer &&
               row.schedule.has_value() == rejected.schedule.has_value() &&
               (!row.schedule || row.schedule->kind == rejected.schedule->kind);
      };
      ASSERT_EQ(std::count_if(explanation.nearest.begin(), explanation.nearest.end(), same), 1);
      const auto row = std::find_if(explanation.nearest.begin(), explanation.nearest.end(), same);
      EXPECT_LE(row->rejection.needed - row->rejection.available,
                rejected.rejection.needed - rejected.rejection.available);
    }
    for (const RejectedShapes& row : explanation.nearest) listed += row.candidates;
    EXPECT_EQ(listed, too_large);
    explained += explanation.nearest.empty() ? 0 : 1;
  }
  EXPECT_GT(explained, 20);
}

}  // namespace
}  // namespace frazil
