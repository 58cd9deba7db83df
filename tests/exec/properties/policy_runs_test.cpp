// Training under any policy is replayed by what it records, and a resumed run decides on as one
// that never ended.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>
#include <set>

#include "exec/train/trainer.h"
#include "planner/freezing/freeze_json.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

struct PolicyCase {
  std::string name;
  std::string freeze;
  int least_masks = 2;  // different ones, in a row
};

void PrintTo(const PolicyCase& one, std::ostream* out) { *out << one.name; }

std::vector<PolicyCase> cases() {
  const auto alone = [](const std::string& policy) { return R"({"policy": )" + policy + "}"; };
  return {{"none", alone(R"({"kind": "none"})"), 1},
          {"static", alone(R"({"kind": "static", "mask": "10101"})"), 1},
          {"alpha", R"({"alpha": 0.5, "start_epoch": 2, "interval_epochs": 1})", 3},
          // The embedding's gradient is the smallest here, which keeps the published rule from
          // freezing.
          {"pt_paper", alone(R"({"kind": "pt-paper", "alpha": 0.5, "interval_steps": 4})"), 1},
          {"autofreeze", alone(R"({"kind": "autofreeze", "interval_steps": 3})")},
          {"linear", alone(R"({"kind": "linear", "freeze_start": 0.1, "interval_steps": 2})"), 3},
          {"freezeout", alone(R"({"kind": "freezeout", "t0": 0.5})"), 4},
          {"plasticity", alone(R"({"kind": "plasticity", "tolerance": 0.9, "interval_steps": 2})")},
          {"plasticity_per_rate",
           alone(R"({"kind": "plasticity", "tolerance": 0.9, "per_rate": true, "thaw_at_rate": 0.5,
                 "smoothing": 0.5, "interval_steps": 2})")},
          {"gradual_unfreeze", alone(R"({"kind": "gradual-unfreeze", "interval_steps": 4})"), 4},
          {"random", alone(R"({"kind": "random", "active_layers": 1, "embedding_active": false,
                 "interval_steps": 1})"),
           4},
          {"decorated",
           R"({"policy": {"kind": "random", "active_layers": 1, "embedding_active": false,
                      "interval_steps": 1},
           "decorators": {"hysteresis": {"steps": 1}, "prefix": true,
                          "minimum_interval": {"steps": 2},
                          "validation_guard": {"metric": "loss", "sigmas": 0, "tolerance": 0,
                                               "hold_evaluations": 1}}})"}};
}

