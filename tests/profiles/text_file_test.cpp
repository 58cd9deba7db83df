#include "profiles/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

// Gives each test an empty folder.
class TextFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "frazil-text-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      result.push_back(entry.path().filename().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  static std::string failure(const fs::path& path, std::string_view text) {
    try {
      write_text_file(path, text);
    } catch (const InputError& error) {
      EXPECT_EQ(error.line(), 0);
      EXPECT_EQ(error.file(), path.string());
      return error.found();
    }
    return "written";
  }

  static std::string read_failure(const fs::path& path) {
    try {
      read_text_file(path);
    } catch (const InputError& error) {
      EXPECT_EQ(error.line(), 0);
      EXPECT_EQ(error.file(), path.string());
      return error.found();
    }
    return "read";
  }

  fs::path folder_;
};

TEST_F(TextFile, ReadsBackEveryByte) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>(i * 7 + i / 251);
  write_text_file(folder_ / "a", text);
  EXPECT_EQ(read_text_file(folder_ / "a"), text);
  write_text_file(folder_ / "a", "");
  EXPECT_EQ(read_text_file(folder_ / "a"), "");
  EXPECT_EQ(names(), (std::vector<std::string>{"a"}));
}

TEST_F(TextFile, MakesMissingFolders) {
  write_text_file(folder_ / "x" / "y" / "z.json", "{}");
  EXPECT_EQ(read_text_file(folder_ / "x" / "y" / "z.json"), "{}");
}

TEST_F(TextFile, RefusesToReadWhatIsMissingOrAFolder) {
  EXPECT_EQ(read_failure(folder_ / "absent"), "no such file");
  EXPECT_EQ(read_failure(folder_), "a folder");
  write_text_file(folder_ / "file", "old");
  EXPECT_EQ(read_failure(folder_ / "file" / "below"), "the error \"Not a directory\"");
}

TEST_F(TextFile, RefusesMoreThanAGibibyte) {
  write_text_file(folder_ / "large", "x");
  fs::resize_file(folder_ / "large", (std::uintmax_t{1} << 30) + 1);  // sparse
  EXPECT_EQ(read_failure(folder_ / "large"), "more than 1 GiB");
}

TEST_F(TextFile, KeepsTheOldFileWhenTheParentIsAFile) {
  write_text_file(folder_ / "file", "old");
  EXPECT_EQ(failure(folder_ / "file" / "below", "new"), "the error \"Not a directory\"");
  EXPECT_EQ(read_text_file(folder_ / "file"), "old");
  EXPECT_EQ(names(), (std::vector<std::string>{"file"}));
}

TEST_F(TextFile, RefusesToReplaceAFolderAndLeavesNothingBehind) {
  write_text_file(folder_ / "sub" / "inside", "old");
  EXPECT_EQ(failure(folder_ / "sub", "new"), "a folder");
  EXPECT_EQ(read_text_file(folder_ / "sub" / "inside"), "old");
  EXPECT_EQ(failure(folder_ / "", "new"), "a folder");
  EXPECT_EQ(names(), (std::vector<std::string>{"sub"}));
}

TEST_F(TextFile, RefusesToReplaceTheFileThatStandardOutputGoesTo) {
  write_text_file(folder_ / "log", "old");
  const int log = open((folder_ / "log").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(log, 0);
  EXPECT_EQ(failure("/dev/fd/" + std::to_string(log), "new"), "a special file");
  EXPECT_EQ(failure("/proc/self/fd/" + std::to_string(log), "new"), "a special file");
  fs::create_symlink("/dev/fd/" + std::to_string(log), folder_ / "link");
  EXPECT_EQ(failure(folder_ / "link", "new"), "a special file");
  close(log);
  EXPECT_EQ(read_text_file(folder_ / "log"), "old");
}

TEST_F(TextFile, WritesIntoMemoryAndThroughLinksToLinks) {
  const fs::path memory = "/dev/shm/frazil-text-file-" + std::to_string(getpid());
  write_text_file(memory, "old");
  fs::create_symlink(memory, folder_ / "first");
  fs::create_symlink("first", folder_ / "second");
  write_text_file(folder_ / "second", "new");
  EXPECT_EQ(read_text_file(memory), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "first"));
  fs::remove(memory);
}

TEST_F(TextFile, RefusesToReplaceAPipe) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(failure(folder_ / "pipe", "new"), "a special file");
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
}

TEST_F(TextFile, WritesThroughALinkAndKeepsIt) {
  write_text_file(folder_ / "target", "old");
  fs::create_symlink(folder_ / "target", folder_ / "link");
  write_text_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text_file(folder_ / "target"), "new");
}

TEST_F(TextFile, RefusesALinkToNowhere) {
  fs::create_symlink(folder_ / "absent", folder_ / "link");
  EXPECT_EQ(failure(folder_ / "link", "new"), "the error \"No such file or directory\"");
}

TEST_F(TextFile, AReaderThatOpenedTheOldFileKeepsIt) {
  write_text_file(folder_ / "file", "old");
  std::ifstream reader(folder_ / "file");
  write_text_file(folder_ / "file", "new and longer");
  std::string text;
  std::getline(reader, text);
  EXPECT_EQ(text, "old");
}

TEST_F(TextFile, StepsAsideForALeftoverTemporaryFile) {
  const std::string leftover = "file.tmp." + std::to_string(getpid()) + ".0";
  std::ofstream(folder_ / leftover) << "another writer's";
  write_text_file(folder_ / "file", "new");
  EXPECT_EQ(read_text_file(folder_ / "file"), "new");
  EXPECT_EQ(read_text_file(folder_ / leftover), "another writer's");
  EXPECT_EQ(names(), (std::vector<std::string>{"file", leftover}));
}

TEST_F(TextFile, SaysWhyAPlaceCannotBeWritten) {
  EXPECT_EQ(failure(folder_ / std::string(300, 'n'), "new"), "the error \"File name too long\"");
  EXPECT_TRUE(names().empty());
}

// The limit on file sizes stands for a full disk: the write fails after its first bytes.
TEST_F(TextFile, AWriteThatFailsHalfWayKeepsTheOldFile) {
  write_text_file(folder_ / "file", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string found = failure(folder_ / "file", std::string(10'000, 'n'));
  const std::string in_new = failure(folder_ / "new" / "deep" / "file", std::string(10'000, 'n'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(found, "the error \"File too large\"");
  EXPECT_EQ(in_new, found) << "and the folders made for it are gone";
  EXPECT_EQ(read_text_file(folder_ / "file"), "old");
  EXPECT_EQ(names(), (std::vector<std::string>{"file"}));
}

}  // namespace
}  // namespace frazil
