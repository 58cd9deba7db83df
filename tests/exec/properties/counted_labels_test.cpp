// A loss that ignores some labels is the mean over all the others of a step, however unevenly they
// lie in its micro-batches.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "tests/exec/models/plain_training.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;
constexpr double kRateOfCounted = 0.5;

at::Tensor loss_of_counted(const at::Tensor& scores, const at::Tensor& labels) {
  return at::cross_entropy_loss(scores, labels, /*weight=*/{}, at::Reduction::Mean, kIgnoredLabel);
}

ModelSpec make_counting_model() {
  ModelSpec model = make_vit(small_config());
  LayerSpec& head = model.layers.back();
  head.loss = [](const Tensors& outputs, const at::Tensor& labels) {
    return loss_of_counted(outputs.at(0), labels);
  };
  head.count_labels = [](const at::Tensor& labels) {
    return labels.ne(kIgnoredLabel).sum().item<std::int64_t>();
  };
  return model;
}

// Two, none, all, one, ... of the three labels of a micro-batch count for nothing; the last
// micro-batch is short.
std::vector<Samples> make_counted_micro_batches() {
  const std::vector<int> ignored{2, 0, 3, 1, 3, 1};
  std::vector<Samples> micro_batches = small_micro_batches(0, 6, 1);
  for (std::size_t m = 0; m < ignored.size(); ++m) {
    micro_batches[m].labels.narrow(0, 0, ignored[m]).fill_(kIgnoredLabel);
  }
  return micro_batches;
}

Samples join(const std::vector<Samples>& micro_batches) {
  Tensors images;
  Tensors labels;
  for (const Samples& samples : micro_batches) {
    images.push_back(samples.inputs[0]);
    labels.push_back(samples.labels);
  }
  return {{at::cat(images)}, at::cat(labels)};
}

OptimizerConfig descend_plainly() {
  OptimizerConfig optimizer;
  optimizer.kind = OptimizerConfig::Kind::kSgd;
  optimizer.momentum = 0;
  optimizer.weight_decay = 0;
  return optimizer;
}

TEST(CountedLabels, OfAStepAreWeighedAlike) {
  const ModelSpec model = make_counting_model();
  LayerTensors parameters = start_values(model, 7);
  freeze(model, parameters, "11111");
  const Differentiated whole =
      differentiate(model, parameters, join(make_counted_micro_batches()), {}, /*scale=*/1);

  frazil::Run run(model, descend_plainly(), 7, 1);
  run.transition_to(make_small_plan(run.structure(), {}));
  const StepResult result = run.step(0, kRateOfCounted, make_counted_micro_batches());
  EXPECT_NEAR(result.loss, whole.losses[0], 1e-5);
  const std::vector<LayerState> states = run.gather_states();
  for (std::size_t l = 0; l < states.size(); ++l) {
    for (std::size_t p = 0; p < states[l].parameters.size(); ++p) {
      const at::Tensor expected =
          parameters[l][p].detach() - kRateOfCounted * whole.gradients[l][p];
      EXPECT_TRUE(at::allclose(states[l].parameters[p].detach(), expected, 1e-5, 1e-6))
          << model.layers[l].parameters[p].name;
    }
  }
}

TEST(CountedLabels, GiveTheSameBitsUnderEveryPlan) {
  std::vector<std::uint64_t> hashes;
  for (const PlanShape& shape :
       {PlanShape{}, PlanShape{.cuts = {{3}}}, PlanShape{.cuts = {{}, {5}}, .owned = {4, 2}},
        PlanShape{.cuts = {{}, {}, {}}, .owned = {2, 2, 2}}}) {
    frazil::Run run(make_counting_model(), {}, 7, devices_of(shape));
    run.transition_to(make_small_plan(run.structure(), shape));
    for (Step step = 0; step < 3; ++step) run.step(step, 1e-2, make_counted_micro_batches());
    hashes.push_back(run.weight_hash());
  }
  for (const std::uint64_t hash : hashes) EXPECT_EQ(hash, hashes[0]);
}

