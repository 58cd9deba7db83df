// A teacher and a student as one model: its layers and edges, what it evaluates, and which networks
// it is not made of.

#include "exec/models/distillation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "exec/models/distillation_fault.h"
#include "tests/exec/models/distillation.h"

namespace frazil {
namespace {

const DistillationConfig kConfig;

Samples some_samples() {
  return make_distillation_samples(kConfig, {.seed = 3, .micro_batches = 1}).front();
}

std::string name_of(const ModelSpec& model, LayerId layer) {
  return model.layers[layer.index()].name;
}

// Returns "T.0 > T.1", with "-" in place of ">" for an edge without gradient.
std::vector<std::string> list_edges(const ModelSpec& model) {
  std::vector<std::string> edges;
  for (const ModelEdge& edge : model.edges) {
    const char* const arrow = edge.kind == EdgeKind::kDetached ? " - " : " > ";
    edges.push_back(name_of(model, edge.from) + arrow + name_of(model, edge.to));
  }
  return edges;
}

std::vector<Tensors> start_of(const ModelSpec& model) {
  std::vector<Tensors> parameters;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    parameters.push_back(initial_parameters(model, LayerId{l}, 7));
  }
  return parameters;
}

std::vector<const Tensors*> pointers_to(const std::vector<Tensors>& parameters) {
  std::vector<const Tensors*> pointers;
  for (const Tensors& own : parameters) pointers.push_back(&own);
  return pointers;
}

TEST(Distillation, InterleavesTheNetworksAndTeachesEachBlockAlone) {
  const ModelSpec model = make_distillation(make_small_networks(kConfig));
  EXPECT_EQ(list_edges(model),
            (std::vector<std::string>{
                "teacher.0 - loss.0", "teacher.0 > teacher.1", "teacher.0 - student.1.a",
                "student.0.a > student.0.b", "student.0.b > loss.0", "teacher.1 - loss.1",
                "teacher.1 > teacher.2", "teacher.1 - student.2", "student.1.a > student.1.b",
                "student.1.b > loss.1", "teacher.2 - loss.2", "student.2 > loss.2"}));
  std::vector<int> blocks;
  for (const LayerSpec& layer : model.layers) blocks.push_back(layer.block.value);
  EXPECT_EQ(blocks, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3}));
  EXPECT_EQ(model.blocks, (std::vector<std::string>{"0", "1", "2", "end"}));
}

TEST(Distillation, EvaluatesTheStudentAsItIsPutTogether) {
  const Distillation networks = make_small_networks(kConfig);
  const ModelSpec model = make_distillation(networks);
  ASSERT_TRUE(model.evaluated);
  const std::vector<Tensors> parameters = start_of(model);
  std::vector<const Tensors*> own;
  for (const LayerId layer : model.evaluated->layer_of) {
    EXPECT_EQ(name_of(model, layer), "student." + model.evaluated->network.layers[own.size()].name);
    own.push_back(&parameters[layer.index()]);
  }
  const Samples samples = some_samples();
  const at::Tensor logits =
      forward_model(model.evaluated->network, own, samples.inputs).back().at(0);
  at::Tensor x = samples.inputs[0];
  for (std::size_t l = 0; l < own.size(); ++l) {
    const Tensors& w = *own[l];
    x = at::linear(at::gelu(at::linear(x, w[0], w[1])), w[2], w[3]);
    if (l + 1 < own.size()) x = at::tanh(x);
  }
  EXPECT_TRUE(at::equal(logits, x));
}

// The losses, computed again from the two networks alone.
TEST(Distillation, ComparesEachStudentBlockWithTheTeachersOnTheTeachersInput) {
  const Distillation networks = make_small_networks(kConfig);
  const ModelSpec model = make_distillation(networks);
  const std::vector<Tensors> parameters = start_of(model);
  const Samples samples = some_samples();
  const std::vector<Tensors> outputs =
      forward_model(model, pointers_to(parameters), samples.inputs);
  std::map<std::string, at::Tensor> output;
  for (std::size_t l = 0; l < outputs.size(); ++l) {
    output[model.layers[l].name] = outputs[l].at(0);
  }
  const auto apply = [&](std::size_t layer, const at::Tensor& x, bool is_head) {
    const Tensors& w = parameters[layer];
    const at::Tensor y = at::linear(at::gelu(at::linear(x, w[0], w[1])), w[2], w[3]);
    return is_head ? y : at::tanh(y);
  };
  const auto loss_of = [&](std::size_t layer) {
    return model.layers[layer].loss(outputs[layer], samples.labels).item<double>();
  };
  const at::Tensor t0 = apply(0, samples.inputs[0], false);
  const at::Tensor t1 = apply(4, t0, false);
  const at::Tensor t2 = apply(8, t1, true);
  const at::Tensor s0 = apply(2, apply(1, samples.inputs[0], false), false);
  const at::Tensor s1 = apply(6, apply(5, t0, false), false);
  const at::Tensor s2 = apply(9, t1, true);
  EXPECT_NEAR(loss_of(3), (s0 - t0).pow(2).mean().item<double>(), 1e-6);
  EXPECT_NEAR(loss_of(7), (s1 - t1).pow(2).mean().item<double>(), 1e-6);
  const at::Tensor soft = -(at::softmax(t2, 1) * at::log_softmax(s2, 1)).sum(1).mean();
  EXPECT_NEAR(loss_of(10), soft.item<double>(), 1e-6);
}

