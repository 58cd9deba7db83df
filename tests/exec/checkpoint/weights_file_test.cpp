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

// Ended at any call, the file is the earlier or the new one, whole, and each is durable.
TEST_F(WeightsFile, EndedAtAnyCallIsTheEarlierOrTheNewOne) {
  const auto write = [&](const FileSystem& files, const std::string& steps) {
    write_weights(files, "/run/weights.safetensors", weights_, {{"steps", steps}});
  };
  const auto text_of = [&](const std::string& steps) {
    write_weights(real_file_system(), path_, weights_, {{"steps", steps}});
    return read_text_file(path_);
  };
  const std::string earlier = text_of("7");
  const std::string later = text_of("9");
  std::mt19937_64 random(7);
  bool struck = true;
  for (int call = 0; struck; ++call) {
    SCOPED_TRACE(call);
    ASSERT_LT(call, 50);
    DiskModel disk;
    make_folders(disk.files(), "/run");
    write(disk.files(), "7");
    FaultyFiles faulty(disk.files());
    faulty.arm(Fault::kCrash, call);
    try {
      write(faulty.files(), "9");
    } catch (const Crash&) {
    }
    struck = faulty.has_struck();
    disk.lose_power(random);
    const std::string left = disk.bytes("/run/weights.safetensors");
    EXPECT_TRUE(struck ? left == earlier || left == later : left == later);
  }
}

}  // namespace
}  // namespace frazil
