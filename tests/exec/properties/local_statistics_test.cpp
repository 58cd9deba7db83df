// Stages that slice micro-batches may let each slice normalise by its own statistics. That is
// another computation than that of one device: the one of a program that normalises by slices.

#include "exec/models/local_statistics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/normed_cnn.h"
#include "tests/exec/models/plain_training.h"
#include "tests/exec/support/process_run.h"
#include "tests/exec/support/sliced_runs.h"

namespace frazil {
namespace {

constexpr std::uint64_t kLocalSeed = 7;  // that of train_sliced()
constexpr int kLocalSteps = 3;
constexpr int kLocalMicroBatches = 4;

TestModel with_local_norms(TestModel model) {
  model.spec = with_local_statistics(std::move(model.spec));
  return model;
}

// SGD alone, so that a plain program descends by hand.
OptimizerConfig plain_sgd() {
  OptimizerConfig optimizer = undecayed_sgd(0);
  optimizer.momentum = 0;
  return optimizer;
}

std::vector<Samples> local_batch(const TestModel& model, Step step) {
  return model.samples({.seed = static_cast<std::uint64_t>(step) + 1,
                        .micro_batches = kLocalMicroBatches,
                        .micro_batch_size = kSlicedSamples,
                        .last_short_by = step == 2 ? 1 : 0});
}

// A layer over slices of what it reads, one after another, that folds the weighted mean of their
// statistics into `running`.
class LayerBySlices {
 public:
  LayerBySlices(const LayerSpec& layer, int slices, Tensors& running)
      : plain_(layer.forward), specs_(layer.statistics), slices_(slices), running_(running) {}

  Tensors operator()(const LayerCall& call) const {
    const std::int64_t samples = call.inputs.at(0).size(0);
    std::vector<Tensors> pieces;
    Tensors means(specs_.size());
    for (std::int64_t k = 0; k < slices_; ++k) {
      const std::int64_t first = k * samples / slices_;
      const std::int64_t count = (k + 1) * samples / slices_ - first;
      Tensors inputs;
      for (const at::Tensor& input : call.inputs) inputs.push_back(input.narrow(0, first, count));
      Tensors own;
      pieces.push_back(plain_({.layer = call.layer,
                               .parameters = call.parameters,
                               .inputs = inputs,
                               .key = call.key,
                               .training = true,
                               .batch_statistics = &own}));
      for (std::size_t s = 0; s < own.size(); ++s) {
        if (!own[s].defined()) continue;
        const at::Tensor part =
            own[s] * (static_cast<double>(count) / static_cast<double>(samples));
        means[s] = means[s].defined() ? means[s] + part : part;
      }
    }
    fold(means);
    Tensors outputs;
    for (std::size_t o = 0; o < pieces.front().size(); ++o) {
      Tensors parts;
      for (const Tensors& piece : pieces) parts.push_back(piece[o]);
      outputs.push_back(at::cat(parts));
    }
    return outputs;
  }

 private:
  void fold(const Tensors& means) const {
    for (std::size_t s = 0; s < specs_.size(); ++s) {
      at::Tensor& running = running_[s];
      running = means[s].defined()
                    ? running * (1 - specs_[s].momentum) + means[s] * specs_[s].momentum
                    : running + 1;
    }
  }