TEST(Distillation, TrainsNothingOfTheTeacher) {
  const ModelSpec model = make_distillation(make_small_networks(kConfig));
  for (const LayerSpec& layer : model.layers) {
    const bool is_teacher = layer.name.starts_with("teacher.");
    for (const ParameterSpec& parameter : layer.parameters) {
      EXPECT_EQ(parameter.trainable, !is_teacher) << parameter.name;
      EXPECT_EQ(parameter.name.starts_with("teacher."), is_teacher) << parameter.name;
    }
  }
}

// A layer that keeps statistics and would tell training from evaluation.
TEST(Distillation, HoldsTheTeacherInEvaluationOnItsStatistics) {
  Distillation networks = make_small_networks(kConfig);
  LayerSpec& first = networks.teacher.layers.front();
  first.statistics = {{.name = "mean", .value = at::full({kConfig.dim}, 0.25F), .momentum = 0.1},
                      {.name = "count", .value = at::zeros({}, at::kLong)}};
  first.varies_in_training = true;
  first.forward = [](const LayerCall& call) -> Tensors {
    EXPECT_FALSE(call.training);
    EXPECT_EQ(call.batch_statistics, nullptr);
    EXPECT_EQ(call.parameters.size(), 4U);
    return {call.inputs.at(0) + call.statistics->at(0)};
  };
  const ModelSpec model = make_distillation(networks);
  const LayerSpec& teacher = model.layers.front();
  EXPECT_TRUE(teacher.statistics.empty());
  EXPECT_FALSE(teacher.varies_in_training);
  const Tensors parameters = initial_parameters(model, LayerId{0}, 7);
  ASSERT_EQ(parameters.size(), 5U);
  const Tensors inputs{at::ones({2, kConfig.dim})};
  Tensors own;
  const Tensors outputs = teacher.forward({.layer = LayerId{0},
                                           .parameters = parameters,
                                           .inputs = inputs,
                                           .key = {},
                                           .training = true,
                                           .batch_statistics = &own});
  EXPECT_TRUE(at::equal(outputs.at(0), at::full({2, kConfig.dim}, 1.25F)));
}

struct Refusal {
  std::size_t block = 0;
  std::string found;
};

void expect_fault(const Distillation& networks, const Refusal& refusal,
                  const Samples& samples = some_samples()) {
  const auto fault = find_fault(networks, samples);
  ASSERT_TRUE(fault) << refusal.found;
  EXPECT_EQ(fault->block, refusal.block);
  EXPECT_EQ(fault->found, refusal.found);
}

TEST(DistillationFault, IsNoneOfNetworksThatMatch) {
  EXPECT_FALSE(find_fault(make_small_networks(kConfig), some_samples()));
}

TEST(DistillationFault, IsABoundaryOfOtherShapes) {
  Distillation networks = make_small_networks(kConfig);
  networks.student.layers[1].forward = [](const LayerCall& call) -> Tensors {
    return {call.inputs.at(0).narrow(1, 0, 12)};
  };
  networks.student.layers[2].forward = [](const LayerCall& call) -> Tensors {
    return {at::constant_pad_nd(call.inputs.at(0), {0, 4})};
  };
  const std::string n = std::to_string(some_samples().count());
  expect_fault(networks, {0, "[" + n + ", 16] of the teacher and [" + n +
                                 ", 12] of the student behind block 0"});
}

TEST(DistillationFault, IsABoundaryThatTwoTensorsCross) {
  Distillation networks = make_small_networks(kConfig);
  networks.student.edges.push_back({LayerId{0}, LayerId{2}, EdgeKind::kGradient, {0}});
  expect_fault(networks, {0, "2 tensors (of 0.a, 0.b) behind block 0 of the student"});
}

TEST(DistillationFault, IsABoundaryThatSkipsABlock) {
  Distillation networks = make_small_networks(kConfig);
  // 0.a > 0.b > 1.a > 1.b > 2 becomes 0.a > 0.b > 2 with 1.a > 1.b aside.
  networks.student.edges.back().from = LayerId{1};
  networks.student.edges.erase(networks.student.edges.begin() + 1);
  expect_fault(networks, {1, "layer 1.a in block 1 of the student, which reads the samples"});
}

TEST(DistillationFault, IsANetworkWhoseLossIsNotAtItsEnd) {
  Distillation networks = make_small_networks(kConfig);
  networks.teacher.layers.back().loss = {};
  expect_fault(networks, {2, "layer 2 of the teacher, the last one, without a loss"});
  networks = make_small_networks(kConfig);
  networks.student.layers[1].loss = networks.student.layers.back().loss;
  expect_fault(networks, {0, "layer 0.b of the student, which has a loss"});
}

TEST(DistillationFault, IsAStudentBlockThatCannotLearnAlone) {
  Distillation networks = make_small_networks(kConfig);
  for (const std::size_t layer : {std::size_t{2}, std::size_t{3}}) {
    for (ParameterSpec& parameter : networks.student.layers[layer].parameters) {
      parameter.trainable = false;
    }
  }
  expect_fault(networks, {1, "no trainable parameter in block 1 of the student"});
  networks = make_small_networks(kConfig);
  networks.student.layers[0].parameters[0].tied = "shared";
  networks.student.layers[4].parameters[0].tied = "shared";
  expect_fault(networks, {2, "parameter 2.up.weight, tied to one of another block"});
}

}  // namespace
}  // namespace frazil
