#include "exec/models/imported/model_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "exec/models/imported/imported_model.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

// Returns the sentence with which reading and making the model are refused.
std::string refusal(const WrittenModel& model) {
  const std::filesystem::path path = fresh_path();
  model.write(path);
  std::string what;
  try {
    make_imported(std::make_shared<const ImportedModel>(read_model_file(path)));
  } catch (const InputError& error) {
    what = error.what();
    EXPECT_EQ(error.file(), path.string());
  }
  std::filesystem::remove(path);
  return what;
}

using Change = std::function<void(WrittenModel&)>;

// Each part must stand in the sentence.
void expect_refused(const Change& change, const std::vector<std::string>& parts) {
  WrittenModel model = small_mlp();
  change(model);
  const std::string what = refusal(model);
  for (const std::string& part : parts) {
    EXPECT_NE(what.find(part), std::string::npos) << part << " is not in: " << what;
  }
  EXPECT_EQ(what.find('\n'), std::string::npos);
}

Json& node_of(WrittenModel& model, std::size_t layer, std::size_t node) {
  return model.graph["layers"][layer]["nodes"][node];
}

TEST(ModelFile, SaysWhatWasWritten) {
  const auto model = small_mlp().read();
  const ImportedGraph& graph = model->graph;
  EXPECT_EQ(graph.name, "mlp");
  ASSERT_EQ(graph.layers.size(), 2U);
  EXPECT_EQ(graph.layers[0].nodes[1].draw, 0);
  EXPECT_EQ(place_of(graph.layers[1].nodes[0]), "aten::linear of a.module (model.py:31)");
  EXPECT_EQ(graph.loss.ignored_label, -100);
  EXPECT_FALSE(graph.witness);
}

TEST(ModelFile, SizesArePolynomialsOfTheSamples) {
  Polynomial samples{.kind = Polynomial::Kind::kSamples, .terms = {}};
  Polynomial half{.kind = Polynomial::Kind::kQuotient, .number = 2, .terms = {samples}};
  Polynomial six{.number = 6, .terms = {}};
  const Polynomial sum{.kind = Polynomial::Kind::kSum, .terms = {half, six}};
  const Polynomial product{.kind = Polynomial::Kind::kProduct, .terms = {sum, samples}};
  EXPECT_EQ(product.at(5), (2 + 6) * 5);
  EXPECT_TRUE(product.depends_on_samples());
  EXPECT_FALSE(six.depends_on_samples());
  const Polynomial large{.kind = Polynomial::Kind::kProduct,
                         .terms = {{.number = std::int64_t{1} << 62, .terms = {}}, samples}};
  EXPECT_THROW(large.at(4), InfeasibleError);
}

TEST(ModelFile, RefusesPickledWeightsAndSaysHowToExport) {
  const std::filesystem::path path = fresh_path();
  for (const std::string& bytes : {std::string("PK\x03\x04 and more"),
                                   std::string("\x80\x02\x8a\x0al\xfc\x9c\x46 and more")}) {
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      read_model_file(path);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("frazil.export_model"), std::string::npos);
    }
  }
  write_tensor_file(path, {{"x", at::ones({1})}});
  EXPECT_THROW(read_model_file(path), InputError);
  std::filesystem::remove(path);
}

TEST(ModelFile, RefusesAnUnknownOperationWithItsModuleAndLine) {
  for (const char* op : {"aten::no_such", "aten::from_file", "other::linear"}) {
    expect_refused([op](WrittenModel& m) { node_of(m, 0, 2)["op"] = op; },
                   {op, "a.module (model.py:31)"});
  }
}

