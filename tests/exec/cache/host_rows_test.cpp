// Processes of a host read each other's rows: never half of one, never one of another content, and
// whatever ends a process leaves nothing.

#include "exec/cache/host_rows.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kRow{1000};
constexpr std::int64_t kRows = 16;

StoreLimits host_limits() { return {Bytes{1 << 20}, Bytes{1 << 20}, fs::temp_directory_path()}; }

std::string row_of(std::int64_t slot, std::uint64_t content) {
  std::mt19937_64 random(content * 1000 + static_cast<std::uint64_t>(slot));
  std::string bytes(static_cast<std::size_t>(kRow.count), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string read_row(HostRows& rows, FeatureTier tier, std::int64_t slot, std::uint64_t content) {
  std::string bytes(static_cast<std::size_t>(kRow.count), '?');
  return rows.read(tier, slot, content, bytes.data(), bytes.size()) ? bytes : "none";
}

// Runs `work` in a process of its own, and returns how that ended.
int run_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

constexpr std::uint64_t kContent = 0x1234567800000000;
constexpr std::uint64_t kOther = 0x8765432100000000;

TEST(HostRows, ThatAProcessHasWrittenAnotherOneReads) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  const StoreOffer offer = rows.offer();
  EXPECT_FALSE(offer.host.empty());
  const int status = run_process([&] {
    HostRows own(files, kRow, host_limits(), kRows);
    if (!own.take(offer) || own.id() != offer.id) ::_exit(1);
    for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
      if (!own.write(tier, 3, kContent, row_of(3, kContent))) ::_exit(2);
    }
  });
  ASSERT_EQ(status, 0);
  for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
    EXPECT_EQ(read_row(rows, tier, 3, kContent), row_of(3, kContent));
    EXPECT_EQ(read_row(rows, tier, 3, kOther), "none");
    EXPECT_EQ(read_row(rows, tier, 4, kContent), "none");
    EXPECT_EQ(rows.count(tier, kRows, kContent), 1);
    // Another content takes the row.
    EXPECT_TRUE(rows.write(tier, 3, kOther, row_of(3, kOther)));
    EXPECT_EQ(read_row(rows, tier, 3, kContent), "none");
    EXPECT_EQ(read_row(rows, tier, 3, kOther), row_of(3, kOther));
  }
  EXPECT_TRUE(rows.take_warnings().empty());
  rows.clear();
  EXPECT_EQ(read_row(rows, FeatureTier::kMemory, 3, kOther), "none");
}

TEST(HostRows, OfAKilledWriterAreNeverReadAndAreWrittenAgain) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  const StoreOffer offer = rows.offer();
  const int status = run_process([&] {
    FileSystem dying = real_file_system();
    dying.write_at = [&](int file, const void* bytes, std::size_t size,
                         std::int64_t place) -> ssize_t {
      (void)files.write_at(file, bytes, size / 2, place);
      ::raise(SIGKILL);
      return 0;
    };
    HostRows own(dying, kRow, host_limits(), kRows);
    if (!own.take(offer)) ::_exit(1);
    (void)own.write(FeatureTier::kDisk, 5, kContent, row_of(5, kContent));
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(rows.holds(FeatureTier::kDisk, 5, kContent));
  EXPECT_EQ(read_row(rows, FeatureTier::kDisk, 5, kContent), "none");
  EXPECT_TRUE(rows.write(FeatureTier::kDisk, 5, kContent, row_of(5, kContent)));
  EXPECT_EQ(read_row(rows, FeatureTier::kDisk, 5, kContent), row_of(5, kContent));
}

// A process that still writes keeps its row.
TEST(HostRows, AreWrittenByOneProcessAtATime) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  FileSystem asking = real_file_system();
  bool could_write = true;
  std::unique_ptr<HostRows> second;
  asking.write_at = [&](int file, const void* bytes, std::size_t size, std::int64_t place) {
    could_write = rows.write(FeatureTier::kDisk, 5, kContent, row_of(5, kContent));
    return files.write_at(file, bytes, size, place);
  };
  second = std::make_unique<HostRows>(asking, kRow, host_limits(), kRows);
  ASSERT_TRUE(second->take(rows.offer()));
  EXPECT_TRUE(second->write(FeatureTier::kDisk, 5, kContent, row_of(5, kContent)));
  EXPECT_FALSE(could_write);
  EXPECT_EQ(read_row(rows, FeatureTier::kDisk, 5, kContent), row_of(5, kContent));
}

