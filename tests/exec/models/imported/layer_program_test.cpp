#include "exec/models/imported/layer_program.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "exec/models/imported/imported_model.h"
#include "exec/models/imported/replay.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

const RandomKey kKey{.seed = 5, .step = 2, .micro_batch = MicroBatchId{1}};

// The first layer of the small perceptron with other nodes; its result is "v2", eight wide.
std::shared_ptr<const ImportedModel> with_nodes(const Json& nodes, const NamedTensors& more = {},
                                                const Json& evaluation = nullptr) {
  WrittenModel model = small_mlp();
  Json& layer = model.graph["layers"][0];
  layer["nodes"] = nodes;
  layer["evaluation"] = evaluation;
  for (const auto& [name, tensor] : more) {
    layer["constants"].push_back("c" + std::to_string(model.graph["constants"].size()));
    model.graph["constants"].push_back({{"tensor", name}});
    model.tensors.emplace_back(name, tensor);
  }
  return model.read();
}

// Runs the first layer of a model that has these parameters.
at::Tensor run_first(const ModelSpec& model, const at::Tensor& x, const RandomKey& key = kKey,
                     bool training = true) {
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const Tensors statistics = initial_statistics(model.layers[0]);
  return model.layers[0]
      .forward({LayerId{0}, parameters, {x}, key, training, nullptr, &statistics})
      .at(0);
}

at::Tensor some_input(std::int64_t count = 4) { return small_mlp_samples(count, 3).inputs.at(0); }

Json linear() { return make_node("aten::linear", {value("i0"), value("p0"), value("p1")}, "v0"); }

TEST(LayerProgram, HasTheBitsOfTheSameModelInCpp) {
  for (const std::int64_t count : {4, 3}) {
    const Samples samples = small_mlp_samples(count, 9);
    const MlpStep expected = run_small_mlp(samples, [](const at::Tensor& x) {
      return drop(x, 0.25, LayerId{0}, kKey, /*training=*/true);
    });
    const ModelSpec model = make_imported(small_mlp().read());
    EXPECT_TRUE(model.layers[0].has_seams);
    for (const bool splits : {false, true}) {
      const Replay found = replay_step(model, samples, kKey, splits);
      EXPECT_TRUE(at::equal(found.loss, expected.loss));
      EXPECT_TRUE(at::equal(found.outputs.at(0), expected.output));
      const char* const names[] = {"first.weight", "first.bias", "second.weight", "second.bias"};
      for (std::size_t p = 0; p < 4; ++p) {
        EXPECT_TRUE(at::equal(found.gradients.at(names[p]), expected.gradients[p])) << names[p];
      }
    }
  }
}

TEST(LayerProgram, DropsNothingInEvaluation) {
  const ModelSpec model = make_imported(small_mlp().read());
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  EXPECT_TRUE(at::equal(run_first(model, some_input(), kKey, /*training=*/false),
                        at::linear(some_input(), parameters[0], parameters[1]).tanh()));
}

TEST(LayerProgram, DrawsUnlessTheRateOfItsDropoutIsZero) {
  const auto varies = [](const Json& node) {
    return make_imported(with_nodes(Json::array({linear(), node}))).layers[0].varies_in_training;
  };
  for (const double rate : {0.0, 0.25}) {
    SCOPED_TRACE(rate);
    Json dropout = make_node("aten::dropout", {value("v0"), rate, true}, "v2");
    dropout["random"] = 0;
    EXPECT_EQ(varies(dropout), rate > 0);
    Json native = make_node("aten::native_dropout", {value("v0"), rate, true}, "v2");
    native["random"] = 0;
    native["out"] = {"v2", nullptr};
    EXPECT_EQ(varies(native), rate > 0);
    Json attention = make_node("aten::scaled_dot_product_attention",
                               {value("v0"), value("v0"), value("v0"), nullptr, rate}, "v2");
    attention["random"] = 0;
    EXPECT_EQ(varies(attention), rate > 0);
  }
  EXPECT_FALSE(varies(make_node("aten::dropout", {value("v0"), 0.25, false}, "v2")));
  EXPECT_FALSE(make_imported(small_mlp().read()).layers[1].varies_in_training);
}

