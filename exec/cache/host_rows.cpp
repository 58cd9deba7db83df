#include "exec/cache/host_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRowAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kWrites = 1;
constexpr int kPidBits = 22;  // no system numbers processes further
constexpr std::uint64_t kContent = ~std::uint64_t{0} << (kPidBits + 1);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share what is mapped");

// Returns a state that is never 0.
std::uint64_t state_of(std::uint64_t content) {
  const std::uint64_t upper = content & kContent;
  return upper != 0 ? upper : std::uint64_t{1} << (kPidBits + 1);
}

std::uint64_t writing(std::uint64_t content) {
  return state_of(content) | static_cast<std::uint64_t>(::getpid()) << 1 | kWrites;
}

// A killed process counts as dead before its parent has asked for it.
bool writer_lives(std::uint64_t state) {
  std::ifstream status("/proc/" + std::to_string((state & ~kContent) >> 1) + "/stat");
  std::string line;
  if (!std::getline(status, line)) return false;
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ||
         (line[name_end + 2] != 'Z' && line[name_end + 2] != 'X');
}

std::uint64_t draw_id() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;
}

std::string name_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  return error || boot.empty() ? "" : boot + " " + space.string();
}

}  // namespace

HostRows::HostRows(const FileSystem& files, Bytes row, const StoreLimits& limits, std::int64_t rows)
    : files_(files), stride_(divide_up(row.count, kRowAlignment) * kRowAlignment) {
  ENSURE(row.count > 0 && rows > 0, "there is something to store");
  slots_ = {std::min(rows, limits.memory.count / stride_),
            std::min(rows, limits.disk.count / stride_)};
  if (!make_memory()) {
    warn(std::to_string(mapped_bytes()) + " bytes of memory cannot be had; nothing is cached");
    slots_ = {};
    return;
  }
  try {
    open_file(limits.folder);
  } catch (...) {
    unmap(mapping_, mapped_bytes());
    throw;
  }
}

HostRows::~HostRows() { unmap(mapping_, mapped_bytes()); }

std::size_t HostRows::table_bytes() const {
  const auto entries = static_cast<std::size_t>(slots_[0] + slots_[1]);
  return divide_up(sizeof(Head) + entries * sizeof(Entry), kPage) * kPage;
}

std::size_t HostRows::mapped_bytes() const {
  return table_bytes() + static_cast<std::size_t>(slots_[0] * stride_);
}

