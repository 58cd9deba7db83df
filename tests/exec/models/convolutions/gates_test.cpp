// What an architecture step learns is the gradient of the gates, told here by finite differences of
// a program in float64 that weighs each operation by its gate.
#include "exec/models/convolutions/gates.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/exec/models/convolutions/plain_mobilenet.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

constexpr std::uint64_t kGatesSeed = 11;
constexpr std::string_view kStudentPrefix = "student.";
constexpr std::string_view kTeacherPrefix = "teacher.";

// The cells of a model, by layer. The student's are those of the network alone.
std::map<LayerId, std::string> find_cells(const ModelSpec& model) {
  std::map<LayerId, std::string> cells;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    if (layer.parameters.empty()) continue;
    if (!layer.parameters.front().name.ends_with(".architecture")) continue;
    const bool is_student = layer.name.starts_with(kStudentPrefix);
    cells[LayerId{l}] = layer.name.substr(is_student ? kStudentPrefix.size() : 0);
  }
  return cells;
}

PlainMobilenet make_plain(const MobilenetShape& shape, const ModelSpec& model, Step step) {
  PlainMobilenet plain(shape, /*is_supernet=*/true, model, kGatesSeed);
  for (const auto& [layer, cell] : find_cells(model)) {
    plain.choose(cell, draw_operation(plain.weights.at(cell + ".architecture"), layer,
                                      {.seed = kGatesSeed, .step = step, .micro_batch = {}}));
  }
  plain.widen();
  return plain;
}

using Loss = std::function<double(PlainMobilenet&)>;

// Returns the gradient of the loss to a cell's architecture parameters, by that to its gates.
at::Tensor differentiate_gates(const Loss& loss, const std::string& cell, PlainMobilenet& plain) {
  constexpr double kStep = 1e-5;
  const at::Tensor p = at::softmax(plain.weights.at(cell + ".architecture"), 0);
  at::Tensor of_gates = at::zeros_like(p);
  for (std::int64_t i = 0; i < p.numel(); ++i) {
    double& gate = plain.gates.at(cell)[static_cast<std::size_t>(i)];
    const double before = gate;
    gate = before + kStep;
    const double above = loss(plain);
    gate = before - kStep;
    const double below = loss(plain);
    gate = before;
    of_gates[i] = (above - below) / (2 * kStep);
  }
  return p * (of_gates - (p * of_gates).sum());
}

// What the momenta of architecture parameters are to be.
struct ExpectedGradients {
  MobilenetShape shape;
  std::function<Loss(BlockId)> loss_of;  // by a cell's block
  double error = 1e-3;                   // relative to the largest number of a cell
};

// Takes an architecture step under a plan, of which momenta begin.
void expect_gate_gradients(const TestModel& model, const PlanForm& form,
                           const ExpectedGradients& wanted) {
  SCOPED_TRACE(name_of(form));
  constexpr Step kStep = 1;
  frazil::Run run(model.spec, momentum_sgd(), kGatesSeed, form.all_devices());
  run.transition_to(make_plan(model, form));
  run.step(kStep, 0.125, model.samples({.seed = 3, .last_short_by = 1}));
  const std::vector<LayerState> states = run.gather_states();
  PlainMobilenet plain = make_plain(wanted.shape, model.spec, kStep);
  for (const auto& [layer, cell] : find_cells(model.spec)) {
    const at::Tensor expected =
        differentiate_gates(wanted.loss_of(model.spec.layers[layer.index()].block), cell, plain);
    const at::Tensor& found = states[layer.index()].first_moment.at(0);
    const double largest = expected.abs().max().item<double>();
    EXPECT_GT(largest, 1e-6) << cell;
    EXPECT_LT((found - expected).abs().max().item<double>(), wanted.error * largest)
        << cell << found << expected;
  }
}

double share_of(const Samples& some, const std::vector<Samples>& all) {
  std::int64_t samples = 0;
  for (const Samples& one : all) samples += one.count();
  return static_cast<double>(some.count()) / static_cast<double>(samples);
}

