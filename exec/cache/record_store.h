#pragma once
// Stores records of one size: in memory first, then in a file without a name, of which nothing is
// left however the process ends. A record's room is free again when its last user lets go of it, so
// a record can be read while another one takes its place in an index. Safe to call from several
// threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cache/record_file.h"
#include "exec/disk/file_system.h"
#include "planner/transitions/feature_store.h"
#include "profiles/units.h"

namespace frazil {

struct StoreLimits {
  Bytes memory;
  Bytes disk;                    // 0: memory alone, no file
  std::filesystem::path folder;  // of the file; must exist
};

// Counts what a tier has moved, and how long that took its callers, added up over all threads.
struct TierTraffic {
  Bytes written;
  Bytes read;
  Duration writing{0};
  Duration reading{0};

  TierTraffic& operator+=(const TierTraffic& more) {
    written += more.written;
    read += more.read;
    writing += more.writing;
    reading += more.reading;
    return *this;
  }
  friend bool operator==(const TierTraffic&, const TierTraffic&) = default;
};

class RecordStore : public std::enable_shared_from_this<RecordStore> {
 public:
  // A stored record. It holds its room and keeps the store alive.
  class Record {
   public:
    Record(std::shared_ptr<RecordStore> store, FeatureTier tier, std::int64_t slot)
        : store_(std::move(store)), tier_(tier), slot_(slot) {}
    ~Record() { store_->give_back(tier_, slot_); }
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    FeatureTier tier() const { return tier_; }
    std::size_t size() const { return size_; }

   private:
    friend class RecordStore;
    std::shared_ptr<RecordStore> store_;
    FeatureTier tier_;
    std::int64_t slot_;
    std::size_t size_ = 0;
    std::uint64_t hash_ = 0;  // if it is on disk
  };
  using Handle = std::shared_ptr<const Record>;

  // Makes a store for at most `records` records of at most `record` bytes each, and reserves no
  // more than these take. Throws InputError if there is no such folder. If the folder takes no
  // file, that is a warning (take_warnings) and there is no room on disk. `files` outlives the
  // store.
  static std::shared_ptr<RecordStore> make(const FileSystem& files, Bytes record,
                                           const StoreLimits& limits, std::int64_t records);
  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // Stores a copy of the bytes, which are at most a record's. Returns none if there is no room. A
  // disk that fails or is full is used no further than it was written to; a warning tells so once.
  Handle store(std::string_view bytes);
  Handle store_in_memory(std::string_view bytes);
  Handle store_on_disk(std::string_view bytes);
  // Copies exactly what was stored, record.size() bytes. Returns false, with a warning the first
  // time, if the disk does not give it back.
  bool read(const Record& record, void* bytes);

  Bytes room(FeatureTier tier) const;          // bytes of all records that fit
  std::int64_t count(FeatureTier tier) const;  // records that fit
  Bytes used(FeatureTier tier) const;
  TierTraffic traffic(FeatureTier tier) const;
  std::vector<std::string> take_warnings();

 private:
  // Slots 0, 1, ... of a tier; slots that were given back are taken again first.
  struct Slots {
    std::int64_t count = 0;
    std::int64_t next = 0;
    std::vector<std::int64_t> free;
  };

  RecordStore(const FileSystem& files, Bytes record, const StoreLimits& limits,
              std::int64_t records);
  void open_file(const FileSystem& files, const std::filesystem::path& folder);
  void release_memory();
  std::int64_t take(FeatureTier tier);  // -1: no slot is left
  void give_back(FeatureTier tier, std::int64_t slot);
  Handle write_to_disk(std::string_view bytes, std::int64_t slot);
  bool read_from_disk(const Record& record, void* bytes);
  void count_traffic(FeatureTier tier, const TierTraffic& more);
  std::byte* memory_of(std::int64_t slot) const;
  Slots& slots(FeatureTier tier) {
    return tier == FeatureTier::kMemory ? memory_slots_ : disk_slots_;
  }
  const Slots& slots(FeatureTier tier) const { return const_cast<RecordStore*>(this)->slots(tier); }

  std::int64_t stride_;
  std::byte* memory_ = nullptr;
  std::unique_ptr<RecordFile> file_;
  mutable std::mutex mutex_;  // guards all below
  Slots memory_slots_;
  Slots disk_slots_;
  TierTraffic memory_traffic_;
  TierTraffic disk_traffic_;
  bool warned_of_write_ = false;
  bool warned_of_read_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace frazil
