#include "exec/models/choice/start_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "exec/models/choice/model_choice.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Weights = std::map<std::string, at::Tensor>;

const ModelChoice kVit = VitConfig{.channels = 3, .dim = 16, .blocks = 2, .heads = 2};
const DecoderConfig kDecoder{.vocabulary = 11, .tokens = 7, .dim = 8, .blocks = 2, .heads = 2};
const EncoderConfig kEncoder{.vocabulary = 9, .tokens = 6, .dim = 8, .blocks = 1, .heads = 2};

std::vector<ModelChoice> choices() {
  return {kVit, kDecoder, kEncoder,
          CnnConfig{.image = 5, .channels = 3, .width = 4, .detour = 6, .units = 2, .classes = 4},
          MlpConfig{.image = 3, .channels = 2, .widths = {7, 5}, .classes = 3}};
}

std::vector<Tensors> start_of(const ModelSpec& model, std::uint64_t seed) {
  std::vector<Tensors> parameters;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    parameters.push_back(initial_parameters(model, LayerId{l}, seed));
  }
  return parameters;
}

// Returns the weights of a run with this seed, as its file names them.
Weights weights_of(const ModelChoice& choice, const std::vector<Tensors>& parameters) {
  std::vector<const Tensors*> by_layer;
  for (const Tensors& own : parameters) by_layer.push_back(&own);
  Weights weights;
  for (const NamedTensor& named : name_weights(choice, by_layer)) {
    weights[named.name] = named.tensor.contiguous();
  }
  return weights;
}

Weights weights_of(const ModelChoice& choice) {
  return weights_of(choice, start_of(make_model(choice), /*seed=*/7));
}

ModelSpec start_from_weights(const ModelChoice& choice, const Weights& weights) {
  const fs::path path = fresh_path();
  write_tensor_file(path, {weights.begin(), weights.end()});
  ModelSpec model = make_model(choice);
  try {
    start_from(TensorFile(path), choice, model);
  } catch (...) {
    fs::remove(path);
    throw;
  }
  fs::remove(path);
  return model;
}

void expect_equal(const std::vector<Tensors>& a, const std::vector<Tensors>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t l = 0; l < a.size(); ++l) {
    ASSERT_EQ(a[l].size(), b[l].size());
    for (std::size_t p = 0; p < a[l].size(); ++p) {
      EXPECT_TRUE(at::equal(a[l][p], b[l][p])) << "layer " << l << ", parameter " << p;
      EXPECT_TRUE(a[l][p].is_contiguous());
    }
  }
}

// Expects one sentence with these words.
void expect_refused(const ModelChoice& choice, const Weights& weights, const std::string& found,
                    const std::string& expected) {
  try {
    start_from_weights(choice, weights);
    ADD_FAILURE() << "took what should be " << expected;
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), found);
    EXPECT_EQ(error.expected(), expected);
  }
}

TEST(StartWeights, OfEachKindAreThoseOfTheFileWhateverTheSeed) {
  for (const ModelChoice& choice : choices()) {
    SCOPED_TRACE(make_model(choice).name);
    const std::vector<Tensors> before = start_of(make_model(choice), /*seed=*/7);
    const ModelSpec model = start_from_weights(choice, weights_of(choice, before));
    expect_equal(start_of(model, /*seed=*/8), before);
  }
}

TEST(StartWeights, MayBeChangedWithoutChangingTheFile) {
  const ModelSpec model = start_from_weights(kEncoder, weights_of(kEncoder));
  const std::vector<Tensors> first = start_of(model, 1);
  for (const Tensors& layer : first) {
    for (const at::Tensor& parameter : layer) parameter.add_(1);
  }
  expect_equal(start_of(model, 1), start_of(make_model(kEncoder), 7));
}

TEST(StartWeights, OfADecoderMayLieAsGpt2HoldsThem) {
  // Square maps too: expansion 1 leaves only the first map's shape to tell.
  for (const int expansion : {1, 4}) {
    DecoderConfig config = kDecoder;
    config.expansion = expansion;
    const std::vector<Tensors> before = start_of(make_model(ModelChoice(config)), 7);
    Weights weights = weights_of(config, before);
    int turned = 0;
    for (auto& [name, weight] : weights) {
      const bool is_map = name.ends_with("c_attn.weight") || name.ends_with("c_proj.weight") ||
                          name.ends_with("c_fc.weight");
      if (is_map) weight = weight.t().contiguous();
      turned += is_map ? 1 : 0;
    }
    EXPECT_EQ(turned, 4 * config.blocks);
    expect_equal(start_of(start_from_weights(config, weights), 8), before);
  }
}

TEST(StartWeights, NeedOneNameOfATiedTableAndEqualValuesUnderTwo) {
  const std::vector<Tensors> before = start_of(make_model(ModelChoice(kDecoder)), 7);
  for (const char* const left_out : {"lm_head.weight", "transformer.wte.weight"}) {
    Weights weights = weights_of(kDecoder, before);
    ASSERT_EQ(weights.erase(left_out), 1U);
    expect_equal(start_of(start_from_weights(kDecoder, weights), 8), before);
  }
  Weights weights = weights_of(kDecoder, before);
  weights["lm_head.weight"] = weights["lm_head.weight"] + 1;
  expect_refused(kDecoder, weights,
                 R"(different values of "transformer.wte.weight" and "lm_head.weight")",
                 "equal ones: the model ties them");
  weights.erase("lm_head.weight");
  weights.erase("transformer.wte.weight");
  expect_refused(kDecoder, weights, R"(no "transformer.wte.weight" and 1 more)",
                 "the weights of decoder-v11-t7-d8-b2-h2, all and no others");
}