// Norms over a few pixels, one behind another, leave two digits of float32.
TEST(Gates, GiveTheGradientOfTheWholeNetworkToEveryCell) {
  SupernetConfig config = small_supernet();
  for (const bool batch_norm : {true, false}) {
    config.shape.batch_norm = batch_norm;
    const TestModel model = supernet_model(config);
    const std::vector<Samples> batch = model.samples({.seed = 3, .last_short_by = 1});
    const Loss loss = [&](PlainMobilenet& plain) {
      double sum = 0;
      for (const Samples& some : batch) {
        const at::Tensor logits = plain.classify(some.inputs.at(0).to(at::kDouble), true);
        sum += at::cross_entropy_loss(logits, some.labels).item<double>() * share_of(some, batch);
      }
      return sum;
    };
    const ExpectedGradients wanted{.shape = config.shape,
                                   .loss_of = [&](BlockId) { return loss; },
                                   .error = batch_norm ? 0.02 : 1e-3};
    expect_gate_gradients(model, {}, wanted);
    expect_gate_gradients(model, {.schedule = ScheduleKind::kZbH1, .devices = 3}, wanted);
    expect_gate_gradients(model, {.devices = 2, .replicas = 2, .recompute = true}, wanted);
  }
}

PlainMobilenet make_plain_teacher(const PlainMobilenet& student) {
  const MobilenetConfig config = small_mobilenet();
  PlainMobilenet teacher(config.shape, /*is_supernet=*/false, ModelSpec{}, kGatesSeed);
  for (const auto& [name, weight] : student.weights) {
    if (name.starts_with(kTeacherPrefix)) {
      teacher.weights[name.substr(kTeacherPrefix.size())] = weight;
    }
  }
  const std::vector<std::vector<CellShape>> stages = list_cells(config.shape);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t k = 0; k < stages[s].size(); ++k) {
      teacher.choose(stages[s][k].name, static_cast<std::size_t>(config.operations[s][k]));
    }
  }
  return teacher;
}

// Pipe-BD's code clears the gradients of all blocks of a stage but its last before they move
// anything. Here several blocks share a stage, and each one's architecture parameters move.
TEST(Gates, GiveEveryBlockOfAStageTheGradientOfItsOwnLoss) {
  const TestModel model = distilled_supernet_model();
  const std::vector<Samples> batch = model.samples({.seed = 3, .last_short_by = 1});
  PlainMobilenet teacher =
      make_plain_teacher(make_plain(small_supernet().shape, model.spec, /*step=*/1));
  const auto loss_of = [&](BlockId block) -> Loss {
    return [&, b = block.index()](PlainMobilenet& plain) {
      double sum = 0;
      for (const Samples& some : batch) {
        at::Tensor x = some.inputs.at(0).to(at::kDouble);
        for (std::size_t before = 0; before < b; ++before) x = teacher.run_block(before, x, false);
        const at::Tensor difference = plain.run_block(b, x, true) - teacher.run_block(b, x, false);
        sum += difference.pow(2).mean().item<double>() * share_of(some, batch);
      }
      return sum;
    };
  };
  for (const PlanForm& form :
       {PlanForm{}, PlanForm{.devices = 2, .cuts = {6}},
        PlanForm{.devices = 2, .cuts = {13}, .recompute = true}, PlanForm{.replicas = 2}}) {
    expect_gate_gradients(model, form, {.shape = small_supernet().shape, .loss_of = loss_of});
  }
}

TEST(Gates, LeaveTheOutputAndTheGradientThatGoesOnBitForBit) {
  const at::Tensor output = at::tensor({-0.0F, 1.5F, -2.0F}).requires_grad_();
  const at::Tensor probabilities = at::tensor({0.25F, 0.25F, 0.5F}).requires_grad_();
  const Tensors outputs{at::tensor({-0.0F, 1.5F, -2.0F}), at::Tensor(),
                        at::tensor({1.0F, 2.0F, 4.0F})};
  const at::Tensor passed = pass_gates(output, probabilities, outputs);
  EXPECT_TRUE(at::equal(passed.detach().view(at::kInt), output.detach().view(at::kInt)));
  const at::Tensor gradient = at::tensor({1.0F, -2.0F, 0.5F});
  const Tensors found = torch::autograd::grad({passed}, {output, probabilities}, {gradient});
  EXPECT_TRUE(at::equal(found[0], gradient));
  EXPECT_TRUE(at::equal(found[1], at::tensor({-4.0F, 0.0F, -1.0F})));
}

}  // namespace
}  // namespace frazil
