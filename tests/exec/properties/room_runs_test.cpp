// A run whose mask needs more room than there is goes on by another plan where one fits, else under
// the mask it has. Plans are made with what signals take.

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/freezing/signal_memory.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/json.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

constexpr Bytes kAmple{1 << 24};

// The head alone trains, then all blocks.
constexpr const char* kThaw =
    R"({"policy": {"kind": "gradual-unfreeze", "blocks_per_interval": 4, "start_epoch": 1}})";

struct Told {
  TrainResult result;
  std::vector<std::string> warnings;
};

class RunWithRoom : public testing::Test {
 protected:
  RunWithRoom() {
    options_.config = tiny_config();
    set_freeze(kThaw);
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(kAmple);
  }

  void set_freeze(const std::string& json) {
    options_.config.freeze = parse_freeze(parse_json(json, "freeze"), options_.config.model, {});
  }
  Told run() {
    Told told;
    told.result = train(options_, load_data(options_.config), [&](const TrainProgress& now) {
      if (now.is_warning) told.warnings.push_back(now.event);
    });
    return told;
  }

  TrainOptions options_;
};

Bytes largest_peak(const TrainPhase& phase) {
  Bytes most;
  for (const DeviceMemory& device : phase.memory.value().devices) {
    most = std::max(most, device.predicted.peak);
  }
  return most;
}

std::vector<std::string> masks_of(const TrainResult& result) {
  std::vector<std::string> masks;
  for (const TrainPhase& phase : result.phases) masks.push_back(phase.plan.mask.text());
  return masks;
}

TEST_F(RunWithRoom, TakesAnotherPlanForAThawThatTheKeptOneHasNoRoomFor) {
  options_.elastic = false;
  const Told ample = run();
  ASSERT_EQ(masks_of(ample.result), (std::vector<std::string>{"00001", "11111"}));
  ASSERT_EQ(ample.result.phases[1].plan.pipelines.size(),
            ample.result.phases[0].plan.pipelines.size());
  ASSERT_EQ(ample.result.phases[0].plan.pipelines.size(), 2U) << "replicas hold all";
  options_.cluster = tiny_cluster(Bytes{largest_peak(ample.result.phases[1]).count - 1});
  const Told tight = run();
  EXPECT_EQ(masks_of(tight.result), masks_of(ample.result));
  EXPECT_EQ(tight.result.phases[0].plan, ample.result.phases[0].plan);
  EXPECT_EQ(tight.result.phases[1].plan.pipelines.size(), 1U) << "two stages";
  EXPECT_EQ(tight.result.weight_hash, ample.result.weight_hash);
  EXPECT_TRUE(tight.warnings.empty());
}

TEST_F(RunWithRoom, DeclinesAThawThatNoPlanHasRoomForAndSaysSoOnce) {
  for (const bool elastic : {true, false}) {
    SCOPED_TRACE(elastic ? "elastic" : "kept");
    set_freeze(R"({"policy": {"kind": "none"}})");
    options_.elastic = elastic;
    options_.cluster = tiny_cluster(kAmple);
    set_freeze(R"({"policy": {"kind": "static", "mask": "00001"}})");
    const Told frozen = run();
    options_.cluster = tiny_cluster(largest_peak(frozen.result.phases[0]));
    set_freeze(kThaw);
    const Told told = run();
    EXPECT_EQ(masks_of(told.result), std::vector<std::string>{"00001"});
    EXPECT_EQ(told.result.weight_hash, frozen.result.weight_hash);
    const std::string sentence = "Mask 00001 stays: no plan has room for 11111.";
    EXPECT_EQ(told.warnings, std::vector<std::string>{sentence});
    const auto declined = [&](const FreezeEvent& event) {
      const auto* mask = std::get_if<MaskEvent>(&event.what);
      return mask != nullptr && mask->by == kNoRoom && mask->reason == sentence &&
             mask->mask.text() == "00001";
    };
    EXPECT_EQ(
        std::count_if(told.result.trace.events.begin(), told.result.trace.events.end(), declined),
        1);
  }
}

// AutoFreeze's sums count as optimizer state, and every byte that is predicted is measured.
TEST_F(RunWithRoom, CountsTheSumsThatAutoFreezeKeepsToTheByte) {
  set_freeze(R"({"policy": {"kind": "autofreeze", "interval_steps": 5}})");
  const TrainResult summed = run().result;
  set_freeze(R"({"policy": {"kind": "none"}})");
  const TrainResult plain = run().result;
  ASSERT_FALSE(summed.phases.empty());
  const auto optimizer = static_cast<std::size_t>(MemoryKind::kOptimizer);
  const auto parameters = static_cast<std::size_t>(MemoryKind::kParameters);
  int compared = 0;
  for (const TrainPhase& phase : summed.phases) {
    if (!phase.memory) continue;
    for (const DeviceMemory& device : phase.memory->devices) {
      EXPECT_EQ(device.measured.kinds[optimizer], device.predicted.kinds[optimizer]);
      ++compared;
    }
  }
  EXPECT_GE(compared, 2);
  for (std::size_t d = 0; d < 2; ++d) {
    const HeldMemory& with = summed.phases[0].memory.value().devices[d].measured;
    const HeldMemory& without = plain.phases[0].memory.value().devices[d].measured;
    EXPECT_EQ(with.kinds[optimizer], without.kinds[optimizer] + with.kinds[parameters])
        << "every block is active";
  }
}

// There is room for replicas but for their sums, so the planner answers with stages.
TEST_F(RunWithRoom, PlansForTheSumsThatAutoFreezeKeeps) {
  set_freeze(R"({"policy": {"kind": "none"}})");
  const TrainResult plain = run().result;
  ASSERT_EQ(plain.phases[0].plan.pipelines.size(), 2U);
  options_.cluster = tiny_cluster(largest_peak(plain.phases[0]));
  EXPECT_EQ(run().result.phases[0].plan, plain.phases[0].plan);
  set_freeze(R"({"policy": {"kind": "autofreeze", "start_step": 1000}})");
  EXPECT_EQ(run().result.phases[0].plan.pipelines.size(), 1U);
}

TEST(SignalMemory, IsAnotherCopyOfTheParametersOfWhatIsSummedAlone) {
  const ModelProfile profile = tiny_profile(tiny_config());
  const FreezeConfig summed{AutoFreeze{}, {}};
  for (const FreezePolicy& policy :
       std::vector<FreezePolicy>{NoFreeze{}, PaperFreeze{}, PlasticityFreeze{}, AlphaFreeze{}}) {
    EXPECT_EQ(with_signal_memory(profile, {policy, {}}), profile) << name_of(policy);
  }
  const ModelProfile with = with_signal_memory(profile, summed);
  EXPECT_EQ(model_hash(with), model_hash(profile)) << "plans are of the same model";
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    EXPECT_EQ(with.layers[l].optimizer_state,
              profile.layers[l].optimizer_state + profile.layers[l].parameters);
  }
}

}  // namespace
}  // namespace frazil
