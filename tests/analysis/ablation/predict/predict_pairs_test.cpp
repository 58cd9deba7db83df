#include "analysis/ablation/predict/predict_pairs.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/support/mask_of.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// One device, four blocks of one layer with 100 us for each of F, I and W of a sample. A run of 5
// epochs of 4 steps of 8 samples freezes the first two blocks after two of them.
class PredictedPairs : public testing::Test {
 protected:
  void SetUp() override {
    write_text_file(folder_.path("run.json"),
                    R"({"format": "frazil.run", "version": 1, "epochs": 5, "batch_size": 8,
                        "micro_batch_size": 8, "cache": {"kind": "on", "memory_bytes": 1000},
                        "freeze": {"policy": {"kind": "alpha"}}})");
    base_ = read_base_run(folder_.path("run.json"));
    result_.steps = 20;
    for (const auto& [step, mask] : {std::pair(0, "1111"), {4, "1111"}, {8, "0011"}}) {
      result_.phases.push_back({.first_step = step, .mask = mask, .plan = "a plan"});
    }
  }
  PredictedRuns predict(const std::vector<Arm>& arms, std::optional<Step> shorter = {}) const {
    return predict_pairs(base_, {profile_, cluster_}, record_course(base_, result_, "result.json"),
                         arms, shorter);
  }

  const ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  BaseRun base_;
  ModelProfile profile_ = make_chain(4, microseconds{100}, microseconds{100}, microseconds{100});
  Cluster cluster_ =
      make_uniform_cluster(1, Bytes{100'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  PairResult result_;
};

constexpr microseconds kWhole{8800};   // a step of 4 F, 3 I and 4 W
constexpr microseconds kHalf{5600};    // 4 F, 1 I and 2 W under 0011
constexpr microseconds kCached{4000};  // without the F of the prefix

TEST_F(PredictedPairs, TakeWhatTheirLayersTakeUnderTheRecordedMasks) {
  const PredictedRuns runs = predict({Arm::kUnfrozen, Arm::kFreezeOnly, Arm::kAll, Arm::kShorter});
  EXPECT_EQ(runs.at(Arm::kUnfrozen).total(), 20 * kWhole);
  EXPECT_EQ(runs.at(Arm::kFreezeOnly).total(), 8 * kWhole + 12 * kHalf);
  // Features of a batch take 80 bytes, which an epoch writes at the 8 GB/s that are the default.
  EXPECT_EQ(runs.at(Arm::kAll).total(), 8 * kWhole + 4 * (kHalf + Duration{10}) + 8 * kCached);
  EXPECT_EQ(runs.count(Arm::kShorter), 0U) << "how many steps it has is not known";
  EXPECT_EQ(predict({Arm::kShorter}, 12).at(Arm::kShorter).total(), 12 * kWhole);
}

TEST_F(PredictedPairs, CacheAsTheConfigurationSays) {
  base_.store.memory.limit = Bytes{319};  // the features of an epoch take 320 bytes
  EXPECT_EQ(predict({Arm::kAll}).at(Arm::kAll).total(), 8 * kWhole + 12 * kHalf);
}

TEST_F(PredictedPairs, LeaveOutArmsThatDoNotFit) {
  cluster_ = make_uniform_cluster(1, Bytes{10'000}, {});
  EXPECT_TRUE(predict({Arm::kUnfrozen, Arm::kAll}).empty());
}

TEST_F(PredictedPairs, ChargeTransitionsAsTheRunHasMeasuredThem) {
  // While all trains, one device lacks room for the model's 16 kB of parameters, gradients and
  // optimizer state; with two blocks frozen it has room for the 10 kB that are left, and two
  // replicas are faster than two stages. So the run changes plans once, whatever that costs.
  cluster_ =
      make_uniform_cluster(2, Bytes{14'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  base_.micro_batch_size = 4;
  const auto predict_all = [&](const TransitionOverhead& overhead) {
    result_.overhead = overhead;
    return predict({Arm::kAll}).at(Arm::kAll);
  };
  const PredictedRun free = predict_all({});
  ASSERT_EQ(free.times.transitions, 1);
  EXPECT_EQ(free.walk.front().plan.pipelines.size(), 1U);
  EXPECT_EQ(free.walk.back().plan.pipelines.size(), 2U);
  EXPECT_GT(free.times.parts.transitions, kNoTime) << "state moves at the links' rate";
  const PredictedRun charged = predict_all({.plan = microseconds{7}, .start = microseconds{50}});
  EXPECT_EQ(charged.walk, free.walk);
  EXPECT_EQ(charged.times.parts.transitions, free.times.parts.transitions + microseconds{57});
  EXPECT_EQ(charged.total(), free.total() + microseconds{57});
}

// What is foreseen is what the run has recorded, so that both predict the same.
TEST_F(PredictedPairs, KnowWhatTheyArePredictedFrom) {
  const std::vector<Arm> arms{Arm::kUnfrozen, Arm::kAll, Arm::kShorter};
  const PredictedRuns recorded = predict(arms, 12);
  EXPECT_EQ(recorded.at(Arm::kUnfrozen).basis, PredictionBasis::kForecast) << "it never freezes";
  EXPECT_EQ(recorded.at(Arm::kAll).basis, PredictionBasis::kRecordedMasks);
  EXPECT_EQ(recorded.at(Arm::kShorter).basis, PredictionBasis::kTimeOfAll);
  MaskCourse course = record_course(base_, result_, "result.json");
  course.source = MaskCourse::Source::kForeseen;
  const Setting setting{profile_, cluster_};
  const PredictedRuns foreseen = predict_pairs(base_, setting, course, arms, std::nullopt);
  EXPECT_EQ(foreseen.at(Arm::kAll).basis, PredictionBasis::kForecast);
  EXPECT_EQ(foreseen.at(Arm::kAll).total(), recorded.at(Arm::kAll).total());
  EXPECT_EQ(tell_predicted(foreseen, PredictionBasis::kForecast),
            "unfrozen 0.18 s, all 0.12 s (1.41x)");
  EXPECT_EQ(tell_predicted(recorded, PredictionBasis::kRecordedMasks), "all 0.12 s (1.41x)");
  course.source = MaskCourse::Source::kLength;
  const PredictedRuns by_length = predict_pairs(base_, setting, course, arms, std::nullopt);
  EXPECT_EQ(by_length.size(), 1U) << "masks are not known";
  EXPECT_EQ(by_length.at(Arm::kUnfrozen).total(), recorded.at(Arm::kUnfrozen).total());
}

TEST_F(PredictedPairs, RefuseMasksOfOtherBlocks) {
  for (PairPhase& phase : result_.phases) phase.mask += "1";
  EXPECT_THROW((void)predict({Arm::kAll}), InputError);
}

}  // namespace
}  // namespace frazil
