// Whole runs over NCCL, in the place of which the fake stands: steps, transitions between all
// schedules, evaluation, and a lost process. No schedule is refused, and each has the bits of one
// device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "exec/train/processes/run_world.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/communication/fake_nccl_world.h"
#include "tests/exec/devices/fake_accelerator.h"
#include "tests/exec/support/kept_world.h"

namespace frazil {
namespace {

ProcessShape shape_over_nccl(std::vector<int> process_of) {
  return {.process_of = std::move(process_of),
          .between = [](ProcessShape::Ranks hosts, const CommunicatorOptions& options) {
            return over_fake_nccl(std::move(hosts), options);
          }};
}

class WholeRunOverNccl : public FakeNcclTest {
 protected:
  // Runs all forms in one run, by turns of two optimizers' runs, and returns their schedules.
  static std::set<ScheduleKind> run_forms(const ProcessShape& shape,
                                          const std::vector<FamilyForm>& forms,
                                          MessageOrder order) {
    OneDevice one_device;
    std::set<ScheduleKind> seen;
    for (int index = 0; index < kTrainedVits; ++index) {
      KeptWorld world(make_trained_vit(index), shape, {.order = order});
      for (std::size_t f = static_cast<std::size_t>(index); f < forms.size(); f += kTrainedVits) {
        const FamilyForm& form = forms[f];
        SCOPED_TRACE(name_of(form));
        const Plan plan = place_family(form, structure_of(world.vit()));
        EXPECT_EQ(world.hash(plan, form.micro_batches),
                  one_device.hash(index, form.micro_batches, form.mask));
        seen.insert(form.kind);
      }
    }
    EXPECT_GT(fake_nccl_counts().groups, 0);
    return seen;
  }
};

TEST_F(WholeRunOverNccl, TakesEveryScheduleOnTwoDevices) {
  const auto seen = run_forms(shape_over_nccl({0, 0}), list_forms(2, {6}), MessageOrder::kAsSent);
  EXPECT_EQ(seen.size(), synchronous_schedules().size());
}

TEST_F(WholeRunOverNccl, TakesEveryScheduleOnFourDevicesInListsForTags) {
  const auto seen =
      run_forms(shape_over_nccl({0, 0, 0, 0}), list_forms(4, {8}), MessageOrder::kByTag);
  EXPECT_GE(seen.size() + 2, synchronous_schedules().size());
}

TEST_F(WholeRunOverNccl, TakesADrawnThirdOfAllSchedulesOverProcesses) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<FamilyForm> forms = list_forms(4, {8});
  std::shuffle(forms.begin(), forms.end(), random);
  forms.resize(forms.size() / 3);
  std::set<ScheduleKind> drawn;
  for (const FamilyForm& form : forms) drawn.insert(form.kind);
  EXPECT_GT(drawn.size(), 1U);
  EXPECT_EQ(run_forms(shape_over_nccl({0, 0, 1, 1}), forms, MessageOrder::kAsSent), drawn);
}

TEST_F(WholeRunOverNccl, EvaluatesAsOneDeviceDoes) {
  const TrainedVit vit = make_trained_vit(0);
  const Samples samples = small_micro_batches(9, 1).front();
  frazil::Run alone(make_vit(vit.model), vit.optimizer, 7, 1);
  KeptWorld world(vit, shape_over_nccl({0, 1}));
  ProcessRun& run = world.begin();
  const Plan one = make_small_plan(run.structure(), {});
  alone.transition_to(one);
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{3}}}));
  EXPECT_EQ(run.evaluate(samples, 2).loss, alone.evaluate(samples, 2).loss);
}

// The connections of the lost world are given up, and the next one makes others.
TEST_F(WholeRunOverNccl, GoesOnWithoutALostProcess) {
  const TrainedVit vit = make_trained_vit(1);
  OneDevice one_device;
  const std::uint64_t expected = one_device.hash(1, 6, "11111");
  KeptWorld world(vit, shape_over_nccl({0, 1, 2}));
  ProcessRun& run = world.begin();
  const auto step = [&](Step number) {
    run.step(number, learning_rate(vit.optimizer, number, 5), small_micro_batches(number, 6));
  };
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{}, {}, {}}, .owned = {2, 2, 2}}));
  step(0);
  run.kill(2);
  EXPECT_THROW(step(3), StepUndone);
  EXPECT_EQ(run.regroup(), (std::vector<std::string>{"rank 2 is lost: its process has ended"}));
  run.transition_to(make_small_plan(run.structure(), {.cuts = {{4}}}));
  step(3);
  EXPECT_EQ(run.weight_hash(), expected);
}

// Streams of GPUs, in the place of which the fake accelerator stands, in processes of their own.
class GpusOverNccl : public FakeNcclTest {
 protected:
  void SetUp() override {
    FakeNcclTest::SetUp();
    fake_.reset();
    fake_.gpus = 3;
  }
  void TearDown() override {
    FakeNcclTest::TearDown();
    fake_.reset();
  }

  static RunOptions streams() {
    return {.order = MessageOrder::kAsSent,
            .devices = {.kind = DeviceKind::kCuda, .plugin = FRAZIL_FAKE_PLUGIN}};
  }
  static ProcessShape shape(std::vector<int> process_of) {
    return {.process_of = std::move(process_of), .nccl = &fake_nccl()};
  }
  static std::uint64_t hash(const ProcessShape& shape, const std::vector<int>& cuts) {
    KeptWorld world(make_trained_vit(0), shape, streams());
    return world.hash(make_small_plan(structure_of(world.vit()), {.cuts = {cuts}}), 6);
  }

  FakeAccelerator& fake_ = open_fake(FRAZIL_FAKE_PLUGIN);
};

TEST_F(GpusOverNccl, HaveTheBitsOfOneDevice) {
  OneDevice one_device;
  EXPECT_EQ(hash(shape({0, 1}), {3}), one_device.hash(0, 6, "11111"));
  EXPECT_GT(fake_nccl_counts().groups, 0);
}

TEST_F(GpusOverNccl, ReachThoseOfTheirOwnProcessByPointer) {
  OneDevice one_device;
  EXPECT_EQ(hash(shape({0, 0, 1}), {2, 4}), one_device.hash(0, 6, "11111"));
  // What lies between the first two devices would take as many.
  const int across = fake_nccl_counts().communicators;
  reset_fake_nccl();
  EXPECT_EQ(hash(shape({0, 1, 2}), {2, 4}), one_device.hash(0, 6, "11111"));
  EXPECT_GT(fake_nccl_counts().communicators, across);
}

TEST_F(GpusOverNccl, AreTakenInTurnByTheDevicesOfAllProcesses) {
  (void)hash(shape({0, 1}), {3});
  std::set<int> gpus;
  for (const FakeStream& stream : fake_.streams) gpus.insert(stream.gpu);
  EXPECT_EQ(gpus, (std::set<int>{0, 1}));
}

TEST_F(GpusOverNccl, AreNotSharedByDevicesOfAProcess) {
  fake_.gpus = 1;
  const TrainedVit vit = make_trained_vit(0);
  PoolPlace place = place_of({0, 0, 1}, 0);
  place.nccl = &fake_nccl();
  try {
    DevicePool(make_vit(vit.model), vit.optimizer, 7, place, streams());
    FAIL() << "two devices share a GPU";
  } catch (const InputError& refused) {
    EXPECT_STREQ(refused.what(),
                 "--transport nccl: found devices 0 and 1 on GPU 0, expected a GPU for each device "
                 "of a process");
  }
}

}  // namespace
}  // namespace frazil
