#pragma once
// Rows of bytes that all processes of a host share, in memory and on disk. They have no name: a
// process opens those of another one through its descriptors, and nothing is left of them however
// processes end. Safe to call from several threads and processes.
//
// A row stands in a slot, one after another, and says of which content it is: a number, such as the
// hash of the weights that made it. Nobody reads a row that is half written, or what a killed
// process has left of one: a row is told to be there once it is whole, and its hash is compared at
// every read. Processes that write the same row at once, or after one that was killed in it, are
// sorted out by the row's state.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "exec/cache/record_store.h"
#include "exec/cache/store_offer.h"

namespace frazil {

class HostRows {
 public:
  // Makes rows of at most `row` bytes in at most `rows` slots of each tier, as many as the limits
  // allow. Throws and warns as RecordStore::make. `files` outlives the object.
  HostRows(const FileSystem& files, Bytes row, const StoreLimits& limits, std::int64_t rows);
  ~HostRows();
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  // Lets other processes have these rows.
  StoreOffer offer() const;
  // Takes the rows that are offered in the place of the own ones, between two steps. Returns false,
  // with a warning, if they cannot be opened.
  bool take(const StoreOffer& offer);
  std::uint64_t id() const;
  bool is_own() const { return is_own_; }  // false: they were taken

  bool holds(FeatureTier tier, std::int64_t slot, std::uint64_t content) const;
  // Returns true if the row is there now. A disk that fails is a warning, once.
  bool write(FeatureTier tier, std::int64_t slot, std::uint64_t content, std::string_view bytes);
  // Copies `size` bytes. Returns false if the row is not there; one whose bytes are not those that
  // were written is a warning, once, and is there no more.
  bool read(FeatureTier tier, std::int64_t slot, std::uint64_t content, void* bytes,
            std::size_t size);
  // Gives the memory of all rows back to the system. Requires: nobody reads or writes.
  void clear();

  // Returns how many slots there are, how many of the first `slots` have that content, and how
  // often rows have come or gone in all processes.
  std::int64_t slots(FeatureTier tier) const { return slots_[index_of(tier)]; }
  Bytes stride() const { return Bytes{stride_}; }  // of a slot
  std::int64_t count(FeatureTier tier, std::int64_t slots, std::uint64_t content) const;
  std::uint64_t changes() const;
  TierTraffic traffic(FeatureTier tier) const;  // of this process
  std::vector<std::string> take_warnings();

 private:
  // Stands for a slot. The state is 0 or the upper part of the content, the writing process, and
  // whether it still writes.
  struct Entry {
    std::atomic<std::uint64_t> state;
    std::atomic<std::uint64_t> hash;
  };
  struct Head {
    std::atomic<std::uint64_t> id;
    std::atomic<std::uint64_t> changes;
  };
  // What one descriptor gives, mapped.
  struct Mapping {
    int descriptor = -1;
    std::byte* bytes = nullptr;
  };
  static constexpr std::size_t index_of(FeatureTier tier) { return static_cast<std::size_t>(tier); }

  std::size_t table_bytes() const;
  std::size_t mapped_bytes() const;
  bool map(int descriptor, Mapping& mapping) const;
  static void unmap(Mapping& mapping, std::size_t bytes);
  bool make_memory();
  std::string open_offered(const StoreOffer& offer, Mapping& taken,
                           std::unique_ptr<RecordFile>& file) const;
  void open_file(const std::filesystem::path& folder);
  Head& head() const;
  Entry& entry(FeatureTier tier, std::int64_t slot) const;
  std::byte* memory_of(std::int64_t slot) const;
  bool put(FeatureTier tier, std::int64_t slot, std::string_view bytes);
  bool get(FeatureTier tier, std::int64_t slot, void* bytes, std::size_t size);
  void warn(std::string sentence);
  void count_traffic(FeatureTier tier, const TierTraffic& more);

  const FileSystem& files_;
  std::int64_t stride_;
  std::array<std::int64_t, 2> slots_ = {};
  Mapping mapping_;
  bool is_own_ = true;
  std::unique_ptr<RecordFile> file_;
  mutable std::mutex mutex_;  // guards all below
  std::array<TierTraffic, 2> traffic_ = {};
  bool warned_of_disk_ = false;
  bool warned_of_rows_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace frazil