class Policy : public testing::TestWithParam<PolicyCase> {
 protected:
  Policy() {
    folder_ = fs::temp_directory_path() / ("frazil-policy-" + std::to_string(getpid()));
    options_.config = tiny_config();
    options_.config.optimizer.learning_rate = 1e-2;
    vit_of(options_.config).dropout = 0.1;
    options_.config.data.train_samples = 64;
    options_.config.data.validation_percent = 25;
    set_freeze(GetParam().freeze);
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(Bytes{600'000});
    data_ = load_data(options_.config);
  }
  ~Policy() override { fs::remove_all(folder_); }

  void set_freeze(const std::string& json) {
    options_.config.freeze =
        parse_freeze(parse_json(json, "freeze"), options_.config.model, folder_);
  }
  void replay(const FreezeTrace& trace) {
    write_freeze_trace(trace, folder_ / "trace.jsonl");
    set_freeze(R"({"policy": {"kind": "trace", "path": "trace.jsonl"}})");
  }
  TrainResult stop_and_resume(Step step) {
    fs::remove_all(folder_ / "checkpoints");
    options_.durable = DurableOptions{.folder = folder_ / "checkpoints", .every = 4};
    Step done = 0;
    options_.stop = [&] { return ++done == step; };
    EXPECT_EQ(train(options_, data_).stopped_at, step);
    options_.stop = {};
    options_.durable->resume = true;
    TrainResult result = train(options_, data_);
    options_.durable.reset();
    return result;
  }

  fs::path folder_;
  TrainOptions options_;
  Dataset data_;
};

void expect_same(const TrainResult& found, const TrainResult& expected) {
  EXPECT_EQ(found.weight_hash, expected.weight_hash);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(masks_of(found.trace), masks_of(expected.trace));
}

TEST_P(Policy, IsReplayedBitForBitByItsTraceWithoutMoving) {
  const TrainResult recorded = train(options_, data_);
  EXPECT_GE(masks_of(recorded.trace).size(), static_cast<std::size_t>(GetParam().least_masks));
  replay(recorded.trace);
  options_.elastic = false;
  options_.cluster = tiny_cluster(Bytes{1 << 24});  // for one plan under all masks
  const TrainResult replayed = train(options_, data_);
  expect_same(replayed, recorded);
  replay(replayed.trace);
  expect_same(train(options_, data_), recorded);
}

TEST_P(Policy, GoesOnAfterAnyStepAsOneThatNeverEnded) {
  const TrainResult whole = train(options_, data_);
  for (const Step step : {1, 6, 9}) {
    SCOPED_TRACE(step);
    const TrainResult resumed = stop_and_resume(step);
    EXPECT_EQ(resumed.first_step, step);
    expect_same(resumed, whole);
  }
}

TEST_P(Policy, SaysWhoDecidedAndWhy) {
  const TrainResult result = train(options_, data_);
  EXPECT_EQ(result.trace.provenance.at("freeze"), to_json(options_.config.freeze));
  for (const FreezeEvent& event : result.trace.events) {
    if (const auto* mask = std::get_if<MaskEvent>(&event.what)) {
      EXPECT_FALSE(mask->by.empty());
      EXPECT_EQ(mask->reason.back(), '.') << mask->reason;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryKind, Policy, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

class FreezingRun : public Policy {};

TEST_P(FreezingRun, WithFreezeOutsRatesIsAnotherThanWithItsMasksAlone) {
  TrainResult recorded = train(options_, data_);
  ASSERT_EQ(recorded.trace.provenance.count("rates"), 1U);
  recorded.trace.provenance.erase("rates");
  replay(recorded.trace);
  const TrainResult replayed = train(options_, data_);
  EXPECT_EQ(masks_of(replayed.trace), masks_of(recorded.trace));
  EXPECT_NE(replayed.weight_hash, recorded.weight_hash);
}

INSTANTIATE_TEST_SUITE_P(OfFreezeOut, FreezingRun, testing::Values(cases()[6]),
                         [](const auto& info) { return info.param.name; });

class GatedRun : public Policy {};

// A gate whose price is next to nothing lets all through, and one of ten thousand times the cost
// lets nothing through, whatever this machine takes to plan.
TEST_P(GatedRun, FreezesWhereASwitchPaysAndWaitsWhereItDoesNot) {
  const std::vector<TracedMask> free = masks_of(train(options_, data_).trace);
  for (const int margin : {1, 1'000'000}) {
    options_.config.freeze.decorators.amortisation = AmortisationGate{.margin_percent = margin};
    const TrainResult gated = train(options_, data_);
    if (margin == 1) {
      EXPECT_EQ(masks_of(gated.trace), free);
      continue;
    }
    EXPECT_EQ(masks_of(gated.trace).size(), 1U);
    const auto refused = [](const FreezeEvent& event) {
      const auto* mask = std::get_if<MaskEvent>(&event.what);
      return mask != nullptr && mask->by == "amortisation" &&
             mask->reason.starts_with("The transition would cost ");
    };
    EXPECT_EQ(std::count_if(gated.trace.events.begin(), gated.trace.events.end(), refused), 1)
        << "told once, not at every step";
    EXPECT_EQ(stop_and_resume(9).weight_hash, gated.weight_hash);
  }
}

TEST_P(GatedRun, SetsPredictedBesideMeasuredTransitionsPartByPart) {
  const TrainResult result = train(options_, data_);
  int transitions = 0;
  std::set<Duration> asked;
  for (const FreezeEvent& event : result.trace.events) {
    const auto* transition = std::get_if<TransitionEvent>(&event.what);
    if (transition == nullptr) continue;
    EXPECT_GT(transition->plan_time, Duration{0});
    EXPECT_GT(transition->start_time, Duration{0});
    EXPECT_EQ(transition->predicted.has_value(), transitions > 0) << "nothing is before the first";
    ++transitions;
    if (!transition->predicted) continue;
    // Planning takes nothing where the planner had answered ahead, else what asking took at first.
    if (transition->predicted->plan > Duration{0}) asked.insert(transition->predicted->plan);
    EXPECT_GT(transition->predicted->start, Duration{0});
    EXPECT_GT(transition->predicted->move, Duration{0}) << "the devices are told, at least";
  }
  EXPECT_LE(asked.size(), 1U);
  EXPECT_EQ(transitions, 3);
}

INSTANTIATE_TEST_SUITE_P(OfAlpha, GatedRun, testing::Values(cases()[2]),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace frazil
