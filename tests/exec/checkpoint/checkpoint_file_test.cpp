#include "exec/checkpoint/checkpoint_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "exec/checkpoint/checkpoint_header.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "tests/exec/checkpoint/small_states.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

constexpr const char* kCheckpointPath = "/run/step";

class CheckpointFile : public testing::Test {
 protected:
  void write(const std::vector<LayerState>& states) {
    write_checkpoint(files_, kCheckpointPath, model_, kRun, position_at(12), pointers(states));
  }
  Checkpoint read() const { return read_checkpoint(files_, kCheckpointPath, model_, kRun); }
  std::string refusal(const ModelSpec& model, const RunIdentity& run) const {
    try {
      (void)read_checkpoint(files_, kCheckpointPath, model, run);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal() const { return refusal(model_, kRun); }

  ModelSpec model_ = parameter_model();
  DiskModel disk_;
  FileSystem files_ = disk_.files();
};

TEST_F(CheckpointFile, GivesBackEveryBit) {
  for (int moments = 0; moments <= 2; ++moments) {
    SCOPED_TRACE(moments);
    disk_ = DiskModel();
    const std::vector<LayerState> states = random_states(model_, 3, moments);
    write(states);
    const Checkpoint checkpoint = read();
    EXPECT_EQ(checkpoint.position, position_at(12));
    EXPECT_EQ(hash_of(checkpoint.layers), hash_of(states));
    for (const LayerState& layer : checkpoint.layers) {
      for (const at::Tensor& tensor : layer.parameters) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64, 0U);
      }
    }
  }
}

TEST_F(CheckpointFile, GivesBackMeasuredCosts) {
  const std::vector<LayerState> states = random_states(model_, 3);
  TrainingPosition position = position_at(12);
  position.costs =
      MeasuredCosts{{.device_ppm = {1'000'000, 1'300'000}, .layer_ppm = {1, kLargestTimePpm}},
                    0xfeed'0000'0000'beefU,
                    R"({"batch_size": 8})"};
  write_checkpoint(files_, kCheckpointPath, model_, kRun, position, pointers(states));
  EXPECT_EQ(read().position, position);
  write_checkpoint(files_, "/run/without", model_, kRun, position_at(12), pointers(states));
  EXPECT_EQ(disk_.bytes("/run/without").find("devices_ppm"), std::string::npos)
      << "what was written before there were any reads as it did";
}

// Layers are as in a run: frozen ones have no moments, others have.
TEST_F(CheckpointFile, KeepsLayersWithMomentsAndWithout) {
  std::vector<LayerState> states = random_states(model_, 3);
  set_active(states[0], false);
  write(states);
  const Checkpoint checkpoint = read();
  EXPECT_EQ(hash_of(checkpoint.layers), hash_of(states));
  EXPECT_TRUE(checkpoint.layers[0].first_moment.empty());
  EXPECT_EQ(checkpoint.layers[2].second_moment.size(), 2U);
}

TEST_F(CheckpointFile, KeepsRunningStatisticsBehindTheirLayer) {
  const std::string before = [&] {
    write(random_states(model_, 3));
    return disk_.bytes(kCheckpointPath);
  }();
  disk_ = DiskModel();
  model_.layers[1].statistics = {{"bn.running_mean", at::zeros({3}), 0.1},
                                 {"bn.num_batches_tracked", at::scalar_tensor(0, at::kLong), 0}};
  std::vector<LayerState> states = random_states(model_, 3);
  states[1].statistics = {at::arange(3, at::kFloat), at::scalar_tensor(41, at::kLong)};
  write(states);
  const Checkpoint checkpoint = read();
  EXPECT_EQ(hash_of(checkpoint.layers), hash_of(states));
  ASSERT_EQ(checkpoint.layers[1].statistics.size(), 2U);
  EXPECT_TRUE(at::equal(checkpoint.layers[1].statistics[0], at::arange(3, at::kFloat)));
  EXPECT_EQ(checkpoint.layers[1].statistics[1].item<std::int64_t>(), 41);
  EXPECT_NE(hash_weights(pointers(states)), hash_weights(pointers(random_states(model_, 3))));
  model_.layers[1].statistics.clear();
  EXPECT_NE(refusal(), "") << "a model without them";
  disk_ = DiskModel();
  write(random_states(model_, 3));
  EXPECT_EQ(disk_.bytes(kCheckpointPath), before) << "other models' files are as they were";
}

TEST_F(CheckpointFile, IsTheSameForTheSameState) {
  write(random_states(model_, 3));
  const std::string once = disk_.bytes(kCheckpointPath);
  disk_ = DiskModel();
  write(random_states(model_, 3));
  EXPECT_EQ(disk_.bytes(kCheckpointPath), once);
}

// The file is read by the rules of safetensors alone: a header, and entries that fill the data
// without a gap.
TEST_F(CheckpointFile, IsSafetensorsWithEveryTensorAt64) {
  const std::vector<LayerState> states = random_states(model_, 3);
  write(states);
  const std::string file = disk_.bytes(kCheckpointPath);
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), 8);
  EXPECT_EQ((8 + size) % 64, 0U);
  const auto header = nlohmann::ordered_json::parse(file.substr(8, size));
  std::size_t end = 0;
  std::vector<std::string> names;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    std::size_t bytes = entry["dtype"] == "F32" ? 4 : 1;
    for (const std::size_t extent : entry["shape"]) bytes *= extent;
    EXPECT_EQ(entry["data_offsets"][0], end);
    end += bytes;
    EXPECT_EQ(entry["data_offsets"][1], end);
    if (entry["dtype"] != "F32") continue;
    names.push_back(name);
    EXPECT_EQ((end - bytes) % 64, 0U) << name;
    if (name == "first_moment.linear.bias") {
      EXPECT_EQ(std::memcmp(file.data() + 8 + size + end - bytes,
                            states[2].first_moment[1].const_data_ptr(), bytes),
                0);
    }
  }
  EXPECT_EQ(8 + size + end, file.size());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "table.weight", "first_moment.table.weight", "second_moment.table.weight",
                       "linear.weight", "linear.bias", "first_moment.linear.weight",
                       "first_moment.linear.bias", "second_moment.linear.weight",
                       "second_moment.linear.bias", "table.weight@3", "first_moment.table.weight@3",
                       "second_moment.table.weight@3"}));
}

