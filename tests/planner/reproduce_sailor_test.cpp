// frazil reproduce sailor: the bars on the measured plans, and what makes the errors honest.

#include <gtest/gtest.h>

#include "planner/reproduce/sailor_report.h"
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
};

TEST_F(ReproduceSailor, PredictsTheMeasuredPlansWithinTheBars) {
  const SailorReport report = make_sailor_report(read_sailor_folder(sailor_data()));
  ASSERT_EQ(report.plans.size(), 15U);
  const ErrorSummary uncalibrated = summarize_errors(report.plans, report.uncalibrated);
  const ErrorSummary left_out = summarize_errors(report.plans, report.validation.predicted);
  EXPECT_LE(uncalibrated.mean, 0.09);
  EXPECT_LE(left_out.mean, 0.068);
  EXPECT_LE(left_out.largest, 0.16);
  EXPECT_EQ(report.suspects.size(), 1U);
}

TEST_F(ReproduceSailor, APlansOwnMeasurementsHaveNoSayInItsPrediction) {
  SailorFolder folder = read_sailor_folder(sailor_data());
  const SailorReport before = make_sailor_report(folder);
  for (const std::size_t changed : {std::size_t{0}, std::size_t{8}}) {
    SCOPED_TRACE(folder.plans[changed].name);
    SailorFolder other = folder;
    SailorPlan& plan = other.plans[changed];
    plan.iteration = *plan.iteration * 3;
    plan.reduction = std::nullopt;
    plan.peak_memory = Bytes{1};
    const SailorReport after = make_sailor_report(other);
    EXPECT_EQ(after.validation.predicted[changed], before.validation.predicted[changed]);
    EXPECT_EQ(after.uncalibrated, before.uncalibrated);
    EXPECT_NE(after.validation.predicted, before.validation.predicted)
        << "the others do hear of it";
  }
}

TEST_F(ReproduceSailor, RefusesPlansWithoutMeasurements) {
  SailorFolder folder = read_sailor_folder(sailor_data());
  folder.plans[3].iteration = std::nullopt;
  EXPECT_THROW(make_sailor_report(folder), InputError);
  folder.plans.resize(1);
  EXPECT_THROW(make_sailor_report(folder), InputError);
}

TEST_F(ReproduceSailor, AnswersTheSameTwiceAndInJson) {
  const ProgramFolder folder("reproduce-sailor");
  const std::string arguments = "sailor --data '" + sailor_data().string() + "'";
  const Outcome first = folder.run("reproduce", arguments + " --json");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(folder.run("reproduce", arguments + " --json").out, first.out);
  JsonFields answer(parse_json(first.out, "answer"));
  EXPECT_EQ(answer.required("plans").items().size(), 15U);
  JsonFields errors(answer.required("absolute_error"));
  JsonFields left_out(errors.required("leave_one_out"));
  EXPECT_LE(left_out.required("mean").real(0, 1), 0.068);

  const Outcome table = folder.run("reproduce", arguments);
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("plan_config_N32_D8"), std::string::npos);
  EXPECT_NE(table.out.find("looks copied, not used: plan_config_N4_D4: red_grads"),
            std::string::npos)
      << table.out;
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