TEST(LayerProgram, RunsNodesOfItsOwnInEvaluation) {
  WrittenModel written = small_mlp();
  written.graph["layers"][0]["evaluation"] =
      Json::array({linear(), make_node("aten::relu", Json::array({value("v0")}), "v2")});
  const ModelSpec model = make_imported(written.read());
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  EXPECT_TRUE(at::equal(run_first(model, some_input(), kKey, /*training=*/false),
                        at::linear(some_input(), parameters[0], parameters[1]).relu()));
}

TEST(LayerProgram, ComputesWhatDependsOnConstantsOnce) {
  const Json nodes =
      Json::array({make_node("aten::mul.Tensor", {value("c0"), 2}, "v10"),
                   make_node("aten::add.Tensor", {value("v10"), value("v10")}, "v11"), linear(),
                   make_node("aten::add.Tensor", {value("v0"), value("v11")}, "v2")});
  const auto model = with_nodes(nodes, {{"frazil.constant.0", at::arange(8, at::kFloat)}});
  const ImportedLayer& layer = model->graph.layers[0];
  const LayerProgram program(*model,
                             {.inputs = layer.inputs,
                              .input_positions = {0},
                              .samples = layer.samples,
                              .parameters = layer.parameters,
                              .constants = layer.constants,
                              .buffers = layer.buffers,
                              .nodes = layer.nodes,
                              .outputs = layer.outputs},
                             Randomness::kKeyed);
  EXPECT_EQ(program.nodes(), 2U);
  const ModelSpec spec = make_imported(model);
  const Tensors parameters = initial_parameters(spec, LayerId{0}, 0);
  EXPECT_TRUE(at::equal(
      run_first(spec, some_input()),
      at::linear(some_input(), parameters[0], parameters[1]) + at::arange(8, at::kFloat) * 2 * 2));
}

TEST(LayerProgram, TakesNumbersForTensorsWholeNumbersForRealsAndSizesOfTheSamples) {
  Json sizes = Json::array({{{"size", {"*", 2, "n"}}}, {{"size", {"//", {"+", 8, 0}, 2}}}});
  const Json nodes = Json::array(
      {linear(), make_node("aten::add.Tensor", {value("v0"), 1}, "v5"),
       make_node("aten::leaky_relu", {value("v5"), 0}, "v6"),
       make_node("aten::view", {value("v6"), sizes}, "v7"),
       make_node("aten::view", {value("v7"), Json::array({{{"size", "n"}}, 8})}, "v2")});
  const ModelSpec model = make_imported(with_nodes(nodes));
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor x = some_input(3);
  const at::Tensor found = run_first(model, x);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(found, (at::linear(x, parameters[0], parameters[1]) + 1).relu()));
}

TEST(LayerProgram, TakesListsOfTensorsAndOperationsWithSeveralResults) {
  Json split = make_node("aten::split.Tensor", {value("v0"), 4, 1}, "");
  split["out"] = Json::array({{{"list", {"v5", "v6"}}}});
  Json best = make_node("aten::max.dim", {value("v5"), 1, true}, "");
  best["out"] = Json::array({"v7", nullptr});
  const Json nodes = Json::array(
      {linear(), split, best, make_node("aten::mul.Tensor", {value("v6"), value("v7")}, "v8"),
       make_node("aten::cat", {Json::array({value("v5"), value("v8")}), 1}, "v2")});
  const ModelSpec model = make_imported(with_nodes(nodes));
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor hidden = at::linear(some_input(), parameters[0], parameters[1]);
  const at::Tensor left = hidden.narrow(1, 0, 4);
  const at::Tensor right = hidden.narrow(1, 4, 4);
  EXPECT_TRUE(
      at::equal(run_first(model, some_input()), at::cat({left, right * left.amax({1}, true)}, 1)));
}

TEST(LayerProgram, AnOperationMayReadAValueTwiceAndBeItsLastReader) {
  const Json nodes =
      Json::array({linear(), make_node("aten::mul.Tensor", {value("v0"), value("v0")}, "v1"),
                   make_node("aten::cat", {Json::array({value("v1"), value("v1")}), 1}, "v5"),
                   make_node("aten::where.self", {value("c0"), value("v5"), value("v5")}, "v6"),
                   make_node("aten::narrow", {value("v6"), 1, 4, 8}, "v2")});
  const ModelSpec model =
      make_imported(with_nodes(nodes, {{"frazil.constant.0", at::ones({16}, at::kBool)}}));
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor squares = at::linear(some_input(), parameters[0], parameters[1]).square();
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(
        at::equal(run_first(model, some_input()), at::cat({squares, squares}, 1).narrow(1, 4, 8)));
  }
}

