// Tests `frazil reproduce sailor`: the bars on the measured plans, and what makes the errors
// honest.

#include <gtest/gtest.h>

#include "planner/reproduce/sailor/sailor_report.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "tests/support/program_folder.h"
#include "tests/support/sailor_data.h"

namespace frazil {
namespace {

class ReproduceSailor : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_sailor_data()) GTEST_SKIP() << "no measurements of Sailor in " << sailor_data();
  }

  // Making it takes seconds.
  static const SailorReport& shared_report() {
    static const SailorReport made = make_sailor_report(read_sailor_folder(sailor_data()));
    return made;
  }
};

TEST_F(ReproduceSailor, PredictsTheMeasuredPlansWithinTheBars) {
  const SailorReport& report = shared_report();
  ASSERT_EQ(report.plans.size(), 15U);
  const ErrorSummary uncalibrated = summarize_errors(report.plans, report.uncalibrated);
  const ErrorSummary left_out = summarize_errors(report.plans, report.chosen.predicted);
  EXPECT_LE(uncalibrated.mean, 0.09);
  EXPECT_LE(left_out.mean, 0.068);
  EXPECT_LE(left_out.largest, 0.16);
  EXPECT_EQ(report.suspects.size(), 1U);
}

// Whatever the set, the form that the other plans choose is about as good as the best form of all,
// the plain loop included, also where all plans of a size are left out.
TEST_F(ReproduceSailor, ChoosesAFormThatIsNoWorseThanThePlainLoop) {
  const SailorReport& report = shared_report();
  ASSERT_EQ(report.forms.size(), 3U);
  ASSERT_TRUE(report.chosen_by_size.has_value());
  const auto mean = [&](const std::vector<Duration>& predicted) {
    return summarize_errors(report.plans, predicted).mean;
  };
  const FormReport& loop = report.forms.back();
  EXPECT_EQ(loop.name, "plain loop");
  EXPECT_LE(mean(report.chosen.predicted), mean(loop.one_out.predicted));
  EXPECT_LE(mean(report.chosen_by_size->predicted), mean(loop.size_out->predicted));
}

TEST_F(ReproduceSailor, APlansOwnMeasurementsHaveNoSayInItsPrediction) {
  SailorFolder folder = read_sailor_folder(sailor_data());
  const SailorReport& before = shared_report();
  constexpr std::size_t kChanged = 8;
  SailorPlan& plan = folder.plans[kChanged];
  SCOPED_TRACE(plan.name);
  plan.iteration = *plan.iteration * 3;
  plan.reduction = std::nullopt;
  plan.peak_memory = Bytes{1};
  const SailorReport after = make_sailor_report(folder);
  EXPECT_EQ(after.forms[0].one_out.choices[kChanged], before.forms[0].one_out.choices[kChanged]);
  EXPECT_EQ(after.chosen.predicted[kChanged], before.chosen.predicted[kChanged]);
  EXPECT_EQ(after.uncalibrated, before.uncalibrated);

  for (SailorPlan& other : folder.plans) other.iteration = *other.iteration * 11 / 10;
  const SailorReport slower = make_sailor_report(folder);
  EXPECT_GT(slower.chosen.predicted[kChanged], before.chosen.predicted[kChanged])
      << "but the others' have";
}

TEST_F(ReproduceSailor, TellsSailorsOwnErrorsOfItsOwnPlansAlone) {
  const SailorFolder folder = read_sailor_folder(sailor_data());
  ASSERT_TRUE(find_sailors_own(folder));
  EXPECT_EQ(find_sailors_own(folder)->mean, 0.0892);
  SailorFolder other = folder;
  other.plans.pop_back();
  EXPECT_FALSE(find_sailors_own(other));
  other = folder;
  *other.plans[4].iteration += Duration{10'000};
  EXPECT_FALSE(find_sailors_own(other));
  other = folder;
  other.times.begin()->second.begin()->second.front().forward += Duration{1};
  EXPECT_FALSE(find_sailors_own(other));
  other = folder;
  other.config.model = "OPT-1.3";
  EXPECT_FALSE(find_sailors_own(other));
}

TEST_F(ReproduceSailor, RefusesPlansWithoutMeasurements) {
  SailorFolder folder = read_sailor_folder(sailor_data());
  folder.plans[3].iteration = std::nullopt;
  EXPECT_THROW(make_sailor_report(folder), InputError);
  folder.plans.resize(1);
  EXPECT_THROW(make_sailor_report(folder), InputError);
}

TEST_F(ReproduceSailor, AnswersTheSameAsAProgramInJsonAndInATable) {
  const ProgramFolder folder("reproduce-sailor");
  const std::string arguments = "sailor --data '" + sailor_data().string() + "'";
  const Outcome outcome = folder.run("reproduce", arguments + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const SailorReport report = make_sailor_report(read_sailor_folder(sailor_data()));
  EXPECT_EQ(outcome.out, sailor_report_json(report));
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("plans").items().size(), 15U);

  const std::string table = print_sailor_report(report);
  EXPECT_NE(table.find("plan_config_N32_D8"), std::string::npos);
  EXPECT_NE(table.find("looks copied, not used: plan_config_N4_D4: red_grads"), std::string::npos)
      << table;
}

TEST(ReproduceVerb, RefusesWhatItDoesNotKnow) {
  const ProgramFolder folder("reproduce-verb");
  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder.run("reproduce", arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  };
  refuses("", "found nothing to reproduce, expected ");
  refuses("tailor", "found `tailor`, expected ");
  refuses("sailor now", "found `now`, expected one target");
  refuses("sailor", "found no --data");
  refuses("sailor --data nowhere",
          "nowhere/configs: found no such folder, expected a folder to read");
}

}  // namespace
}  // namespace frazil
