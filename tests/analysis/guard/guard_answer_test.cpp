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
  report.conclusion = conclude_guard(report.movements, {report.movements}, Guarded::kPlan);
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

TEST(GuardAnswer, ABaselineThatIsRefusedIsNotKept) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "kept.json";
  std::filesystem::remove(file);
  const Baseline baseline{{}, {}, 1, {{GuardedKind::kStep, "step", 1, 0.02, 6}}};
  testing::internal::CaptureStdout();
  EXPECT_EQ(keep_baseline(baseline, "a program was busy", file.string(), false),
            ExitCode::kVerifyInconclusive);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(keep_baseline(baseline, "", file.string(), false), ExitCode::kOk);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "wrote no baseline\nINCONCLUSIVE: a program was busy\n"
            "wrote baseline " +
                file.string() +
                ": 1 things, noise up to 2.0 %; nothing was compared, and --baseline compares a "
                "later day with it\n");
  EXPECT_EQ(read_baseline(file), baseline);
  std::filesystem::remove(file);
}

TEST(GuardAnswer, NamesOnlyWhatIsUnsteadyItself) {
  const auto say = [](double noise, double floor) {
    const std::vector<GuardedValue> day{{GuardedKind::kLink, "latency", 1e6, noise, 9}};
    GuardReport report{"good.json", {}, {}, find_movements(day, day, floor), {}};
    return print_guard(report);
  };
  const std::string unsteady = "too unsteady to be guarded closely (noise above 10.0 %): latency\n";
  EXPECT_NE(say(0.11, 0.03).find(unsteady), std::string::npos);
  EXPECT_EQ(say(0.008, 1.5).find("too unsteady"), std::string::npos);
}

TEST(GuardAnswer, SaysOfTheHostAndTheStepNoMoreThanIsKnown) {
  GuardReport report = report_of_a_slow_layer();
  const auto alarm = [&](GuardedKind kind, const char* name) {
    report.conclusion.alarms = {report.movements[1]};
    report.conclusion.alarms[0].kind = kind;
    report.conclusion.alarms[0].name = name;
    return print_guard(report);
  };
  EXPECT_NE(alarm(GuardedKind::kHost, "host")
                .find("the host: half of its layers or more take at least 6.0 % longer (alarm"),
            std::string::npos);
  EXPECT_NE(alarm(GuardedKind::kStep, "rank 1: step").find("\nrank 1: step takes 6.0 % longer"),
            std::string::npos);
}

TEST(GuardAnswer, NamesWhatOneOfBothDaysLacksAndWhyItIsOpen) {
  GuardReport report = report_of_a_slow_layer();
  report.missing = {{GuardedKind::kLink, "1 MiB", 2e6, 0.01, 8}};
  report.added = {{GuardedKind::kLayer, "block9", 2e6, 0.01, 8}};
  report.conclusion = conclude_guard({}, {}, Guarded::kPlan, report.missing);
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
