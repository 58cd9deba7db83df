#include "exec/checkpoint/weights_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

class WeightsFile : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("frazil-weights-" + std::to_string(getpid()));
  fs::path path_ = folder_ / "weights.safetensors";
  std::vector<NamedTensor> weights_{{"a.weight", at::arange(6, at::kFloat).view({2, 3})},
                                    {"a.bias", at::full({3}, -1.5)},
                                    {"scale", at::full({}, 2.0)}};
};

TEST_F(WeightsFile, HasItsTensorsOneBehindTheOther) {
  write_weights(real_file_system(), path_, weights_, {{"steps", "7"}});
  const std::string text = read_text_file(path_);
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  EXPECT_EQ(size % 8, 0U);
  const auto header = nlohmann::json::parse(text.substr(8, size));
  EXPECT_EQ(header.at("__metadata__"), (nlohmann::json{{"format", "pt"}, {"steps", "7"}}));
  EXPECT_EQ(header.at("a.weight"),
            (nlohmann::json{{"dtype", "F32"}, {"shape", {2, 3}}, {"data_offsets", {0, 24}}}));
  EXPECT_EQ(header.at("a.bias").at("data_offsets"), (nlohmann::json{24, 36}));
  EXPECT_EQ(header.at("scale").at("shape"), nlohmann::json::array());
  EXPECT_EQ(text.size(), 8 + size + 40);
  std::vector<float> values(10);
  std::memcpy(values.data(), text.data() + 8 + size, 40);
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 5, -1.5, -1.5, -1.5, 2}));
}

TEST_F(WeightsFile, TakesCounters) {
  weights_.push_back({"bn.num_batches_tracked", at::scalar_tensor(1234567890123, at::kLong)});
  write_weights(real_file_system(), path_, weights_, {});
  const std::string text = read_text_file(path_);
  std::uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof size);
  EXPECT_EQ(nlohmann::json::parse(text.substr(8, size)).at("bn.num_batches_tracked"),
            (nlohmann::json{
                {"dtype", "I64"}, {"shape", nlohmann::json::array()}, {"data_offsets", {40, 48}}}));
  std::int64_t counter = 0;
  std::memcpy(&counter, text.data() + 8 + size + 40, sizeof counter);
  EXPECT_EQ(counter, 1234567890123);
}

TEST_F(WeightsFile, TakesThePlaceOfAnEarlierOneWhole) {
  write_weights(real_file_system(), path_, weights_, {});
  const std::string first = read_text_file(path_);
  write_weights(real_file_system(), path_, weights_, {});
  EXPECT_EQ(read_text_file(path_), first) << "equal weights, equal bytes";
  FileSystem full = real_file_system();
  full.write = [](int, const void*, std::size_t) { return ssize_t{-ENOSPC}; };
  EXPECT_THROW(write_weights(full, path_, weights_, {{"steps", "9"}}), std::exception);
  EXPECT_EQ(read_text_file(path_), first);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

// A disk in memory that holds the weights after 7 steps, and whose calls can go wrong.
class WeightsFileOnFaultyDisk : public WeightsFile {
 protected:
  static constexpr const char* kPlace = "/run/weights.safetensors";

  void write(const FileSystem& files, const fs::path& place, const std::string& steps) const {
    write_weights(files, place, weights_, {{"steps", steps}});
  }
  std::string text_of(const std::string& steps) const {
    write(real_file_system(), path_, steps);
    return read_text_file(path_);
  }
  // Writes the weights after 9 steps; the call of this number goes wrong. Returns whether there was
  // such a call.
  bool fail_at(Fault fault, int call, std::size_t largest_write) {
    disk_ = DiskModel();
    make_folders(disk_.files(), "/run");
    write(disk_.files(), kPlace, "7");
    FaultyFiles faulty(disk_.files());
    faulty.hinder(largest_write);
    faulty.arm(fault, call);
    failed_ = true;
    try {
      write(faulty.files(), kPlace, "9");
      failed_ = false;
    } catch (const Crash&) {
    } catch (const InputError&) {
    }
    return faulty.has_struck();
  }

  DiskModel disk_;
  bool failed_ = false;
};

// Each of both is durable, and one that is said to be written is the new one. What failed but did
// not end the process has left nothing beside it.
TEST_F(WeightsFileOnFaultyDisk, IsTheEarlierOrTheNewOneWhateverCallFails) {
  const std::string earlier = text_of("7");
  const std::string later = text_of("9");
  std::mt19937_64 random(7);
  for (const Fault fault : {Fault::kCrash, Fault::kNoSpace, Fault::kInputOutput}) {
    for (const std::size_t largest_write : {std::size_t(-1), std::size_t{50}}) {
      bool struck = true;
      int failures = 0;
      for (int call = 0; struck; ++call) {
        SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " of call " +
                     std::to_string(call) + ", writes of " + std::to_string(largest_write));
        ASSERT_LT(call, 100);
        struck = fail_at(fault, call, largest_write);
        failures += failed_ ? 1 : 0;
        EXPECT_TRUE(struck || !failed_);
        if (fault != Fault::kCrash) {
          EXPECT_EQ(disk_.contents().size(), 1U);
        }
        const std::string now = disk_.bytes(kPlace);
        EXPECT_TRUE(failed_ ? now == earlier || now == later : now == later);
        disk_.lose_power(random);
        const std::string left = disk_.bytes(kPlace);
        EXPECT_TRUE(failed_ ? left == earlier || left == later : left == later);
      }
      EXPECT_GT(failures, 5);
    }
  }
}

TEST_F(WeightsFileOnFaultyDisk, HasAllItsBytesAfterShortAndInterruptedWrites) {
  const std::string whole = text_of("9");
  for (const std::size_t largest_write : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
    FaultyFiles faulty(disk_.files());
    faulty.hinder(largest_write);
    write(faulty.files(), kPlace, "9");
    EXPECT_EQ(disk_.bytes(kPlace), whole);
  }
}

// Half of what a full disk refuses to take whole is there: it is not taken for the file.
TEST_F(WeightsFileOnFaultyDisk, SaysWhichFileFoundNoSpace) {
  FaultyFiles faulty(disk_.files());
  faulty.arm(Fault::kNoSpace, std::string("write /run/.tmp-weights.safetensors"), 1);
  try {
    write(faulty.files(), kPlace, "9");
    FAIL() << "it was written";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("weights.safetensors"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("space"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(disk_.contents().empty());
}

}  // namespace
}  // namespace frazil