TEST_F(CheckpointFile, EveryFlippedBitIsFound) {
  write(random_states(model_, 3));
  const std::string whole = disk_.bytes(kCheckpointPath);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string& bytes = disk_.bytes(kCheckpointPath);
    bytes[bit / 8] = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
    ASSERT_NE(refusal(), "") << bit;
    bytes[bit / 8] = whole[bit / 8];
  }
  EXPECT_EQ(refusal(), "");
}

TEST_F(CheckpointFile, EveryTruncationAndAddedBytesAreFound) {
  write(random_states(model_, 3));
  const std::string whole = disk_.bytes(kCheckpointPath);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    disk_.bytes(kCheckpointPath) = whole.substr(0, size);
    ASSERT_NE(refusal(), "") << size;
    // A file system may leave the file so: the size without the bytes.
    disk_.bytes(kCheckpointPath).resize(whole.size(), '\0');
    ASSERT_TRUE(disk_.bytes(kCheckpointPath) == whole || !refusal().empty()) << size;
  }
  disk_.bytes(kCheckpointPath) = whole + '\0';
  EXPECT_NE(refusal().find("bytes after the last tensor"), std::string::npos);
}

TEST_F(CheckpointFile, WhatIsOfAnotherModelOrRunIsRefused) {
  write(random_states(model_, 3));
  EXPECT_EQ(refusal(model_, {"00000000000000ac", 0xbb}),
            "/run/step: found a checkpoint of another model (00000000000000aa), expected a whole "
            "checkpoint of this run");
  EXPECT_EQ(refusal(model_, {"00000000000000aa", 0xbc}),
            "/run/step: found a checkpoint of another run: other data, settings, seed or length, "
            "expected a whole checkpoint of this run");
  EXPECT_NE(refusal(parameter_model(6), kRun).find("a header that is not that of this model"),
            std::string::npos);
}

// The hashes hold, but what is read must be what is written for this model, to the byte.
TEST_F(CheckpointFile, AWellSealedHeaderOfAnotherShapeIsRefused) {
  ModelSpec wider = parameter_model(6);
  write_checkpoint(files_, kCheckpointPath, wider, kRun, position_at(12),
                   pointers(random_states(wider, 3)));
  EXPECT_NE(refusal().find("a header that is not that of this model"), std::string::npos);
  disk_.bytes(kCheckpointPath) = std::string(8, '\xff') + "{}";
  EXPECT_NE(refusal().find("a header of 18446744073709551615 bytes"), std::string::npos);
}

// The file is sealed as it should be, with a member that nobody knows.
TEST_F(CheckpointFile, AnUnknownKeyIsRefused) {
  const std::vector<LayerState> states = random_states(model_, 3);
  write(states);
  const std::string whole = disk_.bytes(kCheckpointPath);
  std::uint64_t size = 0;
  std::memcpy(&size, whole.data(), 8);
  std::string metadata = find_metadata(whole.substr(8, size), kCheckpointPath);
  const auto rewrite = [&] {
    const std::string header = make_header(
        metadata,
        list_tensors(model_, parse_metadata(find_metadata(whole.substr(8, size), kCheckpointPath),
                                            kCheckpointPath)
                                 .layers));
    const std::uint64_t bytes = header.size();
    std::string text(reinterpret_cast<const char*>(&bytes), 8);
    text += header;
    const std::uint64_t hash = hash_text(text);
    text.append(reinterpret_cast<const char*>(&hash), 8);
    disk_.bytes(kCheckpointPath) = text + whole.substr(8 + size + 8);
  };
  rewrite();
  EXPECT_EQ(disk_.bytes(kCheckpointPath), whole) << "the seal is made as the writer makes it";
  metadata.insert(1, R"("surprise":1,)");
  rewrite();
  EXPECT_NE(refusal().find("surprise"), std::string::npos) << refusal();
}

TEST_F(CheckpointFile, IsWholeAfterShortAndInterruptedWrites) {
  FaultyFiles faulty(disk_.files());
  faulty.hinder(100);
  files_ = faulty.files();
  const std::vector<LayerState> states = random_states(model_, 3);
  write(states);
  EXPECT_EQ(hash_of(read().layers), hash_of(states));
}

// Some tensors are larger than the buffer of the writer, some are not.
TEST_F(CheckpointFile, KeepsLargeTensorsBesideSmallOnes) {
  model_ = parameter_model(20'001);
  const std::vector<LayerState> states = random_states(model_, 5);
  write(states);
  EXPECT_EQ(hash_of(read().layers), hash_of(states));
}

TEST_F(CheckpointFile, TakesNoPlaceThatIsTaken) {
  write(random_states(model_, 3));
  EXPECT_THROW(write(random_states(model_, 4)), InputError);
}

}  // namespace
}  // namespace frazil
