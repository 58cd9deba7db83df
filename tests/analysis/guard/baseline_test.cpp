#include "analysis/guard/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/guard/baseline_json.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Baseline small_baseline() {
  return {{{"plan", "2 stages"}, {"model_hash", "abc"}},
          {{"processor", "a \"fast\" one"}},
          7,
          {{GuardedKind::kStep, "step", 1234567.25, 0.0125, 40},
           {GuardedKind::kLayer, "block0", 3, 0, 1},
           {GuardedKind::kLink, "latency", 1e17, 2.5, 8},
           {GuardedKind::kPrediction, "step / predicted", 1.0625, 0.5, 40}}};
}

std::string complaint_about(const std::string& text) {
  try {
    (void)parse_baseline(text, "b.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = to_json(small_baseline());
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

TEST(Baseline, IsReadAsItWasWritten) {
  const std::string text = to_json(small_baseline());
  EXPECT_EQ(parse_baseline(text, "b.json"), small_baseline());
  EXPECT_EQ(to_json(parse_baseline(text, "b.json")), text);
}

TEST(Baseline, DrawnNumbersComeBackToTheBit) {
  std::mt19937 draws(3);
  std::uniform_real_distribution<double> exponent(-10, 17);
  for (int i = 0; i < 1000; ++i) {
    Baseline baseline = small_baseline();
    baseline.values.front().median = std::pow(10, exponent(draws));
    baseline.values.front().noise = std::pow(10, exponent(draws));
    EXPECT_EQ(parse_baseline(to_json(baseline), "b.json"), baseline) << "draw " << i;
  }
}

TEST(Baseline, BadFilesAreRefusedWithLineAndPath) {
  EXPECT_NE(complaint_about("{}").find("b.json:1: "), std::string::npos);
  for (const auto& [old, replacement] : std::vector<std::pair<std::string, std::string>>{
           {"\"frazil.baseline\"", "\"frazil.plan\""},
           {"\"version\": 1", "\"version\": 2"},
           {"\"seed\": 7", "\"seed\": -7"},
           {"\"seed\": 7", "\"seed\": 7, \"more\": 1"},
           {"\"kind\": \"link\"", "\"kind\": \"host\""},
           {"\"median\": 3", "\"median\": 0"},
           {"\"median\": 3", "\"median\": -3"},
           {"\"noise\": 0.0125", "\"noise\": -1"},
           {"\"blocks\": 1}", "\"blocks\": 0}"},
           {"\"layer\", \"name\": \"block0\"", "\"step\", \"name\": \"step\""},
           {"\"question\": {", "\"question\": 1, \"x\": {"}}) {
    const std::string complaint = complaint_about(with(old, replacement));
    EXPECT_EQ(complaint.find("b.json:"), 0U) << replacement << ": " << complaint;
    EXPECT_NE(complaint.find("expected"), std::string::npos) << complaint;
  }
  Baseline nothing = small_baseline();
  nothing.values.clear();
  EXPECT_NE(complaint_about(to_json(nothing)).find("at least one value"), std::string::npos);
}

TEST(Baseline, AnotherQuestionIsRefusedAndAnotherHostIsNot) {
  const Baseline good = small_baseline();
  Baseline today = good;
  today.fingerprint["processor"] = "another";
  today.seed = 8;
  today.values.front().median = 1;
  EXPECT_NO_THROW(refuse_other_question(good, today, "b.json"));
  const auto complaint = [&](const Baseline& other) {
    try {
      refuse_other_question(good, other, "b.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  today.question["plan"] = "3 stages";
  EXPECT_EQ(complaint(today),
            "b.json: found a baseline of plan \"2 stages\", expected one of \"3 stages\", which "
            "this run has");
  today = good;
  today.values[1].name = "block1";
  EXPECT_EQ(
      complaint(today),
      "b.json: found layer \"block0\" at place 0, expected layer \"block1\", as this run has");
  today = good;
  today.values.erase(today.values.begin() + 1);
  EXPECT_EQ(complaint(today),
            "b.json: found layer \"block0\" at place 0, expected no layer, as this run has");
}

TEST(GuardedValue, IsMedianAndSpreadOfTheBlocks) {
  const GuardedValue value = sum_up(GuardedSeries{GuardedKind::kStep, "step", {10, 12, 8, 9, 100}});
  EXPECT_DOUBLE_EQ(value.median, 10);
  EXPECT_DOUBLE_EQ(value.noise, 1.4826 * 2 / 10);  // deviations 0 1 2 2 90
  EXPECT_EQ(value.blocks, 5);
  EXPECT_DOUBLE_EQ(sum_up(GuardedSeries{GuardedKind::kStep, "step", {1, 2}}).median, 1.5);
  EXPECT_TRUE(sum_up({GuardedSeries{}, GuardedSeries{GuardedKind::kLink, "x", {0, 0, 1}}}).empty());
}

TEST(GuardedValue, NoiseOfNormalBlocksIsTheirDeviation) {
  std::mt19937 draws(5);
  std::normal_distribution<double> scatter(1000, 25);
  GuardedSeries series;
  for (int i = 0; i < 100'000; ++i) series.values.push_back(scatter(draws));
  EXPECT_NEAR(sum_up(series).noise, 0.025, 0.0003);
}

}  // namespace
}  // namespace frazil
