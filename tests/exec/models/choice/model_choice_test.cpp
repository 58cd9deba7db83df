#include "exec/models/choice/model_choice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "exec/data/token_samples.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

ModelChoice parse(const std::string& text) {
  return parse_model(parse_json(text, "model.json"), "");
}

MobilenetShape small_shape() {
  return {.image = 5,
          .channels = 2,
          .stem = 4,
          .stem_stride = 2,
          .widths = {4, 6},
          .cells = {2, 1},
          .strides = {1, 2},
          .head = 8,
          .batch_norm = false,
          .classes = 3};
}

// A small model of each kind of Frazil's own, in the order of kinds.
std::vector<ModelChoice> small_choices() {
  return {VitConfig{.dim = 16, .blocks = 1, .heads = 2},
          DecoderConfig{.vocabulary = 11, .tokens = 7, .dim = 8, .blocks = 3, .heads = 2},
          EncoderConfig{.vocabulary = 9, .tokens = 6, .dim = 8, .blocks = 1, .heads = 2},
          CnnConfig{.image = 5, .channels = 3, .width = 4, .detour = 6, .units = 2, .classes = 4},
          MlpConfig{.image = 3, .channels = 2, .widths = {7, 5}, .classes = 3},
          VggConfig{.image = 5, .channels = 2, .widths = {4, 6}, .convolutions = 1, .classes = 3},
          MobilenetConfig{.shape = small_shape(),
                          .operations = {{CellOperation::kKernel5Expand3, CellOperation::kZero},
                                         {CellOperation::kKernel7Expand6}}},
          SupernetConfig{.shape = small_shape(), .architecture_every = 3, .architecture_from = 12}};
}

Samples some_samples(const SampleForm& form, int count) {
  if (!form.reads_images()) return make_token_samples(count, 1, form, 3).train.whole();
  const std::vector<std::int64_t>& shape = form.inputs.front().shape;
  return make_synthetic(count, 1, static_cast<int>(shape.front()), static_cast<int>(shape.back()),
                        static_cast<int>(form.classes), 3)
      .train.whole();
}

TEST(ModelChoice, WithoutKindIsAVitThatIsWrittenWithoutKind) {
  EXPECT_EQ(parse("{}"), ModelChoice(VitConfig{}));
  EXPECT_EQ(parse(R"({"kind": "vit", "dim": 32})"), parse(R"({"dim": 32})"));
  EXPECT_EQ(to_json(parse(R"({"kind": "vit"})")),
            R"({"image": 8, "channels": 1, "patch": 2, "dim": 64, "blocks": 6, "heads": 4, )"
            R"("classes": 10, "dropout": 0})");
}

TEST(ModelChoice, OfEachKindHasDefaultsAndComesBackFromItsText) {
  std::size_t index = 0;
  for (const ModelChoice& choice : small_choices()) {
    SCOPED_TRACE(kNetworkKinds.at(index));
    EXPECT_EQ(kept_network(choice).index(), index);
    EXPECT_EQ(parse(to_json(choice)), choice);
    const ModelChoice plain = parse(R"({"kind": ")" + std::string(kNetworkKinds[index]) + R"("})");
    EXPECT_EQ(kept_network(plain).index(), index);
    EXPECT_EQ(parse(to_json(plain)), plain);
    ++index;
  }
  EXPECT_EQ(index + 1, kNetworkKinds.size());  // a model file has no default
  EXPECT_EQ(kNetworkKinds.back(), "file");
}

TEST(ModelChoice, CountsTheBlocksOfItsModelWithTheHeadLast) {
  for (const ModelChoice& choice : small_choices()) {
    const ModelSpec model = make_model(choice);
    SCOPED_TRACE(model.name);
    EXPECT_EQ(count_blocks(choice), static_cast<int>(model.blocks.size()));
    EXPECT_EQ(model.layers.front().block, BlockId{0});
    EXPECT_TRUE(model.edges_into(LayerId{0}).empty());
    EXPECT_EQ(model.layers.back().block.index() + 1, model.blocks.size());
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      EXPECT_EQ(model.has_loss(LayerId{l}), l + 1 == model.layers.size());
    }
  }
}