TEST(LayerProgram, AnOperationInPlaceLeavesItsInputAndConstantsAsTheyWere) {
  const Json nodes =
      Json::array({make_node("aten::view", {value("i0"), Json::array({-1, 6})}, "v8"),
                   make_node("aten::relu_", Json::array({value("v8")}), "v9"),
                   make_node("aten::mul_.Tensor", {value("c0"), 3}, "v10"),
                   make_node("aten::linear", {value("v9"), value("p0"), value("p1")}, "v0"),
                   make_node("aten::add_.Tensor", {value("v0"), value("v10")}, "v2")});
  const ModelSpec model = make_imported(with_nodes(nodes, {{"frazil.constant.0", at::ones({8})}}));
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor x = some_input();
  const at::Tensor before = x.clone();
  const at::Tensor expected = at::linear(x.relu(), parameters[0], parameters[1]) + 3;
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(at::equal(run_first(model, x), expected));
  EXPECT_TRUE(at::equal(x, before));
}

TEST(LayerProgram, ANodeWithoutGradientPassesNone) {
  Json scale = make_node("aten::mul.Tensor", {value("v0"), value("v0")}, "v5");
  scale["no_grad"] = true;
  const Json nodes = Json::array(
      {linear(), scale, make_node("aten::mul.Tensor", {value("v0"), value("v5")}, "v2")});
  const ModelSpec model = make_imported(with_nodes(nodes));
  Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
  const at::Tensor x = some_input();
  const at::Tensor found = model.layers[0].forward({LayerId{0}, parameters, {x}, kKey, true}).at(0);
  const at::Tensor hidden = at::linear(x, parameters[0], parameters[1]);
  const at::Tensor expected = hidden * (hidden * hidden).detach();
  const at::Tensor ones = at::ones_like(found);
  EXPECT_TRUE(at::equal(torch::autograd::grad({found}, {parameters[0]}, {ones}).at(0),
                        torch::autograd::grad({expected}, {parameters[0]}, {ones}).at(0)));
}

// The draws of a layer that drops three times, in training alone.
std::shared_ptr<const ImportedModel> dropping() {
  Json first = make_node("aten::dropout", {value("v0"), 0.5, true}, "v5");
  first["random"] = 0;
  Json second = make_node("aten::native_dropout", {value("v5"), 0.25, true}, "v6");
  second["random"] = 1;
  second["out"] = {"v6", nullptr};
  Json third = make_node("aten::bernoulli.p", {value("v6"), 0.5}, "v7");
  third["random"] = 2;
  const Json sum = make_node("aten::add.Tensor", {value("v6"), value("v7")}, "v2");
  const Json doubled = make_node("aten::add.Tensor", {value("v0"), value("v0")}, "v2");
  return with_nodes(Json::array({linear(), first, second, third, sum}), {},
                    Json::array({linear(), doubled}));
}

TEST(LayerProgram, EachDrawOfALayerHasAKeyOfItsOwn) {
  const ModelSpec model = make_imported(dropping());
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor x = some_input();
  const at::Tensor hidden = at::linear(x, parameters[0], parameters[1]);
  const at::Tensor first = drop(hidden, 0.5, LayerId{0}, kKey, true);
  const at::Tensor mask =
      draw_keyed_mask(first.sizes(), first.options(), 0.25, {LayerId{0}, 1}, kKey).to(at::kBool);
  const at::Tensor second = first * mask * (1 / 0.75);
  at::Generator generator = make_generator(DrawPlace{LayerId{0}, 2}, kKey);
  const at::Tensor expected = second + at::bernoulli(second, 0.5, generator);
  EXPECT_TRUE(at::equal(run_first(model, x), expected));
  EXPECT_TRUE(at::equal(run_first(model, x), expected));
  const RandomKey other{.seed = 6, .step = 2, .micro_batch = MicroBatchId{1}};
  EXPECT_FALSE(at::equal(run_first(model, x, other), expected));
}