TEST(CountedLabels, OfWhichNoneCountsChangeNothing) {
  std::vector<Samples> micro_batches = make_counted_micro_batches();
  for (Samples& samples : micro_batches) samples.labels.fill_(kIgnoredLabel);
  frazil::Run run(make_counting_model(), descend_plainly(), 7, 1);
  run.transition_to(make_small_plan(run.structure(), {}));
  const std::vector<Tensors> before = start_values(run.model(), 7);
  EXPECT_EQ(run.step(0, kRateOfCounted, micro_batches).loss, 0);
  const std::vector<LayerState> states = run.gather_states();
  for (std::size_t l = 0; l < states.size(); ++l) {
    for (std::size_t p = 0; p < states[l].parameters.size(); ++p) {
      EXPECT_TRUE(at::equal(states[l].parameters[p].detach(), before[l][p]));
    }
  }
}

TEST(CountedLabels, AreTheOnlyOnesThatMayBeRight) {
  const Samples samples = join(small_micro_batches(0, 6, 1));
  const auto run_on = [](const ModelSpec& model) {
    auto run = std::make_unique<frazil::Run>(model, descend_plainly(), 7, 1);
    run->transition_to(make_small_plan(run->structure(), {}));
    return run;
  };
  // The label that counts for nothing is a class that the scores name for some samples.
  ModelSpec model = make_counting_model();
  // Class token and positions of zeros, so that the images decide which class is the best.
  for (const std::size_t p : {2U, 3U}) model.layers[0].parameters[p].bound = 0;
  const at::Tensor best = run_on(model)->outputs(samples).back().at(0).argmax(-1);
  const std::int64_t padding = best[0].item<std::int64_t>();
  model.layers.back().count_labels = [padding](const at::Tensor& labels) {
    return labels.ne(padding).sum().item<std::int64_t>();
  };
  const std::int64_t counted = best.ne(padding).sum().item<std::int64_t>();
  ASSERT_GT(counted, 1);
  ASSERT_LT(counted, best.numel());
  Samples judged{samples.inputs, best.clone()};
  EXPECT_EQ(run_on(model)->evaluate(judged, 4).accuracy, 1);
  const std::int64_t one = best.ne(padding).nonzero()[0][0].item<std::int64_t>();
  // A wrong label that counts: neither the best class nor the padding.
  std::int64_t wrong = 0;
  while (wrong == padding || wrong == best[one].item<std::int64_t>()) ++wrong;
  judged.labels[one] = wrong;
  const double expected = static_cast<double>(counted - 1) / static_cast<double>(counted);
  EXPECT_EQ(run_on(model)->evaluate(judged, 4).accuracy, expected);
}

TEST(CountedLabels, OfNumbersHaveALossAndNoAccuracy) {
  ModelSpec model = make_counting_model();
  model.layers.back().count_labels = {};
  model.layers.back().loss = [](const Tensors& outputs, const at::Tensor& labels) {
    return (outputs.at(0).select(-1, 0) - labels).square().mean();
  };
  frazil::Run run(model, descend_plainly(), 7, 1);
  run.transition_to(make_small_plan(run.structure(), {}));
  Samples samples = join(small_micro_batches(0, 6, 1));
  samples.labels = samples.labels.to(at::kFloat);
  const frazil::Run::Evaluation found = run.evaluate(samples, 4);
  EXPECT_EQ(found.accuracy, std::nullopt);
  EXPECT_GT(found.loss, 0);
}

TEST(CountedLabels, OfWhichNoneCountsChangeNothingWhateverTheScores) {
  ModelSpec model = make_counting_model();
  ParameterSpec& bias = model.layers.back().parameters.back();
  bias.bound = 0;
  bias.constant = std::numeric_limits<double>::infinity();
  std::vector<Samples> micro_batches = make_counted_micro_batches();
  for (Samples& samples : micro_batches) samples.labels.fill_(kIgnoredLabel);
  frazil::Run run(model, descend_plainly(), 7, 1);
  run.transition_to(make_small_plan(run.structure(), {}));
  EXPECT_EQ(run.step(0, kRateOfCounted, micro_batches).loss, 0);
  const std::vector<LayerState> states = run.gather_states();
  for (std::size_t l = 0; l < states.size(); ++l) {
    for (std::size_t p = 0; p < states[l].parameters.size(); ++p) {
      EXPECT_TRUE(
          at::equal(states[l].parameters[p].detach(), initial_parameters(model, LayerId{l}, 7)[p]));
    }
  }
}

}  // namespace
}  // namespace frazil
