#include "analysis/guard/guard_answer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "analysis/guard/baseline_json.h"
#include "profiles/json.h"

namespace frazil {
namespace {

GuardReport report_of_a_slow_layer() {
  const std::vector<GuardedValue> good{{GuardedKind::kStep, "step", 10e6, 0.01, 40},
                                       {GuardedKind::kLayer, "embed", 2e6, 0.01, 40},
                                       {GuardedKind::kLayer, "block0", 3e6, 0.01, 40},
                                       {GuardedKind::kLayer, "head", 1e6, 0.01, 40}};
  std::vector<GuardedValue> today = good;
  today[0].median = 10.6e6;
  today[2].median = 3.6e6;
  GuardReport report{"good.json",
                     {{"date", "2026-11-01"}, {"processor", "old"}, {"cores", "2"}},
                     {{"date", "2026-11-02"}, {"processor", "new"}, {"cores", "2"}},
                     find_movements(good, today),
                     {}};
  report.conclusion = conclude_guard(report.movements, report.movements, 6);
  return report;
}

TEST(GuardAnswer, NamesWhatMovedAndWhatElseDiffers) {
  EXPECT_EQ(print_guard(report_of_a_slow_layer()),
            "what   name    baseline   today      ratio  own ratio  bar    moved\n"
            "-----  ------  ---------  ---------  -----  ---------  -----  ------\n"
            "host   host                          1.000      1.000  3.0 %\n"
            "step   step    10.000 ms  10.600 ms  1.060      1.060  3.0 %  slower\n"
            "layer  embed   2.000 ms   2.000 ms   1.000      1.000  3.0 %\n"
            "layer  block0  3.000 ms   3.600 ms   1.200      1.200  3.0 %  slower\n"
            "layer  head    1.000 ms   1.000 ms   1.000      1.000  3.0 %\n"
            "layer block0: beside the other layers it takes 20.0 % longer (alarm beyond 3.0 %)\n"
            "fingerprint: processor was \"old\", is \"new\"\n"
            "FAIL\n");
}

TEST(GuardAnswer, SaysTheSameToPrograms) {
  JsonFields answer(parse_json(guard_json(report_of_a_slow_layer()), "answer"));
  EXPECT_EQ(answer.required("verdict").text(), "FAIL");
  EXPECT_EQ(answer.required("baseline").text(), "good.json");
  ASSERT_EQ(answer.required("alarms").items().size(), 1U);
  JsonFields alarm(answer.required("alarms").items()[0]);
  EXPECT_EQ(alarm.required("kind").text(), "layer");
  EXPECT_EQ(alarm.required("name").text(), "block0");
  EXPECT_NEAR(alarm.required("own_ratio").real(0, 9), 1.2, 1e-9);
  EXPECT_EQ(answer.required("fingerprint_changes").items().size(), 1U);
  EXPECT_EQ(answer.required("movements").items().size(), 5U);
}

TEST(GuardAnswer, ABaselineOfTooFewBlocksIsNotKept) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "kept.json";
  std::filesystem::remove(file);
  Baseline baseline{{}, {}, 1, {{GuardedKind::kStep, "step", 1, 0.02, 5}}};
  testing::internal::CaptureStdout();
  EXPECT_EQ(keep_baseline(baseline, file.string(), false, "a program was busy"),
            ExitCode::kVerifyInconclusive);
  EXPECT_FALSE(std::filesystem::exists(file));
  baseline.values.front().blocks = 6;
  EXPECT_EQ(keep_baseline(baseline, file.string(), false), ExitCode::kOk);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "wrote no baseline\nINCONCLUSIVE: 5 blocks or steps count, and 6 are needed to tell "
            "their noise; a program was busy\n"
            "wrote baseline " +
                file.string() +
                ": 1 things, noise up to 2.0 %; nothing was compared, and --baseline compares a "
                "later day with it\n");
  EXPECT_EQ(read_baseline(file), baseline);
  std::filesystem::remove(file);
  baseline.values.front().noise = 0.11;
  EXPECT_EQ(find_unsteadiness(baseline), "the step scatters by 11.0 %, and may by 10 % at most");
}

TEST(GuardAnswer, NamesWhatOneOfBothDaysLacksAndWhyItIsOpen) {
  GuardReport report = report_of_a_slow_layer();
  report.missing = {{GuardedKind::kLink, "1 MiB", 2e6, 0.01, 8}};
  report.added = {{GuardedKind::kLayer, "block9", 2e6, 0.01, 8}};
  report.conclusion = conclude_guard({}, std::nullopt, 6, report.missing);
  const std::string text = print_guard(report);
  EXPECT_NE(text.find("\nnot measured today, though in the baseline: link 1 MiB\n"
                      "measured today, though not in the baseline: layer block9\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nINCONCLUSIVE: nothing was measured that the baseline has\n"),
            std::string::npos)
      << text;
  JsonFields answer(parse_json(guard_json(report), "answer"));
  EXPECT_EQ(answer.required("reason").text(), report.conclusion.reason);
  EXPECT_EQ(JsonFields(answer.required("missing").items()[0]).required("name").text(), "1 MiB");
  EXPECT_EQ(JsonFields(answer.required("added").items()[0]).required("kind").text(), "layer");
}

TEST(GuardAnswer, VerdictsHaveTheirExitCodes) {
  EXPECT_EQ(exit_code_of(Verdict::kPass), ExitCode::kOk);
  EXPECT_EQ(exit_code_of(Verdict::kFail), ExitCode::kVerifyFailed);
  EXPECT_EQ(exit_code_of(Verdict::kInconclusive), ExitCode::kVerifyInconclusive);
}

}  // namespace
}  // namespace frazil
