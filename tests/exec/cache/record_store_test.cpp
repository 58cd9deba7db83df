// Records come back bit for bit from memory and from a file that nobody sees, up to the limits, and
// through every failure of the disk.

#include "exec/cache/record_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

using Handle = RecordStore::Handle;

// 100 bytes, which take 128 of room.
constexpr Bytes kRecord{100};
constexpr std::int64_t kStride = 128;

std::string record_of(int number) {
  std::string bytes(static_cast<std::size_t>(kRecord.count), '\0');
  std::mt19937 random(static_cast<unsigned>(number));
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::optional<std::string> read(RecordStore& store, const Handle& record) {
  std::string bytes(record->size(), '?');
  if (!store.read(*record, bytes.data())) return std::nullopt;
  return bytes;
}

class Records : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "frazil-cache.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  StoreLimits room_for(std::int64_t in_memory, std::int64_t on_disk) const {
    return {Bytes{in_memory * kStride}, Bytes{on_disk * kStride}, folder_};
  }

  std::filesystem::path folder_;
  FileSystem files_ = real_file_system();
};

TEST_F(Records, FillMemoryThenTheDiskThenAreTurnedAway) {
  const auto store = RecordStore::make(files_, kRecord, room_for(2, 3), 100);
  std::vector<Handle> records;
  for (int i = 0; i < 5; ++i) records.push_back(store->store(record_of(i)));
  EXPECT_EQ(store->store(record_of(5)), nullptr);
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(records[static_cast<std::size_t>(i)], nullptr);
    EXPECT_EQ(records[static_cast<std::size_t>(i)]->tier(),
              i < 2 ? FeatureTier::kMemory : FeatureTier::kDisk);
    EXPECT_EQ(read(*store, records[static_cast<std::size_t>(i)]), record_of(i));
  }
  EXPECT_EQ(store->used(FeatureTier::kMemory).count, 2 * kStride);
  EXPECT_EQ(store->used(FeatureTier::kDisk).count, 3 * kStride);
}

TEST_F(Records, LeaveTheirRoomToTheNext) {
  const auto store = RecordStore::make(files_, kRecord, room_for(1, 1), 100);
  Handle in_memory = store->store(record_of(0));
  Handle on_disk = store->store(record_of(1));
  EXPECT_EQ(store->store(record_of(2)), nullptr);
  in_memory.reset();
  in_memory = store->store(record_of(3));
  EXPECT_EQ(read(*store, in_memory), record_of(3));
  on_disk.reset();
  on_disk = store->store(record_of(4));
  EXPECT_EQ(read(*store, on_disk), record_of(4));
  EXPECT_EQ(read(*store, in_memory), record_of(3));
}

TEST_F(Records, TakeNoMoreThanTheyAreMany) {
  const auto store = RecordStore::make(files_, kRecord, room_for(1000, 1000), 3);
  EXPECT_EQ(store->room(FeatureTier::kMemory).count, 3 * kStride);
  EXPECT_EQ(store->room(FeatureTier::kDisk).count, 3 * kStride);
}

TEST_F(Records, OutliveWhoeverMadeTheStore) {
  auto store = RecordStore::make(files_, kRecord, room_for(1, 0), 100);
  const Handle record = store->store(record_of(0));
  RecordStore* const still_there = store.get();
  store.reset();
  EXPECT_EQ(read(*still_there, record), record_of(0));
}

TEST_F(Records, ShowNoFileAndLeaveNone) {
  const auto store = RecordStore::make(files_, kRecord, room_for(0, 10), 100);
  const Handle record = store->store(record_of(0));
  EXPECT_EQ(record->tier(), FeatureTier::kDisk);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// The file system makes no nameless files here.
TEST_F(Records, ShowNoFileWhereItHadANameFirst) {
  FileSystem files = files_;
  files.open = [open = files_.open](const std::string& path, int flags) {
    return (flags & O_TMPFILE) == O_TMPFILE ? -EOPNOTSUPP : open(path, flags);
  };
  const auto store = RecordStore::make(files, kRecord, room_for(0, 10), 100);
  const Handle record = store->store(record_of(0));
  EXPECT_EQ(read(*store, record), record_of(0));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Records, WantAFolderThatIsThere) {
  StoreLimits limits = room_for(0, 10);
  limits.folder /= "gone";
  try {
    (void)RecordStore::make(files_, kRecord, limits, 100);
    FAIL() << "nothing was refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file().rfind(limits.folder.string(), 0), 0U);
    EXPECT_EQ(error.found(), "the error \"No such file or directory\" of open");
  }
}

TEST_F(Records, OfAFolderThatTakesNoFileAreInMemoryAlone) {
  FileSystem files = files_;
  files.open = [real = files_.open](const std::string& path, int flags) {
    return (flags & O_ACCMODE) == O_RDWR ? -ENOSPC : real(path, flags);
  };
  const auto store = RecordStore::make(files, kRecord, room_for(1, 10), 100);
  EXPECT_EQ(store->count(FeatureTier::kDisk), 0);
  const Handle in_memory = store->store(record_of(0));
  EXPECT_NE(in_memory, nullptr);
  EXPECT_EQ(store->store(record_of(1)), nullptr);
  const std::vector<std::string> warnings = store->take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings.front().ends_with(
      ": found the error \"No space left on device\" of open, expected a place for the files of a "
      "run; nothing is cached on disk"))
      << warnings.front();
}

