// "kind": "distillation" of a run configuration: what it reads and refuses, and which weights it
// takes and keeps.

#include "exec/models/choice/distillation_choice.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "exec/disk/tensor_file.h"
#include "exec/models/choice/model_choice.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;
using Weights = std::map<std::string, at::Tensor>;

const MlpConfig kTeacher{.image = 3, .channels = 1, .widths = {12, 9}, .classes = 4};
const std::string kMlp = R"({"kind": "mlp", "image": 3, "widths": [12, 9], "classes": 4})";
// One more layer in its second block.
const std::string kDeep = R"({"kind": "mlp", "image": 3, "widths": [12, 7, 9], "classes": 4})";
const std::string kPairs =
    R"(["layer1", {"teacher": "layer2", "student": "layer3"}, {"teacher": "head", "student": "head"}])";

Weights weights_of(const ModelChoice& choice, const ModelSpec& model, std::uint64_t seed) {
  std::vector<Tensors> parameters;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    parameters.push_back(initial_parameters(model, LayerId{l}, seed));
  }
  std::vector<const Tensors*> by_layer;
  for (const Tensors& own : parameters) by_layer.push_back(&own);
  Weights weights;
  for (const NamedTensor& named : name_weights(choice, by_layer))
    weights[named.name] = named.tensor;
  return weights;
}

class DistillationFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_);
    const ModelChoice teacher = NetworkChoice(kTeacher);
    const Weights weights = weights_of(teacher, make_model(teacher), /*seed=*/5);
    write_tensor_file(folder_ / "teacher.safetensors", {weights.begin(), weights.end()});
  }
  void TearDown() override { fs::remove_all(folder_); }

  ModelChoice parse(const std::string& text) const {
    return parse_model(parse_json(text, "run.json"), folder_);
  }
  static std::string text_of(const std::string& student, const std::string& blocks,
                             const std::string& weights = "teacher.safetensors") {
    return R"({"kind": "distillation", "teacher": )" + kMlp +
           (weights.empty() ? "" : R"(, "teacher_weights": ")" + weights + "\"") +
           R"(, "student": )" + student + (blocks.empty() ? "" : ", \"blocks\": " + blocks) + "}";
  }
  void expect_refused(const std::string& text, const std::string& sentence) const {
    SCOPED_TRACE(text);
    try {
      (void)parse(text);
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      std::string told = error.what();
      const std::size_t place = told.find(folder_.string() + "/");
      if (place != std::string::npos) told.erase(place, folder_.string().size() + 1);
      EXPECT_EQ(told, sentence);
    }
  }

  fs::path folder_ = fresh_path();
};

TEST_F(DistillationFiles, ComeBackFromTheirText) {
  for (const std::string& text :
       {text_of(kMlp, ""), text_of(kDeep, kPairs),
        text_of(
            kMlp,
            R"(["layer1", "layer2", {"teacher": "head", "student": "head", "loss": "mse"}])")}) {
    const ModelChoice choice = parse(text);
    EXPECT_EQ(parse(to_json(choice)), choice);
    EXPECT_EQ(count_blocks(choice), static_cast<int>(make_model(choice).blocks.size()));
    EXPECT_EQ(count_blocks(choice), 4);
    EXPECT_EQ(sample_form(choice), sample_form(NetworkChoice(kTeacher)));
  }
}

TEST_F(DistillationFiles, TeachBlocksThatHaveSeveralLayers) {
  const ModelSpec model = make_model(parse(text_of(kDeep, kPairs)));
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.layers) names.push_back(layer.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"teacher.layer1", "student.layer1", "loss.layer1",
                                      "teacher.layer2", "student.layer2", "student.layer3",
                                      "loss.layer3", "teacher.head", "student.head", "loss.head"}));
}

TEST_F(DistillationFiles, BeginWithTheTeachersWeights) {
  const ModelSpec model = make_model(parse(text_of(kMlp, "")));
  const TensorFile file(folder_ / "teacher.safetensors");
  int compared = 0;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const Tensors start = initial_parameters(model, LayerId{l}, /*seed=*/9);
    for (std::size_t p = 0; p < start.size(); ++p) {
      const std::string& name = model.layers[l].parameters[p].name;
      if (!name.starts_with("teacher.")) continue;
      EXPECT_TRUE(at::equal(start[p], file.view(name.substr(8)))) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6);
}

