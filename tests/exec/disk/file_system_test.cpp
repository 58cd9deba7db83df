// These are the calls as they are in production, on a real folder.

#include "exec/disk/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

class RealFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "frazil-files.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  FileSystem files_ = real_file_system();
};

TEST_F(RealFiles, AreWrittenRenamedReadAndRemoved) {
  const std::filesystem::path deep = folder_ / "a/b";
  make_folders(files_, deep);
  make_folders(files_, deep);
  {
    File file(files_, deep / "new", O_WRONLY | O_CREAT | O_EXCL);
    file.write("twelve bytes");
    file.sync();
    file.close();
  }
  rename_file(files_, deep / "new", deep / "old");
  sync_folder(files_, deep);
  EXPECT_EQ(read_text_file(deep / "old"), "twelve bytes");
  EXPECT_EQ(list_folder(files_, deep), std::vector<std::string>{"old"});
  struct stat status {};
  ASSERT_EQ(::stat((deep / "old").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  File file(files_, deep / "old", O_RDWR);
  EXPECT_EQ(file.size(), 12);
  std::string text(20, '?');
  text.resize(file.read(text.data(), text.size()));
  EXPECT_EQ(text, "twelve bytes");
  file.truncate(6);
  EXPECT_EQ(read_text_file(deep / "old"), "twelve");
  remove_file(files_, deep / "old");
  remove_file(files_, deep / "old");
  EXPECT_TRUE(list_folder(files_, deep).empty());
}

TEST_F(RealFiles, SayWhichCallFailedAndWhy) {
  try {
    File file(files_, folder_ / "absent", O_RDONLY);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "the error \"No such file or directory\" of open");
    EXPECT_EQ(error.expected(), "a file to read");
  }
  try {
    File file(files_, folder_ / "absent/new", O_WRONLY | O_CREAT);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.expected(), "a place for the files of a run");
  }
  EXPECT_THROW(rename_file(files_, folder_ / "absent", folder_ / "other"), InputError);
  EXPECT_THROW((void)list_folder(files_, folder_ / "absent"), InputError);
  write_text_file(folder_ / "file", "");
  EXPECT_THROW(make_folders(files_, folder_ / "file/below"), InputError);
}

TEST_F(RealFiles, FollowNoLink) {
  write_text_file(folder_ / "target", "theirs");
  std::filesystem::create_symlink(folder_ / "target", folder_ / "link");
  EXPECT_THROW(File(files_, folder_ / "link", O_RDONLY), InputError);
  EXPECT_THROW(File(files_, folder_ / "link", O_WRONLY | O_CREAT), InputError);
}

TEST_F(RealFiles, AreLockedOnceAtATime) {
  auto first = std::make_unique<File>(files_, folder_, O_RDONLY | O_DIRECTORY);
  File second(files_, folder_, O_RDONLY | O_DIRECTORY);
  EXPECT_TRUE(first->try_lock());
  EXPECT_FALSE(second.try_lock());
  first.reset();
  EXPECT_TRUE(second.try_lock());
}

}  // namespace
}  // namespace frazil
