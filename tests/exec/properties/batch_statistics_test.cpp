// The running statistics of batch normalisation are those of PyTorch's module that has seen the
// same micro-batches one after another, and the same bits under every plan.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "exec/checkpoint/checkpoint_file.h"
#include "exec/models/untrainable_blocks.h"
#include "profiles/error.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/models/model_checks.h"
#include "tests/exec/models/normed_cnn.h"
#include "tests/exec/support/process_run.h"
#include "tests/exec/support/sliced_runs.h"

namespace frazil {
namespace {

constexpr std::uint64_t kNormedSeed = 11;
constexpr double kNormedRate = 0.125;

std::vector<Samples> batch_at(const TestModel& model, Step step) {
  return model.samples(
      {.seed = static_cast<std::uint64_t>(step) + 1, .last_short_by = static_cast<int>(step % 2)});
}

LayerTensors statistics_of(frazil::Run& run) {
  LayerTensors statistics;
  for (const LayerState& state : run.gather_states()) statistics.push_back(state.statistics);
  return statistics;
}

std::vector<const LayerState*> pointers_to(const std::vector<LayerState>& states) {
  std::vector<const LayerState*> pointers;
  for (const LayerState& state : states) pointers.push_back(&state);
  return pointers;
}

double largest_difference(const LayerTensors& a, const LayerTensors& b) {
  double largest = 0;
  for (std::size_t l = 0; l < a.size(); ++l) {
    EXPECT_EQ(a[l].size(), b[l].size());
    for (std::size_t s = 0; s < a[l].size(); ++s) {
      EXPECT_EQ(a[l][s].scalar_type(), b[l][s].scalar_type());
      if (a[l][s].scalar_type() == at::kLong) {
        EXPECT_TRUE(at::equal(a[l][s], b[l][s])) << "counter of layer " << l;
      } else {
        largest = std::max(largest, (a[l][s] - b[l][s]).abs().max().item<double>());
      }
    }
  }
  return largest;
}

TEST(BatchStatistics, LeaveTheBitsOfAPlainProgramUnderMasks) {
  for (const std::string mask : {"111111", "011111", "001111", "101101", "000011", "100001"}) {
    expect_plain_bits(normed_cnn_model(), mask);
  }
}

TEST(BatchStatistics, LeaveTheBitsOfAPlainProgramInBf16) {
  expect_plain_bits(normed_cnn_model(), "101111", Precision::kBf16);
}

TEST(BatchStatistics, HaveTheBitsOfOneDeviceUnderEveryPlan) {
  EXPECT_GE(expect_bits_of_one_device(normed_cnn_model(), clipped_adamw()), 43);
  EXPECT_GE(expect_bits_of_one_device(normed_cnn_model(), momentum_sgd()), 43);
}

// The oracle trains by hand, with the statistics that at::batch_norm keeps in place.
TEST(BatchStatistics, AreThoseThatPyTorchKeepsOverTheSameMicroBatches) {
  const auto eager = std::make_shared<LayerTensors>(start_statistics(normed_cnn_model().spec));
  const TestModel plain = normed_cnn_model(eager);
  const TestModel model = normed_cnn_model();
  OptimizerConfig optimizer = momentum_sgd();
  optimizer.momentum = 0;
  frazil::Run run(model.spec, optimizer, kNormedSeed, 2);
  run.transition_to(make_plan(model, {.devices = 1, .replicas = 2}));
  LayerTensors weights = start_values(model.spec, kNormedSeed);
  freeze(model.spec, weights, model.mask);
  for (Step step = 0; step < 4; ++step) {
    const std::vector<Samples> micro_batches = batch_at(model, step);
    run.step(step, kNormedRate, micro_batches);
    const Differentiated found = differentiate_step(plain.spec, weights, micro_batches, kNormedSeed,
                                                    step, Precision::kFp32, model.mask);
    descend(weights, found.gradients, kNormedRate);
    EXPECT_LT(largest_difference(statistics_of(run), *eager), 1e-6);
  }
  const std::vector<LayerState> states = run.gather_states();
  for (std::size_t l = 0; l < weights.size(); ++l) {
    for (std::size_t p = 0; p < weights[l].size(); ++p) {
      EXPECT_TRUE(at::equal(states[l].parameters[p], weights[l][p]))
          << model.spec.layers[l].parameters[p].name;
    }
  }
  EXPECT_EQ((*eager)[1][2].item<std::int64_t>(), 3 + 4 * 4) << "one for each micro-batch";
}

TEST(BatchStatistics, OfFrozenBlocksStayAndThoseOfUntrainableLayersDoNot) {
  const LayerTensors start = start_statistics(normed_cnn_model().spec);
  for (const bool is_put_into_evaluation : {false, true}) {
    TestModel model = normed_cnn_model();
    if (is_put_into_evaluation) model.spec = evaluate_untrainable(std::move(model.spec));
    frazil::Run run(model.spec, momentum_sgd(), kNormedSeed, 2);
    run.transition_to(make_plan(model, {.devices = 2, .cuts = {2}, .mask = "101111"}));
    run.step(0, kNormedRate, batch_at(model, 0));
    const LayerTensors now = statistics_of(run);
    EXPECT_EQ(at::equal(now[0][0], start[0][0]), is_put_into_evaluation);
    EXPECT_TRUE(at::equal(now[1][0], start[1][0])) << "frozen";
    EXPECT_EQ(now[1][2].item<std::int64_t>(), 3);
    EXPECT_FALSE(at::equal(now[2][0], start[2][0]));
  }
}

TEST(BatchStatistics, AreWhatEvaluationNormalisesBy) {
  const TestModel model = normed_cnn_model();
  frazil::Run run(model.spec, momentum_sgd(), kNormedSeed, 3);
  run.transition_to(make_plan(model, {.devices = 3}));
  for (Step step = 0; step < 2; ++step) run.step(step, kNormedRate, batch_at(model, step));
  const Samples samples = batch_at(model, 7).front();
  const std::vector<LayerState> states = run.gather_states();
  std::vector<Tensors> outputs;
  for (std::size_t l = 0; l < states.size(); ++l) {
    const Tensors read = read_inputs(model.spec, LayerId{l}, outputs, samples.inputs);
    outputs.push_back(model.spec.layers[l].forward({.layer = LayerId{l},
                                                    .parameters = states[l].parameters,
                                                    .inputs = read,
                                                    .key = {},
                                                    .statistics = &states[l].statistics}));
  }
  EXPECT_TRUE(at::equal(run.outputs(samples).back().at(0), outputs.back().at(0)));
  const auto loss = model.spec.layers.back().loss(outputs.back(), samples.labels).item<float>();
  EXPECT_EQ(run.evaluate(SampleSource(samples), 3).loss, static_cast<double>(loss));
}

// Each plan moves layers: replicas come and go, and blocks freeze and thaw.
template <class AnyRun>
std::uint64_t train_through(AnyRun& run, const TestModel& model,
                            const std::vector<PlanForm>& forms) {
  const std::vector<std::string> masks{"111111", "111111", "001111", "001111", "111111", "100111"};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    PlanForm form = forms[i % forms.size()];
    form.mask = masks[i];
    const auto step = static_cast<Step>(i);
    run.transition_to(make_plan(model, form));
    run.step(step, kNormedRate, batch_at(model, step));
  }
  return run.weight_hash();
}

std::vector<PlanForm> moving_forms() {
  return {{.devices = 2},
          {.devices = 2, .replicas = 2},
          {.replicas = 3},
          {.schedule = ScheduleKind::kZbH1, .devices = 4, .recompute = true},
          {.replicas = 4}};
}

TEST(BatchStatistics, MoveWithTheirLayers) {
  const TestModel model = normed_cnn_model();
  frazil::Run still(model.spec, clipped_adamw(), kNormedSeed, 1);
  frazil::Run moving(model.spec, clipped_adamw(), kNormedSeed, 4);
  EXPECT_EQ(train_through(moving, model, moving_forms()), train_through(still, model, {{}}));
}

TEST(BatchStatistics, HaveTheBitsOfOneProcessOverSeveral) {
  const TestModel model = normed_cnn_model();
  frazil::Run still(model.spec, momentum_sgd(), kNormedSeed, 1);
  const std::uint64_t expected = train_through(still, model, {{}});
  for (const ProcessLinks links : {ProcessLinks::kUnix, ProcessLinks::kTcp, ProcessLinks::kGloo}) {
    ProcessRun run(model.spec, momentum_sgd(), kNormedSeed,
                   {.process_of = {0, 0, 1, 2}, .links = links});
    EXPECT_EQ(train_through(run, model, moving_forms()), expected);
  }
}

// The stem has statistics and no weights to update: its device takes part in the commit.
TEST(BatchStatistics, OfAStageWithoutUpdatesWaitForTheCommit) {
  const TestModel model = normed_cnn_model();
  ProcessRun run(model.spec, momentum_sgd(), kNormedSeed, {.process_of = {0, 1}});
  run.transition_to(make_plan(model, {.devices = 2, .cuts = {1}}));
  EXPECT_EQ(run.pool().voters(), (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}}));
  run.step(0, kNormedRate, batch_at(model, 0));
  run.transition_to(make_plan(model, {.devices = 2, .cuts = {1}, .mask = "011111"}));
  EXPECT_EQ(run.pool().voters(), (std::vector<DeviceId>{DeviceId{1}}));
}