TEST_F(DistillationFiles, KeepTheStudentUnderItsOwnNamesAndBeginWithIt) {
  const ModelChoice choice = parse(text_of(kDeep, kPairs));
  const Weights kept = weights_of(choice, make_model(choice), /*seed=*/9);
  const ModelChoice student = kept_network(choice);
  const Weights plain = weights_of(student, make_model(student), /*seed=*/9);
  ASSERT_EQ(kept.size(), plain.size());
  for (const auto& [name, tensor] : plain) {
    ASSERT_TRUE(kept.contains(name)) << name;
    EXPECT_EQ(kept.at(name).sizes(), tensor.sizes());
  }
  write_tensor_file(folder_ / "student.safetensors", {kept.begin(), kept.end()});
  ModelSpec again = make_model(choice);
  start_from(TensorFile(folder_ / "student.safetensors"), choice, again);
  for (const auto& [name, tensor] : weights_of(choice, again, /*seed=*/10)) {
    EXPECT_TRUE(at::equal(tensor, kept.at(name))) << name;
  }
}

TEST_F(DistillationFiles, AreRefusedInOneSentence) {
  expect_refused(text_of(kMlp, "", ""),
                 "run.json:1: found a teacher without weights at $.teacher, expected "
                 "\"teacher_weights\" beside it, a file that training it has left");
  expect_refused(text_of(kMlp, "", "none.safetensors"),
                 "none.safetensors: found no such file, expected a safetensors file, as "
                 "\"teacher_weights\" of the run names it");
  expect_refused(text_of(kDeep, ""),
                 "run.json:1: found 4 blocks, where the teacher has 3 at $.student, expected "
                 "equally many, or \"blocks\" that say which belong together");
  expect_refused(text_of(kDeep, R"(["layer1", "layer2", "head"])"),
                 "run.json:1: found [1, 9] of the teacher and [1, 7] of the student behind block "
                 "layer2 at $.blocks[1], expected tensors of equal shape and floating-point type");
  expect_refused(text_of(kMlp, R"(["layer2", "layer1", "head"])"),
                 "run.json:1: found `\"layer1\"` at $.blocks[1], expected a block of the teacher "
                 "behind the one before: \"head\"");
  expect_refused(text_of(kMlp, R"(["layer1", "layer2"])"),
                 "run.json:1: found a last entry that leaves blocks of a network over at "
                 "$.blocks[1], expected the names of the two heads, \"head\" and \"head\"");
  expect_refused(
      text_of(kMlp, R"(["layer1", "head", "head"])"),
      "run.json:1: found `\"head\"` at $.blocks[2], expected no more blocks: the teacher "
      "has no other");
  expect_refused(text_of(kMlp, "[]"),
                 "run.json:1: found no block at $.blocks, expected the blocks of the distillation, "
                 "the two heads last");
  expect_refused(
      text_of(kMlp, R"([{"teacher": "head", "student": "head", "loss": "none"}])"),
      "run.json:1: found `\"none\"` at $.blocks[0].loss, expected \"mse\" or \"cross-entropy\"");
  expect_refused(text_of(R"({"kind": "mlp", "image": 5, "classes": 4})", ""),
                 "run.json:1: found a student that reads other samples than its teacher at "
                 "$.student, expected equal inputs of both");
  expect_refused(text_of(R"({"kind": "distillation"})", ""),
                 "run.json:1: found `\"distillation\"` at $.student.kind, expected \"vit\", "
                 "\"decoder\", \"encoder\", \"cnn\", \"mlp\", \"vgg\", \"mobilenet\", \"supernet\" "
                 "or \"file\"");
}

TEST_F(DistillationFiles, AreRefusedWhereSeveralTensorsCross) {
  const std::string cnn = R"({"kind": "cnn", "image": 4, "width": 4, "detour": 4, "units": 1})";
  const ModelChoice network = parse(cnn);
  const Weights weights = weights_of(network, make_model(network), 3);
  write_tensor_file(folder_ / "cnn.safetensors", {weights.begin(), weights.end()});
  expect_refused(R"({"kind": "distillation", "teacher": )" + cnn +
                     R"(, "teacher_weights": "cnn.safetensors", "student": )" + cnn + "}",
                 "run.json:1: found 2 tensors (of stem, trunk) behind block trunk of the teacher "
                 "at $.student, expected one tensor, of the block itself");
}

}  // namespace
}  // namespace frazil