  std::function<Tensors(const LayerCall&)> plain_;
  std::vector<StatisticSpec> specs_;
  std::int64_t slices_;
  Tensors& running_;
};

struct PlainOutcome {
  LayerTensors weights;
  LayerTensors statistics;
};

PlainOutcome train_by_slices(const TestModel& model, int slices) {
  PlainOutcome found{start_values(model.spec, kLocalSeed), start_statistics(model.spec)};
  ModelSpec plain = model.spec;
  for (std::size_t l = 0; l < plain.layers.size(); ++l) {
    if (plain.layers[l].statistics.empty()) continue;
    plain.layers[l].forward = LayerBySlices(model.spec.layers[l], slices, found.statistics[l]);
  }
  freeze(plain, found.weights, model.mask);
  for (Step step = 0; step < kLocalSteps; ++step) {
    const Differentiated one = differentiate_step(plain, found.weights, local_batch(model, step),
                                                  kLocalSeed, step, Precision::kFp32, model.mask);
    descend(found.weights, one.gradients, kSlicedRate);
  }
  return found;
}

// Takes the largest difference of a tensor's elements over its largest element.
void expect_near(const at::Tensor& found, const at::Tensor& expected, const std::string& name) {
  if (expected.numel() == 0) return;
  EXPECT_LE(largest_element(found.to(at::kDouble) - expected.detach().to(at::kDouble)),
            1e-6 * std::max(largest_element(expected.detach()), 1.0))
      << name;
}

void expect_plain_training(const TestModel& model, const std::vector<std::vector<int>>& devices) {
  const SlicedForm form{devices, ScheduleKind::kGpipe, kLocalMicroBatches};
  SCOPED_TRACE(model.spec.name + ", " + name_of(form));
  const SlicedOutcome found = train_sliced(with_local_norms(model), plain_sgd(), form, kLocalSteps);
  const PlainOutcome expected = train_by_slices(model, static_cast<int>(devices.front().size()));
  for (std::size_t l = 0; l < found.layers.size(); ++l) {
    const LayerSpec& layer = model.spec.layers[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      expect_near(found.layers[l].parameters[p], expected.weights[l][p], layer.parameters[p].name);
    }
    for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
      expect_near(found.layers[l].statistics[s], expected.statistics[l][s],
                  layer.statistics[s].name);
    }
  }
}

TEST(LocalStatistics, TrainWhatAPlainProgramTrainsThatNormalisesBySlices) {
  for (const TestModel& model : {normed_cnn_model(), distilled_vgg_model()}) {
    expect_plain_training(model, {{0, 1}});
    expect_plain_training(model, {{0, 1, 2}});
    expect_plain_training(model, {{0, 1}, {2, 3}});
    expect_plain_training(model, {{0, 1}, {1, 0}});
  }
}

TEST(LocalStatistics, DifferFromThoseOfWholeMicroBatchesAndLeaveTheTeacher) {
  const TestModel model = with_local_norms(distilled_vgg_model());
  const SlicedOutcome whole = train_sliced(model, plain_sgd(), {{{0}}, ScheduleKind::kGpipe});
  const SlicedOutcome sliced = train_sliced(model, plain_sgd(), {{{0, 1}}, ScheduleKind::kGpipe});
  int kept = 0;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    const LayerSpec& layer = model.spec.layers[l];
    for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
      if (!layer.statistics[s].name.ends_with("running_var")) continue;
      const at::Tensor& expected = whole.layers[l].statistics[s];
      EXPECT_GT(largest_element(sliced.layers[l].statistics[s] - expected),
                1e-4 * largest_element(expected))
          << layer.statistics[s].name;
      ++kept;
    }
    if (!layer.name.starts_with("teacher.")) continue;
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      EXPECT_TRUE(at::equal(sliced.layers[l].parameters[p], whole.layers[l].parameters[p]));
    }
  }
  EXPECT_EQ(kept, 7) << "of the student's norms";
}

TEST(LocalStatistics, HaveTheSameBitsOverProcesses) {
  const TestModel model = with_local_norms(normed_cnn_model());
  const Plan plan =
      make_sliced_plan(model, {{{0, 1}, {2, 3}}, ScheduleKind::kGpipe, kLocalMicroBatches});
  const auto train = [&](auto& run) {
    run.transition_to(plan);
    for (Step step = 0; step < kLocalSteps; ++step) {
      run.step(step, kSlicedRate, local_batch(model, step));
    }
    return run.weight_hash();
  };
  frazil::Run alone(model.spec, momentum_sgd(), kLocalSeed, 4);
  ProcessRun apart(model.spec, momentum_sgd(), kLocalSeed, {.process_of = {0, 1, 1, 2}});
  EXPECT_EQ(train(apart), train(alone));
}

// A layer that mixes samples by anything but statistics that it keeps stays refused.
TEST(LocalStatistics, AreThoseOfNormsAlone) {
  ModelSpec model = normed_cnn_model().spec;
  model.layers[1].mixes_samples = SampleMixing::kAlways;
  model.layers[2].statistics.clear();
  const ModelSpec local = with_local_statistics(model);
  EXPECT_EQ(local.layers[0].mixes_samples, SampleMixing::kNever);
  EXPECT_EQ(local.layers[1].mixes_samples, SampleMixing::kAlways);
  EXPECT_EQ(local.layers[2].mixes_samples, SampleMixing::kInTraining);
}

}  // namespace
}  // namespace frazil
