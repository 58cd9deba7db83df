// The course of a run: foreseen from its configuration, or recorded.

#include "analysis/ablation/predict/mask_course.h"

#include <gtest/gtest.h>

#include "profiles/text_file.h"
#include "tests/support/mask_of.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

// Runs of 5 epochs with batches of 8 samples and a model of 5 blocks.
class Course : public testing::Test {
 protected:
  BaseRun base_of(const std::string& freeze) const {
    write_text_file(folder_.path("run.json"),
                    R"({"format": "frazil.run", "version": 1, "epochs": 5, "batch_size": 8)" +
                        (freeze.empty() ? "" : ", \"freeze\": " + freeze) + "}");
    return read_base_run(folder_.path("run.json"));
  }
  MaskCourse foresee(const std::string& freeze, std::int64_t samples = 30) const {
    const BaseRun base = base_of(freeze);
    return foresee_course(base, model_, length_of(base, samples), 1);
  }

  const ModelProfile model_ = make_chain(5, Duration{1}, Duration{1}, Duration{1});
  const ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

using Segments = std::vector<ForecastSegment>;

// After T intervals ceil(3 (1 - 0.5^T)) of the three blocks between are frozen: 2, 3.
TEST_F(Course, IsForeseenWhereThePolicyReadsTheStepAlone) {
  const Segments segments{
      {0, 8, mask_of("11111")}, {8, 4, mask_of("00011")}, {12, 8, mask_of("00001")}};
  for (const std::string freeze :
       {R"({"alpha": 0.5, "start_epoch": 3})",
        R"({"policy": {"kind": "alpha", "alpha": 0.5, "start_epoch": 3}})",
        R"({"policy": {"kind": "alpha", "alpha": 0.5, "start_step": 8, "interval_steps": 4}})"}) {
    const MaskCourse course = foresee(freeze);
    EXPECT_EQ(course.source, MaskCourse::Source::kForeseen) << freeze;
    EXPECT_EQ(course.segments, segments) << freeze;
    EXPECT_EQ(course.steps, 20) << "30 samples are three batches and a short one";
    EXPECT_EQ(course.samples, 30);
    EXPECT_EQ(course.overhead, TransitionOverhead{});
  }
}

TEST_F(Course, IsForeseenWithoutCountingABlockAtTheEndInWhichNothingTrains) {
  ModelProfile model = model_;
  model.layers.back().parameters = Bytes{0};
  const BaseRun base = base_of(R"({"alpha": 0.5, "start_epoch": 3})");
  const MaskCourse course = foresee_course(base, model, length_of(base, 30), 1);
  EXPECT_EQ(
      course.segments,
      (Segments{{0, 8, mask_of("11111")}, {8, 4, mask_of("00111")}, {12, 8, mask_of("00011")}}));
}

TEST_F(Course, IsForeseenToFreezeNothingWithoutAPolicy) {
  for (const std::string freeze : {"", "{}", R"({"alpha": 0, "freeze_untrainable": true})",
                                   R"({"policy": {"kind": "none"}})"}) {
    const MaskCourse course = foresee(freeze, 32);
    EXPECT_EQ(course.source, MaskCourse::Source::kForeseen) << freeze;
    EXPECT_EQ(course.segments, (Segments{{0, 20, mask_of("11111")}})) << freeze;
  }
}

TEST_F(Course, OfAPolicyThatReadsSignalsIsItsLengthAlone) {
  for (const std::string freeze :
       {R"({"policy": {"kind": "plasticity"}})",
        R"({"policy": {"kind": "alpha", "alpha": 0.5}, "decorators": {"validation_guard": {}}})",
        R"({"policy": {"kind": "alpha", "alpha": 0.5}, "decorators": {"amortisation": {}}})"}) {
    const MaskCourse course = foresee(freeze, 33);
    EXPECT_EQ(course.source, MaskCourse::Source::kLength) << freeze;
    EXPECT_EQ(course.segments, (Segments{{0, 25, mask_of("11111")}})) << freeze;
  }
}

TEST_F(Course, OfARunIsWhatItsPhasesSay) {
  PairResult result;
  result.pair.seed = 7;
  result.steps = 20;
  result.overhead.start = Duration{5};
  for (const auto& [step, mask] : {std::pair(0, "11111"), {4, "11111"}, {8, "00011"}}) {
    result.phases.push_back({.first_step = step, .mask = mask, .plan = "a plan"});
  }
  const MaskCourse course = record_course(base_of(""), result, "result.json");
  EXPECT_EQ(course.source, MaskCourse::Source::kRecorded);
  EXPECT_EQ(course.segments, (Segments{{0, 8, mask_of("11111")}, {8, 12, mask_of("00011")}}))
      << "a plan that changes under one mask parts nothing";
  EXPECT_EQ(course.samples, 32) << "four batches an epoch";
  EXPECT_EQ(course.overhead, result.overhead);
  EXPECT_EQ(course.seed, 7);
}

}  // namespace
}  // namespace frazil