// A process that ended between making its file and taking the name away has left the file.
TEST_F(Records, WithoutNamelessFilesTakeAwayWhatAnotherProcessLeft) {
  FileSystem files = files_;
  files.open = [real = files_.open](const std::string& path, int flags) {
    return (flags & O_TMPFILE) == O_TMPFILE ? -EOPNOTSUPP : real(path, flags);
  };
  write_text_file(folder_ / ".tmp-features-1", "left");
  write_text_file(folder_ / "note.txt", "mine");
  const auto store = RecordStore::make(files, kRecord, room_for(0, 10), 100);
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".tmp-features-1"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "note.txt"));
  EXPECT_NE(store->store(record_of(0)), nullptr);
}

TEST_F(Records, AFullDiskIsOneWarningAndTheCacheKeepsWhatItHas) {
  FaultyFiles faulty(files_);
  const FileSystem files = faulty.files();
  const auto store = RecordStore::make(files, kRecord, room_for(1, 10), 100);
  std::vector<Handle> records;
  for (int i = 0; i < 3; ++i) records.push_back(store->store(record_of(i)));
  faulty.arm(Fault::kNoSpace, 0);
  EXPECT_EQ(store->store(record_of(3)), nullptr);
  EXPECT_EQ(store->store(record_of(4)), nullptr) << "it does not grow again";
  EXPECT_EQ(store->take_warnings(),
            std::vector<std::string>{folder_.string() +
                                     ": found the error \"No space left on device\" of write, "
                                     "expected a place for the files of a run; the cache on disk "
                                     "grows no further"});
  EXPECT_TRUE(store->take_warnings().empty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(*store, records[static_cast<std::size_t>(i)]), record_of(i));
  }
  records.back().reset();
  records.back() = store->store(record_of(5));
  ASSERT_NE(records.back(), nullptr) << "what was written once can be written over";
  EXPECT_EQ(read(*store, records.back()), record_of(5));
}

// Stores, reads and lets go of records at random, while the call of number `call` fails.
void expect_right_or_missing(const FileSystem& real, const StoreLimits& limits, Fault fault,
                             int call) {
  FaultyFiles faulty(real);
  const FileSystem files = faulty.files();
  faulty.hinder(33);
  const auto store = RecordStore::make(files, kRecord, limits, 100);
  const std::size_t before = faulty.log().size();
  faulty.arm(fault, call);
  std::mt19937 random(7);
  std::map<int, Handle> records;
  int lost = 0;
  for (int i = 0; i < 60; ++i) {
    const int number = static_cast<int>(random() % 12);
    const auto found = records.find(number);
    if (found == records.end()) {
      if (Handle record = store->store(record_of(number))) records[number] = std::move(record);
    } else {
      const std::optional<std::string> bytes = read(*store, found->second);
      EXPECT_EQ(bytes.value_or(record_of(number)), record_of(number));
      lost += bytes ? 0 : 1;
      if (!bytes || random() % 2 == 0) records.erase(found);
    }
  }
  const bool is_told = faulty.has_struck() &&
                       !has_another_way(faulty.log()[before + static_cast<std::size_t>(call)]);
  EXPECT_LE(lost, is_told ? 1 : 0);
  EXPECT_EQ(store->take_warnings().size(), is_told ? 1U : 0U) << "call " << call;
}

// Makes all reads go past the system's memory, as if nothing were ever in it.
FileSystem always_direct(FileSystem files) {
  files.is_in_memory = [](int, std::size_t, std::int64_t) { return 0; };
  files.open_direct = [](int file) { return ::dup(file); };
  files.read_direct = [](int file, void* bytes, std::size_t size, std::int64_t place) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % File::kBlock, 0U);
    EXPECT_EQ(size % File::kBlock, 0U);
    EXPECT_EQ(static_cast<std::size_t>(place) % File::kBlock, 0U);
    const ssize_t count = ::pread(file, bytes, size, place);
    return count < 0 ? static_cast<ssize_t>(-errno) : count;
  };
  return files;
}

