// Teacher relaying: each device has a block of the teacher and of the student, in one process or in
// several. The student's blocks have the bits that each has where it is taught alone on one device,
// one block after another, as blockwise distillation is written down.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/exec/models/distillation.h"
#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/test_models.h"
#include "tests/exec/support/process_run.h"

namespace frazil {
namespace {

constexpr std::uint64_t kRelaySeed = 11;
constexpr int kRelayBlocks = 4;
constexpr Step kRelaySteps = 5;
const DistillationConfig kRelayNetworks{.blocks = kRelayBlocks};

TestModel four_blocks() {
  TestModel model{.spec = make_distillation(make_small_networks(kRelayNetworks)),
                  .samples = {},
                  .mask = std::string(kRelayBlocks + 1, '1')};
  model.samples = [](const StepShape& shape) {
    return make_distillation_samples(kRelayNetworks, shape);
  };
  return model;
}

// A block to each device: each block but the last has a teacher's layer, two of the student and the
// loss.
PlanForm relayed() { return {.devices = kRelayBlocks, .cuts = {4, 8, 12}}; }

std::vector<LayerState> train(frazil::Run& run, const TestModel& model, const Plan& plan,
                              const std::function<void(Step)>& step) {
  run.transition_to(plan);
  for (Step s = 0; s < kRelaySteps; ++s) step(s);
  EXPECT_EQ(run.model().layers.size(), model.spec.layers.size());
  return run.gather_states();
}

std::vector<Samples> samples_of(const TestModel& model, Step step) {
  return model.samples({.seed = static_cast<std::uint64_t>(step)});
}

std::vector<LayerState> train_alone(const TestModel& model, int block) {
  std::string mask(kRelayBlocks, '0');
  mask[static_cast<std::size_t>(block)] = '1';
  frazil::Run run(model.spec, momentum_sgd(), kRelaySeed, 1);
  return train(run, model, make_plan(model, {.mask = mask + "1"}),
               [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); });
}

void expect_equal(const LayerState& a, const LayerState& b, const std::string& name) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size()) << name;
  for (std::size_t p = 0; p < a.parameters.size(); ++p) {
    EXPECT_TRUE(at::equal(a.parameters[p], b.parameters[p])) << name;
  }
  ASSERT_EQ(a.first_moment.size(), b.first_moment.size()) << name;
  for (std::size_t p = 0; p < a.first_moment.size(); ++p) {
    EXPECT_TRUE(at::equal(a.first_moment[p], b.first_moment[p])) << name << ", momentum";
  }
  ASSERT_EQ(a.statistics.size(), b.statistics.size()) << name;
  for (std::size_t p = 0; p < a.statistics.size(); ++p) {
    EXPECT_TRUE(at::equal(a.statistics[p], b.statistics[p])) << name << ", statistics";
  }
}

// Devices over processes as evenly as can be, in order.
ProcessShape spread(int devices, int processes) {
  ProcessShape shape;
  for (int device = 0; device < devices; ++device) {
    shape.process_of.push_back(device * processes / devices);
  }
  return shape;
}

// Compares what each block has learnt alone with what it has learnt among the others.
void expect_bits_of_sequential_distillation(const std::vector<LayerState>& together) {
  const TestModel model = four_blocks();
  int compared = 0;
  for (int block = 0; block < kRelayBlocks; ++block) {
    const std::vector<LayerState> alone = train_alone(model, block);
    for (std::size_t l = 0; l < alone.size(); ++l) {
      const LayerSpec& layer = model.spec.layers[l];
      if (layer.block != BlockId{block} || !layer.name.starts_with("student.")) continue;
      expect_equal(alone[l], together.at(l), layer.name);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * (kRelayBlocks - 1) + 1);
}

TEST(RelayedTeacher, HasTheBitsOfSequentialDistillationInOneProcess) {
  const TestModel model = four_blocks();
  frazil::Run run(model.spec, momentum_sgd(), kRelaySeed, kRelayBlocks);
  expect_bits_of_sequential_distillation(
      train(run, model, make_plan(model, relayed()),
            [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); }));
}