TEST(ModelFile, RefusesASizeThatDependsOnDataOrIsNoPolynomial) {
  for (const char* size : {R"("u0")", R"(["max","n",3])", "[]", R"(["//","n",0])", "1.5"}) {
    expect_refused(
        [size](WrittenModel& m) {
          node_of(m, 0, 2) = make_node(
              "aten::view", {value("v1"), Json::array({{{"size", Json::parse(size)}}})}, "v2");
        },
        {"aten::view of a.module (model.py:31)"});
  }
}

TEST(ModelFile, RefusesARandomOperationWithoutAKey) {
  expect_refused([](WrittenModel& m) { node_of(m, 0, 1).erase("random"); },
                 {"no random key", "aten::dropout of a.module (model.py:31)"});
  expect_refused(
      [](WrittenModel& m) {
        node_of(m, 0, 2) = make_node("aten::rand_like", Json::array({value("v1")}), "v2");
      },
      {"aten::rand_like of a.module (model.py:31)"});
  expect_refused(
      [](WrittenModel& m) {
        node_of(m, 0, 2) = make_node("aten::alpha_dropout", {value("v1"), 0.5, true}, "v2");
      },
      {"takes no key", "aten::alpha_dropout of a.module (model.py:31)"});
}

TEST(ModelFile, RefusesAnotherSchema) {
  const std::string old = "aten::tanh(Tensor self, int how) -> Tensor";
  expect_refused(
      [&](WrittenModel& m) {
        std::map<std::string, std::string> schemas;
        m.graph["schemas"] = {{"aten::linear",
                               "aten::linear(Tensor input, Tensor weight, Tensor? "
                               "bias=None) -> Tensor"},
                              {"aten::dropout",
                               "aten::dropout(Tensor input, float p, bool train) "
                               "-> Tensor"},
                              {"aten::tanh", old}};
      },
      {old, "of a.module (model.py:31)", "as this libtorch has it"});
}

TEST(ModelFile, RefusesArgumentsThatDoNotFitTheSchema) {
  expect_refused([](WrittenModel& m) { node_of(m, 0, 2)["args"].push_back(1); },
                 {"aten::tanh of a.module", "at most 1"});
  expect_refused([](WrittenModel& m) { node_of(m, 0, 1)["args"][1] = "half"; },
                 {"does not fit p", "aten::dropout of a.module"});
  expect_refused([](WrittenModel& m) { node_of(m, 0, 2)["args"] = Json::array(); },
                 {"no argument self", "aten::tanh of a.module"});
  expect_refused([](WrittenModel& m) { node_of(m, 0, 2)["kwargs"]["inplace"] = true; },
                 {"the argument inplace"});
  expect_refused(
      [](WrittenModel& m) {
        node_of(m, 0, 2)["out"] = {"v2", "v9"};
      },
      {"2 results of aten::tanh"});
}

TEST(ModelFile, RefusesBlocksOutOfOrderWithoutLayersOrNames) {
  const auto blocks = [](Json names, std::vector<int> of_layers) {
    return [names, of_layers](WrittenModel& model) {
      model.graph["blocks"] = names;
      for (std::size_t l = 0; l < of_layers.size(); ++l) {
        model.graph["layers"][l]["block"] = of_layers[l];
      }
    };
  };
  expect_refused(blocks({"a", "b"}, {1, 0}), {"\"first\" of block 1", "expected one of block 0"});
  expect_refused(blocks({"a", "b", "c"}, {0, 2}),
                 {"\"second\" of block 2", "expected one of block 0 or 1"});
  expect_refused(blocks({"a", "b", "c"}, {0, 1}), {"no layer of block \"c\""});
  expect_refused(blocks({"a", "a"}, {0, 1}), {"the block \"a\" again"});
  expect_refused(blocks({"a", ""}, {0, 1}), {"a block without a name"});
}

TEST(ModelFile, RefusesAWitnessThatShowsLessThanItSeemsTo) {
  const auto witness = [](const std::function<void(Json&)>& change) {
    return [change](WrittenModel& model) {
      add_mlp_witness(model);
      change(model.graph["witness"]["cases"]);
    };
  };
  expect_refused(witness([](Json& cases) { cases[1]["n"] = cases[0]["n"]; }),
                 {"two cases of 4 samples"});
  expect_refused(witness([](Json& cases) { cases[0]["outputs"] = Json::array(); }),
                 {"a case without outputs"});
}

TEST(ModelFile, RefusesSizesThatNoMemoryHolds) {
  for (const std::int64_t size : {std::int64_t{-5}, std::int64_t{1} << 62}) {
    expect_refused(
        [size](WrittenModel& model) {
          model.graph["layers"][1]["output_types"][0]["shape"] = {"n", size, size};
        },
        {"a tensor with a dimension of "});
  }
}

// A causal loss leaves out the first label of each sample.
TEST(ModelFile, CountsTheLabelsThatTheLossReads) {
  WrittenModel model = small_mlp();
  Json& loss = model.graph["loss"];
  const Json shifted =
      make_node("aten::slice.Tensor", {value("labels"), 0, 1, std::int64_t{1} << 40}, "v90");
  loss["nodes"].insert(loss["nodes"].begin(), shifted);
  loss["counted"] = "v90";
  const ModelSpec spec = make_imported(model.read());
  const at::Tensor labels = at::tensor(std::vector<std::int64_t>{2, -100, 3, 1});
  EXPECT_EQ(spec.layers.back().count_labels(labels), 2);
  loss["counted"] = "labels";
  EXPECT_EQ(make_imported(model.read()).layers.back().count_labels(labels), 3);
  expect_refused([](WrittenModel& small) { small.graph["loss"]["counted"] = "v91"; },
                 {"expected a value of the loss"});
  expect_refused([](WrittenModel& small) { small.graph["loss"]["counted"] = "o0"; },
                 {"$.loss.counted", "made of \"o0\"", "made of them and of constants alone"});
  expect_refused(
      [](WrittenModel& small) { small.graph["loss"]["counted"] = small.graph["loss"]["out"]; },
      {"$.loss.counted", "made of \"o0\""});
}

TEST(ModelFile, RefusesValuesThatNothingMade) {
  expect_refused([](WrittenModel& m) { node_of(m, 0, 2)["args"][0] = value("v7"); },
                 {"\"v7\" in aten::tanh of a.module (model.py:31)", "$.layers[0].nodes[2]"});
  expect_refused([](WrittenModel& m) { node_of(m, 0, 2)["out"][0] = "v1"; }, {"\"v1\""});
  expect_refused([](WrittenModel& m) { m.graph["layers"][0]["outputs"][0] = "v9"; }, {"\"v9\""});
  expect_refused([](WrittenModel& m) { m.graph["layers"][1]["inputs"][0] = "v1"; },
                 {"as the edge carries"});
  expect_refused([](WrittenModel& m) { m.graph["parameters"][0]["tensor"] = "gone"; }, {"gone"});
  expect_refused(
      [](WrittenModel& m) {
        m.graph["parameters"][0]["shape"] = {6, 8};
      },
      {"first.weight"});
  expect_refused([](WrittenModel& m) { m.graph["edges"][0]["outputs"] = {3}; }, {"output 3"});
  expect_refused([](WrittenModel& m) { m.graph["parameters"][1]["tied"] = "first.bias"; },
                 {"layer \"first\" with a tied parameter beside others"});
  expect_refused([](WrittenModel& m) { m.graph["colour"] = 1; }, {"colour"});
  expect_refused([](WrittenModel& m) { m.graph["version"] = 2; }, {"version 1"});
}

}  // namespace
}  // namespace frazil
