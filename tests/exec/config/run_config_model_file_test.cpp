#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exec/config/run_config.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// A folder of its own with a model file, and configurations beside it.
class RunConfigModelFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fresh_path().replace_extension("");
    fs::create_directories(folder_);
    small_mlp().write(folder_ / "model.safetensors");
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunConfig parse(const std::string& model, const std::string& data = kFiles) const {
    return parse_run_config(R"({"format": "frazil.run", "version": 1,
 "model": )" + model +
                                ",\n \"data\": " + data + "}",
                            (folder_ / "run.json").string());
  }

  std::string refusal(const std::string& model, const std::string& data = kFiles) const {
    try {
      (void)parse(model, data);
    } catch (const InputError& error) {
      return std::to_string(error.line()) + ": " + error.found() + ", expected " + error.expected();
    }
    return "";
  }

  static constexpr const char* kFiles =
      R"({"kind": "tensors", "train": ["a.safetensors"], "test": ["b.safetensors"]})";
  fs::path folder_;
};

TEST_F(RunConfigModelFile, LiesBesideTheConfigurationAndIsWrittenWithItsWholePath) {
  const RunConfig config = parse(R"({"kind": "file", "path": "model.safetensors"})");
  EXPECT_EQ(count_blocks(config.model), 2);
  ASSERT_TRUE(find_file(kept_network(config.model)));
  const std::string text = to_json(config);
  EXPECT_NE(text.find((folder_ / "model.safetensors").string()), std::string::npos);
  EXPECT_EQ(parse_run_config(text, "elsewhere/run.json"), config);
}

TEST_F(RunConfigModelFile, IsRefusedWithItsNameIfItIsNotThereOrNoModel) {
  EXPECT_NE(refusal(R"({"kind": "file", "path": "other.safetensors"})").find("no such file"),
            std::string::npos);
  std::ofstream(folder_ / "text.safetensors") << "nothing of the kind";
  EXPECT_NE(refusal(R"({"kind": "file", "path": "text.safetensors"})"), "");
  EXPECT_NE(refusal(R"({"kind": "file"})").find("expected the key \"path\""), std::string::npos);
  EXPECT_NE(refusal(R"({"kind": "file", "path": ""})").find("the path of a model file"),
            std::string::npos);
}

TEST_F(RunConfigModelFile, TakesDataFilesWhereItsSamplesAreNoImagesAndNoTexts) {
  const std::string model = R"({"kind": "file", "path": "model.safetensors"})";
  EXPECT_EQ(
      refusal(model, R"({"kind": "synthetic"})"),
      R"(3: `"synthetic"` at $.data.kind, expected "tensors" for a model whose samples are no )"
      "images and no texts of classes");
  EXPECT_EQ(refusal(model, R"({"kind": "digits"})"),
            R"(2: `"model.safetensors"` at $.model.path, expected a model of 8 x 8 images of one )"
            "channel and of ten classes or more, for the digits");
  EXPECT_NE(refusal(model, R"({"kind": "random-hierarchy"})"), "");
}

}  // namespace
}  // namespace frazil
