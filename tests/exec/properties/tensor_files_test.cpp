// A run learns the same from samples in files as from the same samples in memory.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "exec/checkpoint/run_identity.h"
#include "exec/data/tensor_samples.h"
#include "exec/models/choice/model_choice.h"
#include "profiles/error.h"
#include "tests/exec/models/imported/model_writer.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

class TensorFilesRun : public testing::Test {
 protected:
  TensorFilesRun() {
    fs::create_directories(folder_);
    options_.config = tiny_config();
    options_.profile = tiny_profile(options_.config);
    options_.cluster = tiny_cluster(kAmpleMemory);
    data_ = load_data(options_.config);
    options_.config.data = {};
    options_.config.data.kind = DataConfig::Kind::kTensors;
  }
  ~TensorFilesRun() override { fs::remove_all(folder_); }

  // Returns the files that hold the samples, in so many parts.
  std::vector<std::string> write(const std::string& name, const SampleSource& source, int files) {
    std::vector<std::string> paths;
    const std::int64_t each = divide_up<std::int64_t>(source.count(), files);
    for (int f = 0; f < files; ++f) {
      const std::int64_t first = f * each;
      const Samples part =
          source.narrow(first, std::min<std::int64_t>(each, source.count() - first));
      paths.push_back((folder_ / (name + std::to_string(f) + ".safetensors")).string());
      write_tensor_file(paths.back(), {{"pixels", part.inputs[0]}, {"labels", part.labels}},
                        {{"inputs", "pixels"}});
    }
    return paths;
  }

  std::string refusal() {
    try {
      (void)load_data(options_.config);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  void expect_refusal(const NamedTensors& tensors, const std::string& words,
                      const std::map<std::string, std::string>& metadata = {}) {
    const std::string path = (folder_ / "bad.safetensors").string();
    write_tensor_file(path, tensors, metadata);
    options_.config.data.files = {.train = {path}, .test = {path}, .validation = {}};
    const std::string what = refusal();
    EXPECT_NE(what.find(words), std::string::npos) << what;
    EXPECT_NE(what.find("bad.safetensors"), std::string::npos) << what;
  }

  fs::path folder_ =
      fs::temp_directory_path() / ("frazil-tensor-files-" + std::to_string(getpid()));
  TrainOptions options_;
  Dataset data_;
};

TEST_F(TensorFilesRun, HasTheBitsOfTheSameSamplesInMemory) {
  const TrainResult expected = train(options_, data_);
  TensorFiles& files = options_.config.data.files;
  files.test = write("test", data_.test, 1);
  for (const int parts : {1, 5}) {
    files.train = write("train", data_.train, parts);
    const Dataset loaded = load_data(options_.config);
    EXPECT_EQ(loaded.train.hash(), data_.train.hash());
    const TrainResult result = train(options_, loaded);
    EXPECT_EQ(result.weight_hash, expected.weight_hash) << parts;
    EXPECT_EQ(result.accuracy, expected.accuracy);
  }
}

TEST_F(TensorFilesRun, MayHaveItsOwnSamplesToValidateWith) {
  TensorFiles& files = options_.config.data.files;
  files.train = write("train", data_.train, 2);
  files.test = write("test", data_.test, 1);
  files.validation = write("validation", data_.test, 2);
  const Dataset loaded = load_data(options_.config);
  EXPECT_EQ(loaded.validation.count(), data_.test.count());
  const TrainResult result = train(options_, loaded);
  EXPECT_EQ(result.validation->accuracy, result.accuracy);
}

TEST_F(TensorFilesRun, IsTheSameRunWhereverTheFilesLieButNotWithOtherNumbersInThem) {
  RunConfig& config = options_.config;
  TensorFiles& files = config.data.files;
  files.train = write("train", data_.train, 2);
  files.test = write("test", data_.test, 1);
  config.init_from = (folder_ / "start.safetensors").string();
  write_tensor_file(config.init_from, {{"w", at::ones({3})}});
  const auto identify = [&] { return identify_run(config, "model", load_data(config), 18); };
  const RunIdentity same = identify();
  fs::create_directories(folder_ / "moved");
  for (std::string* const path :
       {&files.train[0], &files.train[1], &files.test[0], &config.init_from}) {
    const fs::path moved = folder_ / "moved" / fs::path(*path).filename();
    fs::rename(*path, moved);
    *path = moved.string();
  }
  EXPECT_EQ(identify(), same);
  files.train = write("other", data_.train, 5);
  EXPECT_EQ(identify(), same) << "the same samples in more files";
  files.normalization = {.mean = {0.5}, .deviation = {1}};
  EXPECT_NE(identify().run_hash, same.run_hash);
  files.normalization = {};
  write_tensor_file(config.init_from, {{"w", at::zeros({3})}});
  EXPECT_NE(identify().keys.at("init_from.hash"), same.keys.at("init_from.hash"));
  EXPECT_NE(identify().run_hash, same.run_hash);
  config.init_from.clear();
  EXPECT_FALSE(identify().keys.contains("init_from.hash"));
}

TEST_F(TensorFilesRun, IsRefusedForFilesOfOtherSamples) {
  const at::Tensor pixels = at::zeros({4, 1, 8, 8});
  const at::Tensor labels = at::zeros({4}, at::kLong);
  expect_refusal({{"pixels", pixels}}, "found no tensor labels, expected int64 [n]");
  expect_refusal({{"labels", labels}, {"pixels", pixels.to(at::kDouble)}},
                 "found tensor pixels of float64 [n, 1, 8, 8], expected float32 [n, 1, 8, 8]");
  expect_refusal({{"labels", labels}, {"pixels", at::zeros({4, 1, 8, 7})}},
                 "found tensor pixels of float32 [n, 1, 8, 7], expected float32 [n, 1, 8, 8]");
  expect_refusal({{"labels", labels}, {"pixels", at::zeros({5, 1, 8, 8})}},
                 "found 5 samples in pixels, expected 4, as there are labels");
  expect_refusal({{"labels", at::full({4}, 10)}, {"pixels", pixels}},
                 "found 10 in labels of sample 0, expected numbers from 0 to 9");
  expect_refusal({{"labels", at::full({4}, -1)}, {"pixels", pixels}}, "found -1 in labels");
  expect_refusal({{"a", pixels}, {"b", pixels}, {"labels", labels}},
                 "2 tensors besides labels and no order of them");
  expect_refusal({{"a", pixels}, {"b", pixels}, {"labels", labels}},
                 "found 2 inputs, expected 1, as the model reads them", {{"inputs", "a,b"}});
  expect_refusal({{"a", pixels}, {"labels", labels}}, "found no tensor b", {{"inputs", "b"}});
  expect_refusal({{"labels", labels.narrow(0, 0, 0)}, {"pixels", pixels.narrow(0, 0, 0)}},
                 "found no sample, expected at least one");
  options_.config.data.files.train = {(folder_ / "none.safetensors").string()};
  EXPECT_NE(refusal().find("none.safetensors"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace frazil