bool HostRows::map(int descriptor, Mapping& mapping) const {
  void* const bytes = ::mmap(nullptr, mapped_bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (bytes == MAP_FAILED) return false;
  mapping = {descriptor, static_cast<std::byte*>(bytes)};
  return true;
}

void HostRows::unmap(Mapping& mapping, std::size_t bytes) {
  if (mapping.bytes != nullptr) ::munmap(mapping.bytes, bytes);
  if (mapping.descriptor >= 0) ::close(mapping.descriptor);
  mapping = {};
}

// The system gives a page when it is first written to. Nobody can take one away from the others.
bool HostRows::make_memory() {
  const int descriptor = ::memfd_create("frazil-features", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return false;
  if (::ftruncate(descriptor, static_cast<off_t>(mapped_bytes())) != 0 ||
      !map(descriptor, mapping_)) {
    ::close(descriptor);
    return false;
  }
  (void)::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  head().id.store(draw_id());
  return true;
}

void HostRows::open_file(const fs::path& folder) {
  if (slots_[1] == 0) return;
  try {
    file_ = std::make_unique<RecordFile>(files_, folder);
  } catch (const InputError& error) {
    if (!fs::is_directory(folder)) throw;
    warn(std::string(error.what()) + "; nothing is cached on disk");
  }
}

StoreOffer HostRows::offer() const {
  if (mapping_.bytes == nullptr) return {};
  return {.host = name_host(),
          .process = 0,
          .pid = static_cast<int>(::getpid()),
          .memory = mapping_.descriptor,
          .disk = file_ ? file_->number() : -1,
          .id = id(),
          .changes = changes()};
}

// Maps the offered rows in the place of the own ones and says why it cannot be done, if so.
std::string HostRows::open_offered(const StoreOffer& offer, Mapping& taken,
                                   std::unique_ptr<RecordFile>& file) const {
  const std::string folder = "/proc/" + std::to_string(offer.pid) + "/fd/";
  const int descriptor =
      ::open((folder + std::to_string(offer.memory)).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return std::strerror(errno);
  taken.descriptor = descriptor;
  if (::lseek(descriptor, 0, SEEK_END) != static_cast<off_t>(mapped_bytes())) {
    return "it is of another size";
  }
  if (!map(descriptor, taken)) return std::strerror(errno);
  if (reinterpret_cast<Head*>(taken.bytes)->id.load() != offer.id) return "it is there no more";
  if (offer.disk < 0) return "";
  try {
    file = RecordFile::of_descriptor(files_, folder + std::to_string(offer.disk));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool HostRows::take(const StoreOffer& offer) {
  if (offer.id == id()) return true;
  Mapping taken;
  std::unique_ptr<RecordFile> file;
  const std::string why = open_offered(offer, taken, file);
  if (why.empty()) std::swap(mapping_, taken);
  unmap(taken, mapped_bytes());
  if (why.empty()) {
    file_ = std::move(file);
    is_own_ = false;
    return true;
  }
  warn("the cache of process " + std::to_string(offer.process) + " cannot be shared: " + why +
       "; this process has one of its own");
  return false;
}

std::uint64_t HostRows::id() const { return mapping_.bytes == nullptr ? 0 : head().id.load(); }

HostRows::Head& HostRows::head() const { return *reinterpret_cast<Head*>(mapping_.bytes); }

HostRows::Entry& HostRows::entry(FeatureTier tier, std::int64_t slot) const {
  ENSURE(slot >= 0 && slot < slots(tier), "a slot of the tier");
  const std::int64_t before = tier == FeatureTier::kMemory ? 0 : slots_[0];
  return reinterpret_cast<Entry*>(mapping_.bytes + sizeof(Head))[before + slot];
}

std::byte* HostRows::memory_of(std::int64_t slot) const {
  return mapping_.bytes + table_bytes() + slot * stride_;
}

bool HostRows::holds(FeatureTier tier, std::int64_t slot, std::uint64_t content) const {
  return entry(tier, slot).state.load(std::memory_order_acquire) == state_of(content);
}

// The hash is there before the row is told to be.
bool HostRows::write(FeatureTier tier, std::int64_t slot, std::uint64_t content,
                     std::string_view bytes) {
  ENSURE(static_cast<std::int64_t>(bytes.size()) <= stride_, "a row of its size");
  Entry& own = entry(tier, slot);
  std::uint64_t state = own.state.load(std::memory_order_acquire);
  if (state == state_of(content)) return true;
  if ((state & kWrites) != 0 && writer_lives(state)) return false;
  const std::uint64_t mine = writing(content);
  if (!own.state.compare_exchange_strong(state, mine)) return false;
  const SteadyTime start = std::chrono::steady_clock::now();
  std::uint64_t after = 0;
  if (put(tier, slot, bytes)) {
    own.hash.store(hash_bytes(bytes.data(), bytes.size(), content), std::memory_order_relaxed);
    after = state_of(content);
    count_traffic(tier, {.written = Bytes{static_cast<std::int64_t>(bytes.size())},
                         .read = {},
                         .writing = since(start)});
  }
  std::uint64_t expected = mine;
  const bool is_told =
      own.state.compare_exchange_strong(expected, after, std::memory_order_acq_rel);
  head().changes.fetch_add(1);
  return is_told && after != 0;
}

bool HostRows::put(FeatureTier tier, std::int64_t slot, std::string_view bytes) {
  if (tier == FeatureTier::kMemory) {
    std::memcpy(memory_of(slot), bytes.data(), bytes.size());
    return true;
  }
  if (!file_) return false;
  try {
    file_->write(bytes, slot * stride_);
    return true;
  } catch (const InputError& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(warned_of_disk_, true)) {
      warnings_.push_back(std::string(error.what()) + "; the cache on disk grows no further");
    }
    return false;
  }
}

bool HostRows::get(FeatureTier tier, std::int64_t slot, void* bytes, std::size_t size) {
  if (tier == FeatureTier::kMemory) {
    std::memcpy(bytes, memory_of(slot), size);
    return true;
  }
  try {
    return file_ && file_->read(bytes, size, slot * stride_) == size;
  } catch (const InputError&) {
    return false;
  }
}

bool HostRows::read(FeatureTier tier, std::int64_t slot, std::uint64_t content, void* bytes,
                    std::size_t size) {
  Entry& own = entry(tier, slot);
  std::uint64_t state = own.state.load(std::memory_order_acquire);
  if (state != state_of(content)) return false;
  const SteadyTime start = std::chrono::steady_clock::now();
  const std::uint64_t hash = own.hash.load(std::memory_order_relaxed);
  if (get(tier, slot, bytes, size) && hash_bytes(bytes, size, content) == hash) {
    count_traffic(
        tier,
        {.written = {}, .read = Bytes{static_cast<std::int64_t>(size)}, .reading = since(start)});
    return true;
  }
  own.state.compare_exchange_strong(state, 0);
  head().changes.fetch_add(1);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!std::exchange(warned_of_rows_, true)) {
    warnings_.emplace_back(
        "the cache does not hold what was written to it; what it does not give back is computed "
        "again");
  }
  return false;
}

void HostRows::clear() {
  if (mapping_.bytes == nullptr) return;
  const std::size_t head_and_table = table_bytes();
  for (const FeatureTier tier : {FeatureTier::kMemory, FeatureTier::kDisk}) {
    for (std::int64_t slot = 0; slot < slots(tier); ++slot) entry(tier, slot).state.store(0);
  }
  head().changes.fetch_add(1);
  if (slots_[0] == 0) return;
  (void)::fallocate(mapping_.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(head_and_table), static_cast<off_t>(slots_[0] * stride_));
}

std::int64_t HostRows::count(FeatureTier tier, std::int64_t slots, std::uint64_t content) const {
  std::int64_t count = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) count += holds(tier, slot, content) ? 1 : 0;
  return count;
}

std::uint64_t HostRows::changes() const {
  return mapping_.bytes == nullptr ? 0 : head().changes.load();
}

void HostRows::warn(std::string sentence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  warnings_.push_back(std::move(sentence));
}

void HostRows::count_traffic(FeatureTier tier, const TierTraffic& more) {
  const std::lock_guard<std::mutex> lock(mutex_);
  traffic_[index_of(tier)] += more;
}

TierTraffic HostRows::traffic(FeatureTier tier) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return traffic_[index_of(tier)];
}

std::vector<std::string> HostRows::take_warnings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace frazil
