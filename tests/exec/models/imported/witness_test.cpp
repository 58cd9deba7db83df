#include "exec/models/imported/witness.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>

#include "exec/models/imported/imported_model.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

WrittenModel witnessed_mlp() {
  WrittenModel model = small_mlp();
  add_mlp_witness(model);
  return model;
}

Fingerprint other_fingerprint() {
  Fingerprint other = test_fingerprint();
  other.mkl = "another";
  return other;
}

std::string refusal(const WrittenModel& model, const Fingerprint& present) {
  try {
    check_witness(model.read(), present);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json& hidden_nodes(WrittenModel& model) { return model.graph["layers"][0]["nodes"]; }

TEST(Witness, AModelWithPyTorchsGradientsPassesBitForBitAndElsewhereToATolerance) {
  const auto model = witnessed_mlp().read();
  EXPECT_EQ(check_witness(model, test_fingerprint()), WitnessVerdict::kBits);
  EXPECT_EQ(check_witness(model, other_fingerprint()), WitnessVerdict::kTolerance);
  Fingerprint processor = test_fingerprint();
  processor.processor = "of another model";
  EXPECT_EQ(check_witness(model, processor), WitnessVerdict::kBits);
}

TEST(Witness, AGraphThatHasLostAGradientIsRefusedWithTheParameter) {
  // The loss is the same, as where the export drops a function's own backward.
  WrittenModel model = witnessed_mlp();
  hidden_nodes(model)[0]["no_grad"] = true;
  for (const Fingerprint& present : {test_fingerprint(), other_fingerprint()}) {
    const std::string what = refusal(model, present);
    EXPECT_NE(what.find("the gradient of \"first."), std::string::npos) << what;
  }
}

TEST(Witness, AGraphWithAnotherBackwardIsRefusedWithTheParameter) {
  // x + (x - x.detach()) has the value of x, up to rounding, and twice its gradient.
  WrittenModel model = witnessed_mlp();
  Json& nodes = hidden_nodes(model);
  nodes =
      Json::array({nodes[0], nodes[1], make_node("aten::detach", Json::array({value("v1")}), "v10"),
                   make_node("aten::sub.Tensor", {value("v1"), value("v10")}, "v11"),
                   make_node("aten::add.Tensor", {value("v1"), value("v11")}, "v12"),
                   make_node("aten::tanh", Json::array({value("v12")}), "v2")});
  for (const Fingerprint& present : {test_fingerprint(), other_fingerprint()}) {
    const std::string what = refusal(model, present);
    EXPECT_NE(what.find("the gradient of \"first."), std::string::npos) << what;
  }
}

TEST(Witness, AWrongValueIsRefused) {
  WrittenModel model = witnessed_mlp();
  model.tensors[3].second = model.tensors[3].second + at::arange(5, at::kFloat) * 0.01;
  EXPECT_NE(refusal(model, test_fingerprint()).find("the loss of 4 samples"), std::string::npos);
  model = witnessed_mlp();
  model.tensors[3].second = model.tensors[3].second * 1.0001F;
  EXPECT_NE(refusal(model, test_fingerprint()), "");
  EXPECT_EQ(refusal(model, other_fingerprint()), "");
}

TEST(Witness, AModelWithoutAWitnessAndAParameterWithoutOneAreRefused) {
  EXPECT_NE(refusal(small_mlp(), test_fingerprint()).find("witness of two batches"),
            std::string::npos);
  WrittenModel model = witnessed_mlp();
  model.graph["witness"]["cases"][1]["gradients"].erase(2);
  EXPECT_NE(refusal(model, test_fingerprint()).find("\"second.weight\" of 3 samples"),
            std::string::npos);
}

TEST(Witness, AnOperationThatFailsIsTold) {
  WrittenModel model = witnessed_mlp();
  Json& nodes = hidden_nodes(model);
  nodes[2] = make_node("aten::view", {value("v1"), Json::array({7, 7})}, "v2");
  EXPECT_NE(refusal(model, test_fingerprint()).find("aten::view of a.module"), std::string::npos);
}

TEST(Witness, APassIsRememberedForTheFileAndTheFingerprint) {
  const fs::path folder = fresh_path();
  const auto model = witnessed_mlp().read();
  const auto count_files = [&] {
    return std::distance(fs::directory_iterator(folder / "witness"), fs::directory_iterator());
  };
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(check_witness_once(model, test_fingerprint(), folder), WitnessVerdict::kBits);
    EXPECT_EQ(count_files(), 1);
  }
  EXPECT_EQ(check_witness_once(model, other_fingerprint(), folder), WitnessVerdict::kTolerance);
  EXPECT_EQ(count_files(), 2);
  // What is remembered is believed: a file whose gradients are wrong has another hash.
  WrittenModel changed = witnessed_mlp();
  hidden_nodes(changed)[0]["no_grad"] = true;
  EXPECT_THROW(check_witness_once(changed.read(), test_fingerprint(), folder), InputError);
  EXPECT_EQ(count_files(), 2);
  // Memory that is damaged is as none.
  for (const auto& file : fs::directory_iterator(folder / "witness")) {
    std::ofstream(file.path()) << "damaged";
  }
  EXPECT_EQ(check_witness_once(model, test_fingerprint(), folder), WitnessVerdict::kBits);
  fs::remove_all(folder);
  EXPECT_EQ(check_witness_once(model, test_fingerprint(), "/dev/null/none"), WitnessVerdict::kBits);
}

}  // namespace
}  // namespace frazil