TEST(BatchStatistics, OfAnUndoneStepAreNotFolded) {
  const TestModel model = normed_cnn_model();
  frazil::Run still(model.spec, momentum_sgd(), kNormedSeed, 1);
  still.transition_to(make_plan(model, {}));
  ProcessRun run(model.spec, momentum_sgd(), kNormedSeed, {.process_of = {0, 1}});
  run.transition_to(make_plan(model, {.replicas = 2}));
  for (Step step = 0; step < 2; ++step) still.step(step, kNormedRate, batch_at(model, step));
  run.step(0, kNormedRate, batch_at(model, 0));
  run.kill(1);
  EXPECT_THROW(run.step(1, kNormedRate, batch_at(model, 1)), StepUndone);
  (void)run.regroup();
  run.transition_to(make_plan(model, {}));
  run.step(1, kNormedRate, batch_at(model, 1));
  EXPECT_EQ(run.weight_hash(), still.weight_hash());
}

TEST(BatchStatistics, AreInCheckpoints) {
  const TestModel model = normed_cnn_model();
  const auto train = [&](frazil::Run& run, Step first) {
    run.transition_to(make_plan(model, {.replicas = 2}));
    for (Step step = first; step < first + 2; ++step) {
      run.step(step, kNormedRate, batch_at(model, step));
    }
  };
  frazil::Run whole(model.spec, clipped_adamw(), kNormedSeed, 2);
  train(whole, 0);
  train(whole, 2);
  frazil::Run begun(model.spec, clipped_adamw(), kNormedSeed, 2);
  train(begun, 0);
  DiskModel disk;
  const FileSystem files = disk.files();
  const RunIdentity identity{"00000000000000aa", 0xbb};
  TrainingPosition position;
  position.steps = 4;
  position.mask = FreezeMask::parse(model.mask, "test", 0);
  const std::vector<LayerState> states = begun.gather_states();
  write_checkpoint(files, "/run/two", model.spec, identity, position, pointers_to(states));
  Checkpoint checkpoint = read_checkpoint(files, "/run/two", model.spec, identity);
  EXPECT_TRUE(at::equal(checkpoint.layers[1].statistics[4], statistics_of(begun)[1][4]));
  frazil::Run resumed(model.spec, clipped_adamw(), kNormedSeed, 2);
  resumed.restore(std::move(checkpoint.layers));
  train(resumed, 2);
  EXPECT_EQ(resumed.weight_hash(), whole.weight_hash());
}