TEST_F(Records, AreRightOrMissingWhicheverCallFails) {
  for (const Fault fault : {Fault::kNoSpace, Fault::kInputOutput}) {
    for (int call = 0; call < 120; ++call) {
      expect_right_or_missing(files_, room_for(3, 5), fault, call);
      expect_right_or_missing(always_direct(files_), room_for(3, 5), fault, call);
    }
  }
}

// Records begin and end in any blocks of the file.
TEST_F(Records, AreReadPastTheSystemsMemoryWhereThatHasThemNot) {
  for (const std::int64_t size : {1, 100, 4095, 4096, 4097, 9000}) {
    SCOPED_TRACE(size);
    int read_plainly = 0;
    FileSystem files = always_direct(files_);
    files.read_at = [&](int file, void* bytes, std::size_t count, std::int64_t place) {
      ++read_plainly;
      return files_.read_at(file, bytes, count, place);
    };
    const auto store = RecordStore::make(files, Bytes{size}, {{}, Bytes{1 << 20}, folder_}, 20);
    std::map<int, Handle> records;
    for (int i = 0; i < 20; ++i) {
      records[i] = store->store(std::string(static_cast<std::size_t>(size), static_cast<char>(i)));
    }
    for (const auto& [i, record] : records) {
      EXPECT_EQ(read(*store, record),
                std::string(static_cast<std::size_t>(size), static_cast<char>(i)));
    }
    EXPECT_EQ(read_plainly, 0);
    EXPECT_TRUE(store->take_warnings().empty());
  }
}

TEST_F(Records, AreReadAsAnyFileWhereThereIsNoOtherWay) {
  const auto refuse = [](int, void*, std::size_t, std::int64_t) -> ssize_t { return -EINVAL; };
  const auto give_less = [](int, void*, std::size_t, std::int64_t) -> ssize_t { return 7; };
  std::vector<FileSystem> kinds(4, always_direct(files_));
  kinds[0].open_direct = [](int) { return -EINVAL; };
  kinds[1].read_direct = refuse;
  kinds[2].read_direct = give_less;
  kinds[3].is_in_memory = [](int, std::size_t, std::int64_t) { return 1; };
  kinds[3].read_direct = refuse;
  for (const FileSystem& files : kinds) {
    const auto store = RecordStore::make(files, kRecord, room_for(0, 5), 100);
    const Handle record = store->store(record_of(3));
    EXPECT_EQ(read(*store, record), record_of(3));
    EXPECT_TRUE(store->take_warnings().empty());
  }
}

TEST_F(Records, LeaveNothingWhereverTheProcessEnds) {
  int struck = 0;
  for (int call = 0; call < 40; ++call) {
    FaultyFiles faulty(real_file_system());
    const FileSystem files = faulty.files();
    faulty.arm(Fault::kCrash, call);
    try {
      const auto store = RecordStore::make(files, kRecord, room_for(1, 5), 100);
      std::vector<Handle> records;
      for (int i = 0; i < 8; ++i) records.push_back(store->store(record_of(i)));
      for (const Handle& record : records) {
        if (record) (void)read(*store, record);
      }
    } catch (const Crash&) {
      ++struck;
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "call " << call;
  }
  EXPECT_GT(struck, 5);
}

TEST_F(Records, ThatTheDiskHasChangedAreNotGivenBack) {
  FileSystem files = always_direct(files_);
  const auto change = [](auto real) {
    return [real](int file, void* bytes, std::size_t size, std::int64_t place) {
      const ssize_t count = real(file, bytes, size, place);
      static_cast<char*>(bytes)[17] ^= 1;
      return count;
    };
  };
  files.read_at = change(files_.read_at);
  files.read_direct = change(files.read_direct);
  const auto store = RecordStore::make(files, kRecord, room_for(0, 5), 100);
  const Handle record = store->store(record_of(0));
  EXPECT_EQ(read(*store, record), std::nullopt);
  EXPECT_EQ(store->take_warnings(),
            std::vector<std::string>{"the cache on disk does not hold what was written to it; what "
                                     "it does not give back is computed again"});
}

TEST_F(Records, AreOfSeveralThreads) {
  const auto store = RecordStore::make(files_, kRecord, room_for(20, 20), 100);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::map<int, Handle> records;
      for (int i = 0; i < 300; ++i) {
        const int number = t * 1000 + static_cast<int>(random() % 14);
        Handle& record = records[number];
        if (!record) {
          record = store->store(record_of(number));
        } else {
          if (read(*store, record) != record_of(number)) ++wrong;
          if (random() % 2 == 0) record.reset();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store->used(FeatureTier::kMemory).count, 0);
  EXPECT_EQ(store->used(FeatureTier::kDisk).count, 0);
}

}  // namespace
}  // namespace frazil