// What a frozen block puts out may come from a cache, so it must be the same each time.
TEST(LayerProgram, RefusesWhatDrawsInEvaluationToo) {
  Json noise = make_node("aten::bernoulli.p", {value("v0"), 0.5}, "v2");
  noise["random"] = 0;
  try {
    make_imported(with_nodes(Json::array({linear(), noise})));
    ADD_FAILURE() << "it was taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "random numbers in evaluation, in layer first");
  }
}

TEST(LayerProgram, TakesASizeInPlaceOfATensor) {
  const Json size = {{"size", "n"}};
  const Json divided = make_node("aten::div.Tensor", {value("v0"), size}, "v2");
  const ModelSpec model = make_imported(with_nodes(Json::array({linear(), divided})));
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor x = some_input(3);
  EXPECT_TRUE(at::equal(run_first(model, x), at::linear(x, parameters[0], parameters[1]) / 3));
}

TEST(LayerProgram, ASliceDrawsItsRowsOfTheWholeMicroBatch) {
  const ModelSpec model = make_imported(small_mlp().read());
  const at::Tensor x = some_input(5);
  const at::Tensor whole = run_first(model, x);
  RandomKey slice = kKey;
  slice.rows = SampleRows{.first = 1, .count = 3, .all = 5};
  EXPECT_TRUE(at::equal(run_first(model, x.narrow(0, 1, 3), slice), whole.narrow(0, 1, 3)));
  EXPECT_THROW(run_first(make_imported(dropping()), x.narrow(0, 1, 3), slice), InfeasibleError);
}

TEST(LayerProgram, ALayerThatMixesSamplesRefusesASlice) {
  WrittenModel written = small_mlp();
  written.graph["layers"][0]["mixes_samples"] = true;
  RandomKey slice = kKey;
  slice.rows = SampleRows{.first = 0, .count = 2, .all = 4};
  EXPECT_THROW(run_first(make_imported(written.read()), some_input(2), slice), InfeasibleError);
}

TEST(LayerProgram, ALayerThatMixesSamplesInTrainingAloneTakesASliceInEvaluation) {
  WrittenModel written = normed_mlp();
  EXPECT_EQ(make_imported(written.read()).layers[0].mixes_samples, SampleMixing::kAlways);
  written.graph["layers"][0]["mixes_in_evaluation"] = false;
  const ModelSpec model = make_imported(written.read());
  EXPECT_EQ(model.layers[0].mixes_samples, SampleMixing::kInTraining);
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const Tensors running = initial_statistics(model.layers[0]);
  const auto evaluate = [&](const Tensors& inputs, const RandomKey& key) {
    const LayerCall call{.layer = LayerId{0},
                         .parameters = parameters,
                         .inputs = inputs,
                         .key = key,
                         .statistics = &running};
    return model.layers[0].forward(call).at(0);
  };
  RandomKey slice = kKey;
  slice.rows = SampleRows{.first = 1, .count = 3, .all = 5};
  const at::Tensor x = some_input(5);
  EXPECT_TRUE(at::equal(evaluate({x.narrow(0, 1, 3)}, slice), evaluate({x}, kKey).narrow(0, 1, 3)));
}

TEST(LayerProgram, HandsOutTheStatisticsOfItsSamplesInTraining) {
  const ModelSpec model = make_imported(normed_mlp().read());
  const LayerSpec& layer = model.layers[0];
  ASSERT_EQ(layer.statistics.size(), 3U);
  EXPECT_EQ(layer.statistics[1].name, "bn.running_var");
  EXPECT_EQ(layer.statistics[1].momentum, 0.2);
  EXPECT_TRUE(layer.varies_in_training);
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const Tensors running = initial_statistics(layer);
  const at::Tensor hidden = at::linear(some_input(), parameters[0], parameters[1]);
  Tensors found;
  const at::Tensor output =
      layer.forward({LayerId{0}, parameters, {some_input()}, kKey, true, nullptr, &running, &found})
          .at(0);
  EXPECT_TRUE(at::equal(output, at::batch_norm(hidden, {}, {}, {}, {}, true, 0.2, 1e-5, true)));
  ASSERT_EQ(found.size(), 3U);
  EXPECT_TRUE(at::allclose(found[0], hidden.mean(0), 0, 1e-6));
  EXPECT_TRUE(at::allclose(found[1], hidden.var(0), 0, 1e-6));
  EXPECT_FALSE(found[2].defined());
  EXPECT_TRUE(at::equal(running[0], at::full({8}, 0.5F))) << "the step folds, not the forward";
}

