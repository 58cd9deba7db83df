#pragma once
// Room for records of one size: in memory first, then in a file without a name, of which nothing is
// left however the process ends. A record's room is free again when its last user lets go of it, so
// one can be read while another takes its place in an index. Of several threads.

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
  std::filesystem::path folder;  // of the file; there already
};

// What a tier has moved, and how long that took its callers, added up over all threads.
struct TierTraffic {
  Bytes written;
  Bytes read;
  Duration writing{0};
  Duration reading{0};
  friend bool operator==(const TierTraffic&, const TierTraffic&) = default;
};

class RecordStore : public std::enable_shared_from_this<RecordStore> {
 public:
  // One that was stored; holds its room. Keeps the store alive.
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
    std::uint64_t hash_ = 0;  // of one on disk
  };
  using Handle = std::shared_ptr<const Record>;

  // Records have at most `record` bytes; there are never more than `records`, which is all that is
  // reserved. Throws InputError where there is no such folder; where it takes no file, that is a
  // warning and there is no room on disk. `files` outlives the store.
  static std::shared_ptr<RecordStore> make(const FileSystem& files, Bytes record,
                                           const StoreLimits& limits, std::int64_t records);
  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // A copy of the bytes, at most a record's; none where there is no room. A disk that fails or is
  // full is written to no further than it was; that is told once (take_warnings).
  Handle store(std::string_view bytes);
  Handle store_in_memory(std::string_view bytes);
  Handle store_on_disk(std::string_view bytes);
  // Exactly what was stored, of its size; false, with a warning the first time, where the disk does
  // not give it back.
  bool read(const Record& record, void* bytes);

  Bytes room(FeatureTier tier) const;          // of all records that fit
  std::int64_t count(FeatureTier tier) const;  // of them
  Bytes used(FeatureTier tier) const;
  TierTraffic traffic(FeatureTier tier) const;
  std::vector<std::string> take_warnings();

 private:
  // Slots 0, 1, ... of a tier; those given back are taken again first.
  struct Slots {
    std::int64_t count = 0;
    std::int64_t next = 0;
    std::vector<std::int64_t> free;
  };

  RecordStore(const FileSystem& files, Bytes record, const StoreLimits& limits,
              std::int64_t records);
  void open_file(const FileSystem& files, const std::filesystem::path& folder);
  void release_memory();
  std::int64_t take(FeatureTier tier);  // -1: none is left
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
  mutable std::mutex mutex_;  // of all below
  Slots memory_slots_;
  Slots disk_slots_;
  TierTraffic memory_traffic_;
  TierTraffic disk_traffic_;
  bool warned_of_write_ = false;
  bool warned_of_read_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace frazil
