#include "planner/lowering/footprint.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "planner/schedules/make_schedule.h"
#include "profiles/error.h"
#include "sim/gradient_tree_shape.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// Makes layers of 1000 parameter bytes and 2000 optimizer bytes, with 100 stash bytes and
// boundaries of 10 bytes per sample; the plans have micro-batches of 4.
ModelProfile chain(int layers) {
  return make_chain(layers, milliseconds{1}, milliseconds{1}, milliseconds{1});
}

Plan two_stages(const std::string& mask, int micro_batches) {
  Plan plan;
  plan.batch_size = 4 * micro_batches;
  plan.micro_batch_size = 4;
  plan.mask = FreezeMask::parse(mask, "test", 1);
  plan.pipelines = {make_pipeline(6, {LayerId{4}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  return plan;
}

StageFootprint footprint(const Plan& plan, const ModelProfile& profile, int pipeline, int stage) {
  return find_footprint(plan, PipelineId{pipeline}, StageId{stage}, profile,
                        find_activity(profile, plan.mask));
}

TEST(Footprint, CountsEveryPartOfAnActiveStage) {
  const Plan plan = two_stages("111111", 4);
  const ModelProfile profile = chain(6);
  const StageFootprint first = footprint(plan, profile, 0, 0);
  EXPECT_EQ(first.parameters, Bytes{4000});
  EXPECT_EQ(first.gradients, Bytes{4000} * 3);  // a tree over four leaves holds three sets
  EXPECT_EQ(first.optimizer, Bytes{8000});
  EXPECT_EQ(first.stash_per_micro_batch, Bytes{1600});
  EXPECT_EQ(first.receive_per_micro_batch, Bytes{0});
  const StageFootprint last = footprint(plan, profile, 0, 1);
  EXPECT_EQ(last.parameters, Bytes{2000});
  // The first layer's input arrives, which its stash already holds.
  EXPECT_EQ(last.receive_per_micro_batch, Bytes{0});
}

TEST(Footprint, FrozenLayersKeepTheirParametersAlone) {
  const Plan plan = two_stages("001011", 4);
  const StageFootprint first = footprint(plan, chain(6), 0, 0);
  EXPECT_EQ(first.parameters, Bytes{4000});
  EXPECT_EQ(first.gradients, Bytes{1000} * 3);
  EXPECT_EQ(first.optimizer, Bytes{2000});
  // Layer 3 is frozen, but gradients pass through it, so it saves its activations.
  EXPECT_EQ(first.stash_per_micro_batch, Bytes{800});
  ModelProfile measured = chain(6);
  for (CostSample& cost : measured.layers[3].costs) {
    cost.stash_frozen = Bytes{30} * cost.micro_batch_size;
  }
  EXPECT_EQ(footprint(plan, measured, 0, 0).stash_per_micro_batch, Bytes{400 + 4 * 30});
}

TEST(Footprint, RunningSumHoldsOneGradientSet) {
  Plan plan = two_stages("111111", 16);
  EXPECT_EQ(footprint(plan, chain(6), 0, 1).gradients, Bytes{2000} * 5);
  plan.reduction = ReductionMode::kFast;
  EXPECT_EQ(footprint(plan, chain(6), 0, 1).gradients, Bytes{2000});
}

// Counts weight versions along a list: the newest, and those that micro-batches in flight have
// read.
std::int64_t count_versions(const std::vector<Action>& list) {
  std::map<MicroBatchId, int> read;
  int newest = 0;
  std::size_t most = 1;
  for (const Action& action : list) {
    if (action.kind == ActionKind::kForward) read[action.micro_batches->first] = newest;
    if (action.kind == ActionKind::kBackward) read.erase(action.micro_batches->first);
    if (action.kind == ActionKind::kUpdate) ++newest;
    std::set<int> kept{newest};
    for (const auto& [micro_batch, version] : read) kept.insert(version);
    most = std::max(most, kept.size());
  }
  return static_cast<std::int64_t>(most);
}

// The footprint counts versions by a formula, without the list.
TEST(Footprint, CountsTheVersionsThatPipeDreamsListsKeep) {
  const ModelProfile profile = chain(6);
  for (int stages = 1; stages <= 6; ++stages) {
    std::vector<LayerId> cuts;
    std::vector<DeviceId> devices{DeviceId{0}};
    for (int s = 1; s < stages; ++s) {
      cuts.push_back(LayerId{s});
      devices.push_back(DeviceId{s});
    }
    for (int micro_batches = 1; micro_batches <= 14; ++micro_batches) {
      for (int in_flight = 1; in_flight <= 9; ++in_flight) {
        Plan plan = two_stages("111111", micro_batches);
        plan.pipelines = {
            make_pipeline(6, cuts, devices, {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
        plan.versions = WeightVersions::kStash;
        plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream, .in_flight = in_flight};
        Plan sync = plan;
        sync.versions = WeightVersions::kSync;
        const Schedule lists = make_schedule(plan, stages);
        for (std::size_t s = 0; s < lists.devices.size(); ++s) {
          const int stage = static_cast<int>(s);
          EXPECT_EQ(
              footprint(plan, profile, 0, stage).parameters,
              footprint(sync, profile, 0, stage).parameters * count_versions(lists.devices[s]))
              << "stage " << s << " of " << stages << ", " << micro_batches << " micro-batches, "
              << in_flight << " in flight";
        }
      }
    }
  }
}

TEST(Footprint, WeightVersionsAreKeptOfLayersThatAreUpdated) {
  Plan plan = two_stages("001011", 8);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream};
  plan.versions = WeightVersions::kStash;
  const ModelProfile profile = chain(6);
  EXPECT_EQ(footprint(plan, profile, 0, 0).parameters, Bytes{1000} * 2 + Bytes{3000});
  EXPECT_EQ(footprint(plan, profile, 0, 0).gradients, Bytes{1000});
  EXPECT_EQ(footprint(plan, profile, 0, 1).parameters, Bytes{2000});
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kPipeDream2Bw};
  plan.versions = WeightVersions::kTwoBuffered;
  EXPECT_EQ(footprint(plan, profile, 0, 0).parameters, Bytes{1000} * 2 + Bytes{3000});
  EXPECT_EQ(footprint(plan, profile, 0, 1).parameters, Bytes{2000} * 2);
  EXPECT_EQ(footprint(plan, profile, 0, 0).gradients, Bytes{1000} * 2) << "of two micro-batches";
}

TEST(Footprint, GradientSetsFollowTheMicroBatchesAPipelineOwns) {
  Plan plan = two_stages("111111", 8);
  plan.pipelines.assign(3, plan.pipelines.front());
  for (int p = 0; p < 3; ++p) {
    for (int s = 0; s < 2; ++s) {
      plan.pipelines[static_cast<std::size_t>(p)].stages[static_cast<std::size_t>(s)].devices = {
          DeviceId{2 * p + s}};
    }
  }
  plan.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{2}},
                                     {MicroBatchId{5}, MicroBatchId{5}}};
  plan.pipelines[1].micro_batches = {{MicroBatchId{3}, MicroBatchId{4}},
                                     {MicroBatchId{6}, MicroBatchId{7}}};
  plan.pipelines[2].micro_batches = {};
  const ModelProfile profile = chain(6);
  EXPECT_EQ(footprint(plan, profile, 0, 1).gradients,
            Bytes{2000} * held_gradient_sets({{0, 3}, {5, 6}}, 8));
  EXPECT_EQ(footprint(plan, profile, 1, 1).gradients,
            Bytes{2000} * held_gradient_sets({{3, 5}, {6, 8}}, 8));
  // A replica without micro-batches still holds the finished sum that its update reads.
  EXPECT_EQ(footprint(plan, profile, 2, 1).gradients, Bytes{2000});
  // Two pipelines that take turns on one device hold at most what both hold.
  plan.pipelines[1].stages[1].devices = plan.pipelines[0].stages[1].devices;
  EXPECT_EQ(footprint(plan, profile, 0, 1).gradients,
            Bytes{2000} * (held_gradient_sets({{0, 3}, {5, 6}}, 8) +
                           held_gradient_sets({{3, 5}, {6, 8}}, 8)));
}

TEST(Footprint, BoundariesOnTheSameDeviceNeedNoReceiveBuffer) {
  Plan plan = two_stages("111111", 4);
  plan.pipelines[0].stages[1].devices = {DeviceId{0}};
  EXPECT_EQ(footprint(plan, chain(6), 0, 1).receive_per_micro_batch, Bytes{0});
}

TEST(Footprint, EveryTensorThatAFrozenLayerReceivesHasABuffer) {
  ModelProfile profile = chain(6);
  // Layer 5 also reads two tensors of layer 1; the edge from 4 to 5 stays inside the stage.
  profile.edges.insert(profile.edges.begin() + 2,
                       {LayerId{1}, LayerId{5}, EdgeKind::kDetached, {Bytes{3}, Bytes{5}}});
  // Layer 4 alone is without a backward in stage 1; layer 5's stash holds what that layer reads.
  EXPECT_EQ(footprint(two_stages("000001", 4), profile, 0, 1).receive_per_micro_batch, Bytes{40});
  EXPECT_EQ(footprint(two_stages("111111", 4), profile, 0, 1).receive_per_micro_batch, Bytes{0});
}

TEST(Footprint, RefusesSumsThatNoMachineHolds) {
  ModelProfile profile = chain(6);
  for (Layer& layer : profile.layers) layer.parameters = Bytes{kLargestQuantity};
  EXPECT_THROW(footprint(two_stages("111111", 4), profile, 0, 0), InputError);
}

}  // namespace
}  // namespace frazil