TEST(HostRows, ThatAreDamagedAreFoundOutAndComputedAgain) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  const StoreOffer offer = rows.offer();
  for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
    ASSERT_TRUE(rows.write(tier, 0, kContent, row_of(0, kContent)));
    const int file = tier == FeatureTier::kMemory ? offer.memory : offer.disk;
    const off_t place = tier == FeatureTier::kMemory ? 4096 + 17 : 17;
    char byte = 0;
    ASSERT_EQ(::pread(file, &byte, 1, place), 1);
    byte = static_cast<char>(byte ^ 4);
    ASSERT_EQ(::pwrite(file, &byte, 1, place), 1);
    EXPECT_EQ(read_row(rows, tier, 0, kContent), "none");
    EXPECT_FALSE(rows.holds(tier, 0, kContent));
    EXPECT_TRUE(rows.write(tier, 0, kContent, row_of(0, kContent)));
    EXPECT_EQ(read_row(rows, tier, 0, kContent), row_of(0, kContent));
  }
  EXPECT_EQ(rows.take_warnings().size(), 1U);
}

// Four processes write and read rows of changing contents.
TEST(HostRows, AreWholeWhereverTheyAreRead) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  const StoreOffer offer = rows.offer();
  const auto work = [](HostRows& own, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2'000; ++i) {
      const FeatureTier tier = random() % 2 == 0 ? FeatureTier::kMemory : FeatureTier::kDisk;
      const std::int64_t slot = random() % kRows;
      const std::uint64_t content = random() % 3 == 0 ? kContent : kOther;
      if (random() % 2 == 0) {
        (void)own.write(tier, slot, content, row_of(slot, content));
      } else if (const std::string found = read_row(own, tier, slot, content);
                 found != "none" && found != row_of(slot, content)) {
        return false;
      }
    }
    return true;
  };
  std::vector<pid_t> children;
  for (unsigned seed = 0; seed < 3; ++seed) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    HostRows own(files, kRow, host_limits(), kRows);
    ::_exit(own.take(offer) && work(own, seed) ? 0 : 1);
  }
  EXPECT_TRUE(work(rows, 7));
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(HostRows, HaveNoNameAndLeaveNoDescriptor) {
  const FileSystem files = real_file_system();
  const fs::path folder = fs::path(testing::TempDir()) / "host_rows_test";
  fs::create_directories(folder);
  const std::vector<std::string> descriptors = names_in("/proc/self/fd");
  for (int i = 0; i < 20; ++i) {
    HostRows rows(files, kRow, {Bytes{1 << 20}, Bytes{1 << 20}, folder}, kRows);
    HostRows other(files, kRow, {Bytes{1 << 20}, Bytes{1 << 20}, folder}, kRows);
    ASSERT_TRUE(other.take(rows.offer()));
    ASSERT_TRUE(other.write(FeatureTier::kDisk, 1, kContent, row_of(1, kContent)));
    EXPECT_TRUE(names_in(folder).empty());
  }
  EXPECT_EQ(names_in("/proc/self/fd").size(), descriptors.size());
  fs::remove_all(folder);
}

TEST(HostRows, ThatCannotBeOpenedAreAWarningAndTheOwnOnesServe) {
  const FileSystem files = real_file_system();
  HostRows rows(files, kRow, host_limits(), kRows);
  StoreOffer gone = rows.offer();
  gone.id = 7;
  gone.process = 3;
  gone.memory = 4000;
  EXPECT_FALSE(rows.take(gone));
  EXPECT_EQ(rows.take_warnings(),
            std::vector<std::string>{"the cache of process 3 cannot be shared: No such file or "
                                     "directory; this process has one of its own"});
  HostRows smaller(files, kRow, host_limits(), kRows - 1);
  EXPECT_FALSE(rows.take(smaller.offer()));
  StoreOffer renamed = HostRows(files, kRow, host_limits(), kRows).offer();
  renamed.memory = rows.offer().memory;
  EXPECT_FALSE(rows.take(renamed));
  EXPECT_EQ(rows.take_warnings().size(), 2U);
  EXPECT_TRUE(rows.write(FeatureTier::kMemory, 1, kContent, row_of(1, kContent)));
}

}  // namespace
}  // namespace frazil