TEST(StartWeights, AreAllOfTheModelsAndNoOthers) {
  const std::string expected = "the weights of encoder-v9-t6-d8-b1-h2-c4, all and no others";
  Weights weights = weights_of(kEncoder);
  weights.erase("classifier.weight");
  expect_refused(kEncoder, weights, R"(no "classifier.weight")", expected);
  weights.erase("classifier.bias");
  weights.erase("bert.encoder.layer.0.attention.self.key.weight");
  expect_refused(kEncoder, weights,
                 R"(no "bert.encoder.layer.0.attention.self.key.weight" and 2 more)", expected);
  weights["cls.bias"] = at::ones({2});
  expect_refused(kEncoder, weights,
                 R"(no "bert.encoder.layer.0.attention.self.key.weight" and 2 more, )"
                 R"(but "cls.bias")",
                 expected);
  weights = weights_of(kEncoder);
  weights["cls.bias"] = at::ones({2});
  weights["cls.weight"] = at::ones({2});
  expect_refused(kEncoder, weights, R"("cls.bias" and 1 more)", expected);
}

TEST(StartWeights, HaveTheShapesAndTheTypeOfTheModel) {
  Weights weights = weights_of(kEncoder);
  weights["classifier.weight"] = at::ones({2, 8});
  expect_refused(kEncoder, weights, R"(shape [2, 8] of "classifier.weight")",
                 "[4, 8], as the run's model has it");
  weights = weights_of(kEncoder);
  weights["classifier.bias"] = weights["classifier.bias"].to(at::kDouble);
  expect_refused(kEncoder, weights, R"(float64 in "classifier.bias")", "float32");
  // A turned map among others that are not is another shape.
  weights = weights_of(kDecoder);
  at::Tensor& inner = weights["transformer.h.1.mlp.c_fc.weight"];
  inner = inner.t().contiguous();
  expect_refused(kDecoder, weights, R"(shape [8, 32] of "transformer.h.1.mlp.c_fc.weight")",
                 "[32, 8], as the run's model has it");
}

TEST(StartWeights, AreFinite) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Weights weights = weights_of(kEncoder);
    weights["classifier.weight"].view(-1)[3] = value;
    expect_refused(kEncoder, weights, R"(a value that is not finite in "classifier.weight")",
                   "finite numbers");
  }
}

TEST(StartWeights, OfAModelFileGoBeforeItsOwnAndLeaveWhatIsNoParameter) {
  WrittenModel written = small_mlp();
  written.tensors.emplace_back("pooler.weight", at::ones({2}));
  written.graph["kept"] = Json::array({"pooler.weight"});
  const fs::path path = fresh_path();
  written.write(path);
  const ModelChoice choice = read_file_model(path);
  std::vector<Tensors> other = start_of(make_model(choice), 1);
  for (const Tensors& layer : other) {
    for (const at::Tensor& parameter : layer) parameter.mul_(2);
  }
  Weights weights = weights_of(choice, other);
  ASSERT_EQ(weights.size(), 5U);
  expect_equal(start_of(start_from_weights(choice, weights), 1), other);
  weights["pooler.weight"] = at::zeros({2});
  expect_refused(choice, weights, R"(another "pooler.weight" than the model file)",
                 "the same or none, for it is no parameter");
  weights.erase("pooler.weight");
  expect_equal(start_of(start_from_weights(choice, weights), 1), other);
  weights.erase("first.bias");
  expect_refused(choice, weights, R"(no "first.bias")", "the weights of mlp, all and no others");
  fs::remove(path);
}

TEST(StartWeights, OfAModelFileHaveItsRunningStatistics) {
  const fs::path path = fresh_path();
  normed_mlp().write(path);
  const ModelChoice choice = read_file_model(path);
  Weights weights = weights_of(choice);
  expect_refused(choice, weights, R"(no "bn.running_mean" and 1 more)",
                 "the weights of mlp, all and no others");
  weights["bn.running_mean"] = at::full({8}, -1.5F);
  weights["bn.running_var"] = at::full({8}, 4.0F);
  const std::vector<StatisticSpec> without =
      start_from_weights(choice, weights).layers[0].statistics;
  EXPECT_TRUE(at::equal(without[0].value, weights["bn.running_mean"]));
  EXPECT_TRUE(at::equal(without[1].value, weights["bn.running_var"]));
  EXPECT_EQ(without[2].value.item<std::int64_t>(), 7);
  weights["bn.num_batches_tracked"] = at::scalar_tensor(99, at::kLong);
  EXPECT_EQ(start_from_weights(choice, weights).layers[0].statistics[2].value.item<std::int64_t>(),
            99);
  weights["bn.running_var"][0] = std::numeric_limits<float>::infinity();
  expect_refused(choice, weights, R"(a value that is not finite in "bn.running_var")",
                 "finite numbers");
  weights["bn.running_var"] = at::ones({7});
  expect_refused(choice, weights, R"(another type or shape of "bn.running_var")",
                 "that of the run's model");
  fs::remove(path);
}

}  // namespace
}  // namespace frazil
