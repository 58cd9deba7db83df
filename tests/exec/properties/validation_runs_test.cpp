// Training keeps samples apart to validate with: decisions follow these samples and nothing else,
// and what they decide is recorded, replayed and resumed.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "exec/checkpoint/run_identity.h"
#include "planner/freezing/freeze_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// Any loss above the mean thaws.
constexpr const char* kNervous = R"({"policy": {"kind": "alpha", "alpha": 0.5, "start_epoch": 2},
    "decorators": {"validation_guard": {"metric": "loss", "sigmas": 0, "tolerance": 0,
                                        "hold_evaluations": 1}}})";

int count_thaws(const FreezeTrace& trace) {
  return static_cast<int>(
      std::count_if(trace.events.begin(), trace.events.end(), [](const FreezeEvent& event) {
        const auto* mask = std::get_if<MaskEvent>(&event.what);
        return mask != nullptr && mask->reason.starts_with("All blocks thaw");
      }));
}

Samples relabel(const SampleSource& part, const at::Tensor& labels) {
  return {part.whole().inputs, labels};
}

class ValidatedRun : public testing::Test {
 protected:
  ValidatedRun() {
    folder_ = fs::temp_directory_path() / ("frazil-validated-" + std::to_string(getpid()));
    options_.config = tiny_config();
    options_.config.epochs = 6;
    options_.config.data.train_samples = 64;
    options_.config.data.validation_percent = 25;
    options_.config.optimizer.learning_rate = 2e-2;
    set_freeze(kNervous);
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(Bytes{600'000});
    data_ = load_data(options_.config);
  }
  ~ValidatedRun() override { fs::remove_all(folder_); }

  void set_freeze(const std::string& json) {
    options_.config.freeze =
        parse_freeze(parse_json(json, "freeze"), options_.config.model, folder_);
  }

  fs::path folder_;
  TrainOptions options_;
  Dataset data_;
};

TEST_F(ValidatedRun, IsDecidedByTheValidationSamplesAndNeverByThoseOfTheTest) {
  const TrainResult result = train(options_, data_);
  Dataset other_test = data_;
  other_test.test = relabel(
      data_.test, (data_.test.whole().labels + 1).remainder(vit_of(options_.config).classes));
  const TrainResult tested = train(options_, other_test);
  EXPECT_NE(tested.loss, result.loss);
  EXPECT_EQ(masks_of(tested.trace), masks_of(result.trace));
  EXPECT_EQ(tested.weight_hash, result.weight_hash);
  Dataset other_validation = data_;
  other_validation.validation =
      relabel(data_.validation, at::zeros_like(data_.validation.whole().labels));
  const TrainResult validated = train(options_, other_validation);
  EXPECT_NE(masks_of(validated.trace), masks_of(result.trace));
}

TEST_F(ValidatedRun, WhoseGuardHasThawedIsReplayedBitForBit) {
  const TrainResult recorded = train(options_, data_);
  ASSERT_GT(count_thaws(recorded.trace), 0);
  write_freeze_trace(recorded.trace, folder_ / "trace.jsonl");
  set_freeze(R"({"policy": {"kind": "trace", "path": "trace.jsonl"}})");
  for (const bool elastic : {true, false}) {
    options_.elastic = elastic;
    options_.cluster = tiny_cluster(Bytes{elastic ? 600'000 : 1 << 24});
    const TrainResult replayed = train(options_, data_);
    EXPECT_EQ(masks_of(replayed.trace), masks_of(recorded.trace));
    EXPECT_EQ(replayed.weight_hash, recorded.weight_hash);
    EXPECT_EQ(replayed.loss, recorded.loss);
  }
}

TEST_F(ValidatedRun, GoesOnAfterAThawAsOneThatNeverEnded) {
  const TrainResult whole = train(options_, data_);
  ASSERT_GT(count_thaws(whole.trace), 0);
  for (const Step step : {12, 18, 20}) {
    SCOPED_TRACE(step);
    fs::remove_all(folder_);
    options_.durable = DurableOptions{.folder = folder_, .every = 6};
    Step done = 0;
    options_.stop = [&] { return ++done == step; };
    EXPECT_EQ(train(options_, data_).stopped_at, step);
    options_.stop = {};
    options_.durable->resume = true;
    const TrainResult resumed = train(options_, data_);
    options_.durable.reset();
    EXPECT_EQ(resumed.weight_hash, whole.weight_hash);
    EXPECT_EQ(masks_of(resumed.trace), masks_of(whole.trace));
    EXPECT_EQ(resumed.validation, whole.validation);
  }
}

TEST_F(ValidatedRun, TellsWhatItsDecisionsWereMadeBy) {
  std::optional<Validation> shown;
  const TrainResult result =
      train(options_, data_, [&](const TrainProgress& now) { shown = now.validation; });
  int evaluations = 0;
  for (const FreezeEvent& event : result.trace.events) {
    const auto* eval = std::get_if<EvalEvent>(&event.what);
    if (eval == nullptr) continue;
    ++evaluations;
    ASSERT_TRUE(eval->validation);
    EXPECT_NE(eval->validation->loss, eval->loss);
    if (event.step < result.trace.steps) continue;
    EXPECT_EQ(result.validation, (Validation{event.step, eval->validation->loss,
                                             eval->validation->accuracy.value(), 16}));
  }
  EXPECT_EQ(evaluations, 6);
  EXPECT_EQ(shown, result.validation);
}

// The run trains on 48 of 64 samples in batches of 8: 6 steps an epoch, each of these samples once.
TEST_F(ValidatedRun, TrainsOnTheOtherSamplesAlone) {
  EXPECT_EQ(train(options_, data_).trace.steps, 36);
  EXPECT_EQ(data_.train.count(), 48);
  EXPECT_EQ(data_.validation.count(), 16);
}

TEST_F(ValidatedRun, WithoutSamplesToValidateWithHasNoGuard) {
  options_.config.data.validation_percent = 0;
  try {
    refuse_unwatched_guard(options_.config, "run.json");
    ADD_FAILURE() << "taken";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "run.json: found a validation guard over data with \"validation_percent\" 0, "
                 "expected some to validate with: the test samples decide nothing");
  }
  EXPECT_THROW((void)train(options_, load_data(options_.config)), std::logic_error);
  set_freeze(R"({"alpha": 0.5, "start_epoch": 2})");
  EXPECT_NO_THROW(refuse_unwatched_guard(options_.config, "run.json"));
  const TrainResult result = train(options_, load_data(options_.config));
  EXPECT_EQ(result.validation, std::nullopt);
}

TEST_F(ValidatedRun, IsAnotherRunWithOtherSamplesToValidateWithAndTheSameWithOtherTests) {
  const auto identity = [&](const Dataset& data) {
    return identify_run(options_.config, "model", data, 36);
  };
  Dataset other = data_;
  other.test = relabel(data_.test, at::zeros_like(data_.test.whole().labels));
  EXPECT_EQ(identity(other), identity(data_));
  other.validation = relabel(data_.validation, at::zeros_like(data_.validation.whole().labels));
  EXPECT_NE(identity(other), identity(data_));
}

std::vector<float> firsts_of(const SampleSource& source) {
  const Samples part = source.whole();
  std::vector<float> values;
  for (std::int64_t i = 0; i < part.count(); ++i) {
    values.push_back(part.inputs[0][i].flatten()[0].item<float>());
  }
  return values;
}

// The first pixel tells samples of normal noise apart.
TEST(ValidationSplit, TakesSamplesAwayAndKeepsTheOthersInTheirOrder) {
  const Dataset whole = make_synthetic(101, 9, 1, 2, 3, 4);
  const std::vector<float> all = firsts_of(whole.train);
  std::set<std::vector<float>> chosen;
  for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL}) {
    for (const int percent : {0, 1, 10, 50, 90}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(percent) + " %");
      const Dataset split = split_validation(whole, percent, seed);
      EXPECT_EQ(split.validation.count(), (101 * percent + 99) / 100);
      EXPECT_TRUE(at::equal(split.test.whole().inputs[0], whole.test.whole().inputs[0]));
      const std::vector<float> taken = firsts_of(split.validation);
      std::vector<float> kept;
      std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [&](float first) {
        return std::find(taken.begin(), taken.end(), first) == taken.end();
      });
      EXPECT_EQ(firsts_of(split.train), kept);
      EXPECT_EQ(kept.size() + taken.size(), all.size());
      if (percent == 10) chosen.insert(taken);
    }
  }
  EXPECT_EQ(chosen.size(), 3U) << "each seed chooses its own";
  EXPECT_THROW(split_validation(split_validation(whole, 10, 1), 10, 1), std::logic_error);
}

// The test is chi-square over the 10 samples, of which one is chosen: with 9 degrees of freedom,
// 27.9 is exceeded by chance once in a thousand; the seeds are fixed, so the outcome is too.
TEST(ValidationSplit, FavoursNoSample) {
  const Dataset whole = make_synthetic(10, 1, 1, 1, 2, 4);
  const std::vector<float> all = firsts_of(whole.train);
  constexpr int kDraws = 2'000;
  std::vector<int> counts(10);
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const float taken = firsts_of(split_validation(whole, 10, seed).validation).at(0);
    ++counts[static_cast<std::size_t>(std::find(all.begin(), all.end(), taken) - all.begin())];
  }
  double chi_square = 0;
  for (const int count : counts) {
    chi_square += (count - kDraws / 10.0) * (count - kDraws / 10.0) / (kDraws / 10.0);
  }
  EXPECT_LT(chi_square, 27.9);
}

}  // namespace
}  // namespace frazil