TEST(LayerProgram, ReadsRunningStatisticsInEvaluation) {
  const ModelSpec model = make_imported(normed_mlp().read());
  const Tensors parameters = initial_parameters(model, LayerId{0}, 0);
  const at::Tensor hidden = at::linear(some_input(), parameters[0], parameters[1]);
  const Tensors running{at::full({8}, -1.0F), at::full({8}, 3.0F), at::scalar_tensor(9, at::kLong)};
  const at::Tensor found =
      model.layers[0]
          .forward({LayerId{0}, parameters, {some_input()}, kKey, false, nullptr, &running})
          .at(0);
  EXPECT_TRUE(at::equal(
      found, at::batch_norm(hidden, {}, {}, running[0], running[1], false, 0.2, 1e-5, true)));
}

// As of modules without track_running_stats.
TEST(LayerProgram, NormalisesByItsSamplesInEvaluationWithoutRunningStatistics) {
  const ModelSpec model = make_imported(with_nodes(Json::array(
      {linear(), make_node("aten::batch_norm",
                           {value("v0"), nullptr, nullptr, nullptr, nullptr, true, 0.1, 1e-5, true},
                           "v2")})));
  EXPECT_TRUE(at::equal(run_first(model, some_input(), kKey, false),
                        run_first(model, some_input(), kKey, true)));
}

TEST(LayerProgram, AMicroBatchWithOneValueOfAChannelIsRefused) {
  const ModelSpec model = make_imported(normed_mlp().read());
  try {
    run_first(model, some_input(1));
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(
        error.what(),
        "layer 0 cannot train on a micro-batch of one sample: aten::batch_norm of a.module "
        "(model.py:31) needs more than one value of each channel");
  }
}

std::string refusal_of(const WrittenModel& written) {
  try {
    (void)make_imported(written.read());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(LayerProgram, RunningStatisticsBelongToOneNormalisation) {
  WrittenModel twice = normed_mlp();
  Json& nodes = twice.graph["layers"][0]["nodes"];
  Json second = nodes[1];
  nodes[1]["out"] = {"v1"};
  second["args"][0] = value("v1");
  nodes.push_back(second);
  EXPECT_NE(refusal_of(twice).find("\"bn.running_mean\", read by 2 operations, of which 2 keep it"),
            std::string::npos);

  WrittenModel read = normed_mlp();
  Json& more = read.graph["layers"][0]["nodes"];
  more[1]["out"] = {"v1"};
  more.push_back(make_node("aten::add.Tensor", {value("v1"), value("b0")}, "v2"));
  EXPECT_NE(refusal_of(read).find("\"bn.running_mean\", read by 2 operations, of which 1 keep it"),
            std::string::npos);

  WrittenModel written = normed_mlp();
  Json& evaluation = written.graph["layers"][0]["evaluation"];
  evaluation =
      Json::array({linear(), make_node("aten::view", {value("b0"), Json::array({8})}, "v5"),
                   make_node("aten::add_.Tensor", {value("v5"), 1}, "v6"),
                   make_node("aten::add.Tensor", {value("v0"), value("v6")}, "v2")});
  EXPECT_NE(refusal_of(written).find("writes into the buffer \"bn.running_mean\""),
            std::string::npos);

  WrittenModel shared = normed_mlp();
  shared.graph["layers"][1]["buffers"] = {"b0"};
  EXPECT_NE(refusal_of(shared).find("the buffer \"bn.running_mean\" in several layers"),
            std::string::npos);
}

TEST(LayerProgram, AFailingOperationSaysWhereItStands) {
  const Json nodes =
      Json::array({linear(), make_node("aten::view", {value("v0"), Json::array({7, 7})}, "v2")});
  try {
    run_first(make_imported(with_nodes(nodes)), some_input());
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("aten::view of a.module (model.py:31)"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace frazil