// Decoupled updates: no device waits for another before it goes on.
TEST(RelayedTeacher, HasThemWithoutABarrierAndReadsNoOldWeights) {
  const TestModel model = four_blocks();
  frazil::Run run(model.spec, momentum_sgd(), kRelaySeed, kRelayBlocks);
  Plan plan = make_plan(model, relayed());
  plan.steps_ahead = static_cast<int>(kRelaySteps) - 1;
  run.transition_to(plan);
  std::vector<StepRequest> requests;
  for (Step step = 0; step < kRelaySteps; ++step) {
    requests.push_back(
        {.step = step, .learning_rate = 1e-2, .micro_batches = samples_of(model, step)});
  }
  std::size_t reads = 0;
  for (const StepResult& result : run.steps(requests)) {
    for (const WeightRead& read : result.weight_reads) EXPECT_EQ(read.lag, 0);
    reads += result.weight_reads.size();
  }
  EXPECT_GT(reads, 0U);
  expect_bits_of_sequential_distillation(run.gather_states());
}

TEST(RelayedTeacher, HasThemOverTwoAndOverFourProcesses) {
  const TestModel model = four_blocks();
  for (const std::vector<int>& process_of :
       {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 2, 3}}) {
    SCOPED_TRACE(std::to_string(process_of.back() + 1) + " processes");
    ProcessRun run(model.spec, momentum_sgd(), kRelaySeed, ProcessShape{.process_of = process_of});
    expect_bits_of_sequential_distillation(
        train(run, model, make_plan(model, relayed()),
              [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); }));
  }
}

// Devices that share a block take whole micro-batches in turn.
TEST(RelayedTeacher, HasThemOnReplicasAndWithABlockOnSeveralDevices) {
  const TestModel model = four_blocks();
  for (const PlanForm& form : {PlanForm{.devices = 1, .replicas = 2},
                               PlanForm{.devices = 2, .cuts = {4}, .shared_stage = 0},
                               PlanForm{.devices = 2, .cuts = {8}, .replicas = 2}}) {
    SCOPED_TRACE(name_of(form));
    frazil::Run run(model.spec, momentum_sgd(), kRelaySeed, form.all_devices());
    expect_bits_of_sequential_distillation(
        train(run, model, make_plan(model, form),
              [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); }));
  }
}

// Data parallel, and pipelines side by side or with a stage on two devices.
std::vector<PlanForm> hybrids(int cut) {
  return {{.devices = 1, .replicas = 4},
          {.devices = 2, .cuts = {cut}, .replicas = 2},
          {.devices = 2, .cuts = {cut}, .shared_stage = 0}};
}

TEST(RelayedTeacher, HasThemOnHybridsOverTwoAndOverFourProcesses) {
  const TestModel model = four_blocks();
  for (const PlanForm& form : hybrids(8)) {
    for (const int processes : {2, std::min(4, form.all_devices())}) {
      SCOPED_TRACE(name_of(form) + " over " + std::to_string(processes));
      ProcessRun run(model.spec, momentum_sgd(), kRelaySeed, spread(form.all_devices(), processes));
      expect_bits_of_sequential_distillation(
          train(run, model, make_plan(model, form),
                [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); }));
    }
  }
}

// The statistics of the student's norms are those of each micro-batch, wherever it is.
TEST(RelayedTeacher, WithBatchNormHasTheBitsOfOneDeviceOnHybridsOverTwoAndOverFourProcesses) {
  const TestModel model = distilled_vgg_model();
  frazil::Run alone(model.spec, momentum_sgd(), kRelaySeed, 1);
  const std::vector<LayerState> wanted = train(alone, model, make_plan(model, {}), [&](Step step) {
    alone.step(step, 1e-2, samples_of(model, step));
  });
  int cut = 0;
  while (model.spec.layers[static_cast<std::size_t>(cut)].block == BlockId{0}) ++cut;
  std::size_t statistics = 0;
  for (const PlanForm& form : hybrids(cut)) {
    for (const int processes : {2, std::min(4, form.all_devices())}) {
      SCOPED_TRACE(name_of(form) + " over " + std::to_string(processes));
      ProcessRun run(model.spec, momentum_sgd(), kRelaySeed, spread(form.all_devices(), processes));
      const std::vector<LayerState> states =
          train(run, model, make_plan(model, form),
                [&](Step step) { run.step(step, 1e-2, samples_of(model, step)); });
      for (std::size_t l = 0; l < wanted.size(); ++l) {
        expect_equal(wanted[l], states.at(l), model.spec.layers[l].name);
        statistics += wanted[l].statistics.size();
      }
    }
  }
  EXPECT_GT(statistics, 0U);
}

}  // namespace
}  // namespace frazil