// What a profile takes for the update of a layer is then what time lines show of it.
TEST(BatchStatistics, AreFoldedWithinTheLastUpdateOfTheirDevice) {
  const TestModel model = normed_cnn_model();
  frazil::Run run(model.spec, momentum_sgd(), kNormedSeed, 2);
  run.transition_to(make_plan(model, {.devices = 2}));
  run.measure({.layers = true});
  const StepResult result = run.step(0, kNormedRate, batch_at(model, 0), true);
  std::map<DeviceId, Duration> left;
  for (const Span& span : result.spans) {
    if (span.action.kind == ActionKind::kUpdate) left[span.device] += span.duration();
  }
  EXPECT_EQ(left.size(), 2U);
  std::set<LayerId> folded;
  for (const LayerSample& sample : run.take_layer_samples()) {
    if (!ends_step(sample.phase)) continue;
    left[sample.device] -= sample.duration;
    if (sample.phase == LayerPhase::kStatistics) folded.insert(sample.layer);
  }
  for (const auto& [device, rest] : left) EXPECT_GE(rest, Duration{0}) << device.value;
  std::set<LayerId> expected;
  for (std::size_t l = 0; l < model.spec.layers.size(); ++l) {
    if (!model.spec.layers[l].statistics.empty()) expected.emplace(l);
  }
  EXPECT_EQ(folded, expected);
  EXPECT_FALSE(expected.empty());
}

TEST(BatchStatistics, AreNoneOfASlice) {
  const TestModel model = normed_cnn_model();
  frazil::Run run(model.spec, momentum_sgd(), kNormedSeed, 2);
  try {
    run.transition_to(make_sliced_plan(model, {{{0, 1}}, ScheduleKind::kGpipe}));
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "stage 0 shares the samples of a micro-batch among its devices, but layer 0 "
                 "(stem) mixes them in training");
  }
}

}  // namespace
}  // namespace frazil
