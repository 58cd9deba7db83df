// Whole runs over NCCL, in the place of which the fake stands: steps, transitions between all
// schedules, evaluation, and a lost process. No schedule is refused, and each has the bits of one
// device.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "tests/exec/communication/fake_nccl_world.h"
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

}  // namespace
}  // namespace frazil
