#include "exec/models/imported/file_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "exec/models/choice/model_choice.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

ImportedGraph graph_with(const std::function<void(Json&)>& change) {
  WrittenModel model = small_mlp();
  change(model.graph);
  return model.read()->graph;
}

std::string refusal(const std::function<void(Json&)>& change) {
  WrittenModel model = small_mlp();
  change(model.graph);
  const std::filesystem::path path = fresh_path();
  model.write(path);
  try {
    (void)read_file_model(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(FileModel, ReadsNumbersOfClassesWhereTheGraphSaysNoMore) {
  const SampleForm form = sample_form(small_mlp().read()->graph);
  ASSERT_EQ(form.inputs.size(), 1U);
  EXPECT_EQ(form.inputs[0].meaning, InputMeaning::kNumbers);
  EXPECT_EQ(form.inputs[0].shape, std::vector<std::int64_t>{6});
  EXPECT_EQ(form.labels, LabelMeaning::kClass);
  EXPECT_EQ(form.classes, 5);
  EXPECT_FALSE(form.tells_images_apart() || form.tells_tokens_apart());
}

TEST(FileModel, TakesLabelsOfAnotherShapeOrTypeForWhateverTheLossMakesOfThem) {
  SampleForm form = sample_form(graph_with([](Json& graph) {
    graph["labels"] = {{"dtype", "float32"}, {"shape", {"n", 5}}};
  }));
  EXPECT_EQ(form.labels, LabelMeaning::kOther);
  EXPECT_EQ(form.label_element, Element::kFloat32);
  EXPECT_EQ(form.classes, 0);
  form = sample_form(graph_with([](Json& graph) {
    graph["labels"] = {{"dtype", "int64"}, {"shape", {"n", 2}}};
  }));
  EXPECT_EQ(form.labels, LabelMeaning::kOther);
  EXPECT_EQ(form.label_shape, std::vector<std::int64_t>{2});
}

TEST(FileModel, KnowsATokenByTheTableThatLooksItUp) {
  const ImportedGraph graph = graph_with([](Json& graph) {
    graph["inputs"] =
        Json::array({{{"name", "input_ids"}, {"dtype", "int64"}, {"shape", {"n", 6}}}});
    Json& nodes = graph["layers"][0]["nodes"];
    nodes.insert(nodes.begin(), make_node("aten::embedding", {value("p0"), value("v99")}, "v98"));
    nodes.insert(nodes.begin(),
                 make_node("aten::view", {value("i0"), Json::array({-1, 6})}, "v99"));
  });
  const SampleForm form = sample_form(graph);
  EXPECT_EQ(form.inputs[0].meaning, InputMeaning::kTokens);
  EXPECT_EQ(form.inputs[0].end, 8);
  EXPECT_TRUE(form.tells_tokens_apart());
}

TEST(FileModel, NamesItsWeightsAsTheModelDoesAndKeepsWhatNoOperationReads) {
  WrittenModel written = small_mlp();
  written.tensors.emplace_back("pooler.weight", at::ones({2}));
  written.graph["kept"] = Json::array({"pooler.weight"});
  const std::filesystem::path path = fresh_path();
  written.write(path);
  const ModelChoice choice = read_file_model(path);
  const ModelSpec model = make_model(choice);
  std::vector<Tensors> values;
  std::vector<const Tensors*> by_layer;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    values.push_back(initial_parameters(model, LayerId{l}, /*seed=*/3));
  }
  for (const Tensors& layer : values) by_layer.push_back(&layer);
  const std::vector<NamedTensor> weights = name_weights(choice, by_layer);
  ASSERT_EQ(weights.size(), written.tensors.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].name, written.tensors[i].first);
    EXPECT_TRUE(at::equal(weights[i].tensor, written.tensors[i].second)) << weights[i].name;
  }
}

TEST(FileModel, IsTheSameWhereverItsFileLies) {
  const WrittenModel written = small_mlp();
  const std::filesystem::path one = fresh_path();
  const std::filesystem::path other = fresh_path();
  written.write(one);
  written.write(other);
  EXPECT_EQ(read_file_model(one), read_file_model(other));
  WrittenModel changed = small_mlp();
  changed.tensors[0].second = changed.tensors[0].second + 1;
  changed.write(other);
  EXPECT_FALSE(read_file_model(one) == read_file_model(other));
}

TEST(FileModel, RefusesWhatCannotBeTrainedInOneSentence) {
  EXPECT_NE(refusal([](Json& graph) {
              graph["inputs"][0]["dtype"] = "float64";
            }).find("found the input x of type float64, expected float32, int64 or bool"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& graph) {
              graph["inputs"][0]["shape"] = {"n", Json::array({"*", 2, "n"})};
            }).find("found the input x of another shape for other n"),
            std::string::npos);
  EXPECT_NE(refusal([](Json& graph) {
              graph["blocks"] = {"all"};
              for (Json& layer : graph["layers"]) layer["block"] = 0;
            }).find("found a model of one block, expected two or more"),
            std::string::npos);
}

}  // namespace
}  // namespace frazil