TEST(ModelChoice, ReadsSamplesOfTheFormThatItTells) {
  for (const ModelChoice& choice : small_choices()) {
    const ModelSpec model = make_model(choice);
    SCOPED_TRACE(model.name);
    const SampleForm form = sample_form(choice);
    EXPECT_EQ(form.input_bytes(), model.input_bytes_per_sample);
    const Samples samples = some_samples(form, 3);
    for (std::size_t i = 0; i < form.inputs.size(); ++i) {
      EXPECT_EQ(static_cast<std::int64_t>(samples.inputs.at(i).nbytes()),
                3 * form.inputs[i].bytes().count);
    }
    const at::Tensor logits = example_outputs(model, samples).back().at(0);
    std::vector<std::int64_t> expected = samples.labels.sizes().vec();
    expected.push_back(form.classes);
    EXPECT_EQ(logits.sizes().vec(), expected);
    EXPECT_TRUE(std::isfinite(model.layers.back().loss({logits}, samples.labels).item<double>()));
  }
}

TEST(ModelChoice, NamesItsWeightsAsHuggingFaceDoes) {
  const std::map<std::size_t, std::map<std::string, std::vector<std::int64_t>>> expected{
      {1,
       {{"transformer.wte.weight", {11, 8}},
        {"transformer.wpe.weight", {7, 8}},
        {"transformer.h.2.attn.c_attn.weight", {24, 8}},
        {"transformer.h.2.attn.c_attn.bias", {24}},
        {"transformer.h.0.mlp.c_fc.weight", {32, 8}},
        {"transformer.h.0.mlp.c_proj.weight", {8, 32}},
        {"transformer.h.1.ln_2.bias", {8}},
        {"transformer.ln_f.weight", {8}},
        {"lm_head.weight", {11, 8}}}},
      {2,
       {{"bert.embeddings.word_embeddings.weight", {9, 8}},
        {"bert.embeddings.token_type_embeddings.weight", {2, 8}},
        {"bert.embeddings.LayerNorm.bias", {8}},
        {"bert.encoder.layer.0.attention.self.query.weight", {8, 8}},
        {"bert.encoder.layer.0.attention.self.value.bias", {8}},
        {"bert.encoder.layer.0.attention.output.LayerNorm.weight", {8}},
        {"bert.encoder.layer.0.intermediate.dense.weight", {32, 8}},
        {"bert.encoder.layer.0.output.dense.weight", {8, 32}},
        {"bert.pooler.dense.weight", {8, 8}},
        {"classifier.bias", {4}}}}};
  for (const ModelChoice& choice : small_choices()) {
    const ModelSpec model = make_model(choice);
    SCOPED_TRACE(model.name);
    std::vector<Tensors> start;
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      start.push_back(initial_parameters(model, LayerId{l}, 1));
    }
    std::vector<const Tensors*> parameters;
    std::int64_t bytes = 0;
    for (const Tensors& tensors : start) {
      parameters.push_back(&tensors);
      for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    std::map<std::string, std::vector<std::int64_t>> found;
    for (const NamedTensor& weight : name_weights(choice, parameters)) {
      EXPECT_TRUE(found.try_emplace(weight.name, weight.tensor.sizes().vec()).second);
      bytes -= static_cast<std::int64_t>(weight.tensor.nbytes());
    }
    EXPECT_EQ(bytes, 0);
    const auto known = expected.find(kept_network(choice).index());
    if (known == expected.end()) continue;
    for (const auto& [name, shape] : known->second) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_EQ(found.at(name), shape) << name;
    }
  }
}

void expect_refused(const std::map<std::string, std::string>& sentences) {
  for (const auto& [text, sentence] : sentences) {
    try {
      (void)parse(text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "model.json:1: " + sentence);
    }
  }
}

