#include "exec/cache/record_store.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAlignment = 64;

using Clock = std::chrono::steady_clock;

Bytes size_of(std::string_view bytes) { return Bytes{static_cast<std::int64_t>(bytes.size())}; }

bool is_folder(const FileSystem& files, const fs::path& path) {
  const int folder = files.open(path.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) files.close(folder);
  return folder >= 0;
}

// Reserves address space: the system gives a page when it is first written to.
std::byte* reserve(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* const memory = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  (void)::madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::shared_ptr<RecordStore> RecordStore::make(const FileSystem& files, Bytes record,
                                               const StoreLimits& limits, std::int64_t records) {
  return std::shared_ptr<RecordStore>(new RecordStore(files, record, limits, records));
}

RecordStore::RecordStore(const FileSystem& files, Bytes record, const StoreLimits& limits,
                         std::int64_t records)
    : stride_(divide_up(record.count, kAlignment) * kAlignment) {
  ENSURE(record.count > 0 && records > 0, "there is something to store");
  memory_slots_.count = std::min(records, limits.memory.count / stride_);
  memory_ = reserve(memory_slots_.count * stride_);
  if (memory_ == nullptr && memory_slots_.count > 0) {
    warnings_.push_back(std::to_string(memory_slots_.count * stride_) +
                        " bytes of memory cannot be had; nothing is cached in memory");
    memory_slots_.count = 0;
  }
  disk_slots_.count = std::min(records, limits.disk.count / stride_);
  try {
    open_file(files, limits.folder);
  } catch (...) {
    release_memory();
    throw;
  }
}

RecordStore::~RecordStore() { release_memory(); }

void RecordStore::release_memory() {
  if (memory_ == nullptr) return;
  ::munmap(memory_, static_cast<std::size_t>(memory_slots_.count * stride_));
}

void RecordStore::open_file(const FileSystem& files, const fs::path& folder) {
  if (disk_slots_.count == 0) return;
  try {
    file_ = std::make_unique<RecordFile>(files, folder);
  } catch (const InputError& error) {
    if (!is_folder(files, folder)) throw;
    warnings_.push_back(std::string(error.what()) + "; nothing is cached on disk");
    disk_slots_.count = 0;
  }
}

std::int64_t RecordStore::take(FeatureTier tier) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Slots& all = slots(tier);
  if (!all.free.empty()) {
    const std::int64_t slot = all.free.back();
    all.free.pop_back();
    return slot;
  }
  return all.next < all.count ? all.next++ : -1;
}

void RecordStore::give_back(FeatureTier tier, std::int64_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Slots& all = slots(tier);
  all.free.push_back(slot);
  if (tier == FeatureTier::kDisk || static_cast<std::int64_t>(all.free.size()) < all.next) return;
  // No record is left: the pages go back to the system, which gives them again when they are
  // written to.
  (void)::madvise(memory_, static_cast<std::size_t>(all.next * stride_), MADV_DONTNEED);
  all.next = 0;
  all.free.clear();
}

std::byte* RecordStore::memory_of(std::int64_t slot) const { return memory_ + slot * stride_; }

RecordStore::Handle RecordStore::store(std::string_view bytes) {
  if (Handle record = store_in_memory(bytes)) return record;
  return store_on_disk(bytes);
}

RecordStore::Handle RecordStore::store_in_memory(std::string_view bytes) {
  ENSURE(static_cast<std::int64_t>(bytes.size()) <= stride_, "a record of its size");
  const std::int64_t slot = take(FeatureTier::kMemory);
  if (slot < 0) return nullptr;
  auto record = std::make_shared<Record>(shared_from_this(), FeatureTier::kMemory, slot);
  record->size_ = bytes.size();
  const Clock::time_point start = Clock::now();
  std::memcpy(memory_of(slot), bytes.data(), bytes.size());
  count_traffic(FeatureTier::kMemory,
                {.written = size_of(bytes), .read = {}, .writing = since(start)});
  return record;
}

RecordStore::Handle RecordStore::store_on_disk(std::string_view bytes) {
  const std::int64_t slot = take(FeatureTier::kDisk);
  if (slot < 0) return nullptr;
  const Clock::time_point start = Clock::now();
  Handle record = write_to_disk(bytes, slot);
  if (record) {
    count_traffic(FeatureTier::kDisk,
                  {.written = size_of(bytes), .read = {}, .writing = since(start)});
  }
  return record;
}

RecordStore::Handle RecordStore::write_to_disk(std::string_view bytes, std::int64_t slot) {
  try {
    file_->write(bytes, slot * stride_);
  } catch (const InputError& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Neither this slot nor any that was never written is used again.
    disk_slots_.count = disk_slots_.next;
    if (!std::exchange(warned_of_write_, true)) {
      warnings_.push_back(std::string(error.what()) + "; the cache on disk grows no further");
    }
    return nullptr;
  }
  auto record = std::make_shared<Record>(shared_from_this(), FeatureTier::kDisk, slot);
  record->size_ = bytes.size();
  record->hash_ = hash_text(bytes);
  return record;
}

bool RecordStore::read(const Record& record, void* bytes) {
  const Clock::time_point start = Clock::now();
  bool is_given = true;
  if (record.tier_ == FeatureTier::kMemory) {
    std::memcpy(bytes, memory_of(record.slot_), record.size_);
  } else {
    is_given = read_from_disk(record, bytes);
  }
  if (is_given) {
    count_traffic(record.tier_, {.written = {},
                                 .read = Bytes{static_cast<std::int64_t>(record.size_)},
                                 .reading = since(start)});
  }
  return is_given;
}

bool RecordStore::read_from_disk(const Record& record, void* bytes) {
  std::string found = "the cache on disk does not hold what was written to it";
  try {
    const std::size_t count = file_->read(bytes, record.size_, record.slot_ * stride_);
    if (count == record.size_ && hash_bytes(bytes, count) == record.hash_) return true;
  } catch (const InputError& error) {
    found = error.what();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(warned_of_read_, true)) {
    warnings_.push_back(found + "; what it does not give back is computed again");
  }
  return false;
}

void RecordStore::count_traffic(FeatureTier tier, const TierTraffic& more) {
  const std::lock_guard<std::mutex> lock(mutex_);
  (tier == FeatureTier::kMemory ? memory_traffic_ : disk_traffic_) += more;
}

TierTraffic RecordStore::traffic(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tier == FeatureTier::kMemory ? memory_traffic_ : disk_traffic_;
}

Bytes RecordStore::room(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Bytes{slots(tier).count * stride_};
}

std::int64_t RecordStore::count(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return slots(tier).count;
}

Bytes RecordStore::used(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Slots& all = slots(tier);
  return Bytes{(all.next - static_cast<std::int64_t>(all.free.size())) * stride_};
}

std::vector<std::string> RecordStore::take_warnings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace frazil