TEST(ModelChoice, RefusesWhatCannotBeMadeInOneSentence) {
  const std::map<std::string, std::string> sentences{
      {R"({"kind": "gpt"})",
       R"(found `"gpt"` at $.kind, expected "vit", "decoder", "encoder", "cnn", "mlp", "vgg", )"
       R"("mobilenet", "supernet", "file" or "distillation")"},
      {R"({"kind": "decoder", "patch": 2})",
       R"(found the unknown key "patch" at $, expected no keys but "kind", "vocabulary", "tokens", )"
       R"("dim", "blocks", "heads", "expansion", "dropout")"},
      {R"({"kind": "decoder", "dim": 30})",
       "found `30` at $.dim, expected dim (30) divisible by heads (4)"},
      {R"({"kind": "encoder", "heads": 5})",
       "found `5` at $.heads, expected dim (64) divisible by heads (5)"},
      {R"({"kind": "encoder", "segments": 0})",
       "found `0` at $.segments, expected an integer from 1 to 1048576"},
      {R"({"kind": "cnn", "width": 7})", "found `7` at $.width, expected an even number"},
      {R"({"kind": "cnn", "dropout": 0.1})",
       R"(found the unknown key "dropout" at $, expected no keys but "kind", "image", "channels", )"
       R"("width", "detour", "units", "classes")"},
      {R"({"kind": "mlp", "widths": []})",
       "found no width at $.widths, expected one for each layer below the head"},
      {R"({"kind": "mlp", "widths": [4, 0]})",
       "found `0` at $.widths[1], expected an integer from 1 to 1048576"}};
  expect_refused(sentences);
}

TEST(ModelChoice, RefusesCellsThatCannotBeMadeInOneSentence) {
  expect_refused({
      {R"({"kind": "mobilenet", "cells": [2, 0, 2]})",
       "found `0` at $.cells[1], expected an integer from 1 to 65536"},
      {R"({"kind": "supernet", "strides": [1, 3, 2]})",
       "found `3` at $.strides[1], expected an integer from 1 to 2"},
      {R"({"kind": "supernet", "widths": [8, 8], "cells": [1, 1, 1]})",
       R"(found a list of 3 at $.cells, expected 2, one for each of "widths")"},
      {R"({"kind": "mobilenet", "strides": [1]})",
       R"(found a list of 1 at $.strides, expected 3, one for each of "widths")"},
      {R"({"kind": "mobilenet", "widths": []})",
       "found no width at $.widths, expected one for each stage of cells"},
      {R"({"kind": "mobilenet", "operations": [["k3e3", "k3e3"]]})",
       R"(found a list of 1 at $.operations, expected 3, one for each of "widths")"},
      {R"({"kind": "mobilenet", "widths": [8], "operations": [["k3e3"]]})",
       "found a list of 1 at $.operations[0], expected 2, one for each cell of the stage"},
      {R"({"kind": "mobilenet", "widths": [8], "cells": [1], "operations": [["k3e4"]]})",
       R"(found `"k3e4"` at $.operations[0][0], expected "k3e3", "k3e6", "k5e3", "k5e6", )"
       R"("k7e3", "k7e6" or "zero"; did you mean k3e3?)"},
      {R"({"kind": "mobilenet", "widths": [8], "cells": [1], "operations": [["zero"]]})",
       R"(found `"zero"` at $.operations[0][0], expected another operation: cell stage1.0 has )"
       "no skip, as its input has another size than its output"},
      {R"({"kind": "supernet", "operations": []})",
       R"(found the unknown key "operations" at $, expected no keys but "kind", "image", )"
       R"("channels", "stem", "stem_stride", "widths", "cells", "strides", "head", "batch_norm", )"
       R"("classes", "architecture_every", "architecture_from")"},
      {R"({"kind": "supernet", "architecture_every": -1})",
       "found `-1` at $.architecture_every, expected an integer from 0 to 1048576"},
  });
}

TEST(ModelChoice, OfCellsHasTwoInEachStageAndHalvesTheImageBehindTheFirst) {
  const ModelChoice choice = parse(R"({"kind": "mobilenet", "widths": [8, 8, 12, 16]})");
  const MobilenetShape& shape = std::get<MobilenetConfig>(kept_network(choice)).shape;
  EXPECT_EQ(shape.cells, (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(shape.strides, (std::vector<int>{1, 2, 2, 2}));
}

}  // namespace
}  // namespace frazil
