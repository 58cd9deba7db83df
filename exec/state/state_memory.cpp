#include "exec/state/state_memory.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << 21;

std::size_t round_up(std::size_t bytes, std::size_t to) { return divide_up(bytes, to) * to; }

}  // namespace

// A block of pages from the system. A large block begins at a huge page, so that it has as many
// huge pages as it holds.
class StateMemory::Block {
 public:
  explicit Block(std::size_t bytes) : size_(bytes) {
    const std::size_t whole = bytes < kHugePage ? bytes : bytes + kHugePage;
    void* const memory =
        ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<char*>(memory);
    bytes_ = begin;
    if (bytes < kHugePage) return;
    const std::size_t before = round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) -
                               reinterpret_cast<std::uintptr_t>(begin);
    bytes_ = begin + before;
    if (before > 0) (void)::munmap(begin, before);
    (void)::munmap(bytes_ + size_, kHugePage - before);
    // The advice is a matter of speed alone, so its failure is ignored.
    (void)::madvise(bytes_, size_, MADV_HUGEPAGE);
  }
  ~Block() { (void)::munmap(bytes_, size_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  char* at(std::size_t place) const { return bytes_ + place; }
  std::size_t size() const { return size_; }
  bool is_zero() const { return is_zero_; }  // as it comes from the system
  void set_used() { is_zero_ = false; }
  void touch() const {
    for (std::size_t place = 0; place < size_; place += kPage) {
      *static_cast<volatile char*>(bytes_ + place) = 0;
    }
  }

 private:
  std::size_t size_;
  char* bytes_ = nullptr;
  bool is_zero_ = true;
};

class StateMemory::Pool : public std::enable_shared_from_this<Pool> {
 public:
  std::shared_ptr<Block> take(std::size_t bytes) {
    std::unique_ptr<Block> block = find_kept(bytes);
    if (!block) block = make_block(bytes);
    std::vector<std::unique_ptr<Block>> surplus;  // unmapped without the lock
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      held_ += block->size();
      most_ = std::max(most_, held_);
      surplus = shrink(0);
    }
    return {block.release(), [pool = weak_from_this()](Block* given_up) {
              std::unique_ptr<Block> own(given_up);
              own->set_used();
              if (const std::shared_ptr<Pool> alive = pool.lock()) alive->keep(std::move(own));
            }};
  }

  void reserve(const std::vector<Bytes>& blocks) {
    std::vector<std::unique_ptr<Block>> ready;
    std::vector<std::size_t> missing;
    std::size_t bytes = 0;
    for (const Bytes each : blocks) {
      const auto size = static_cast<std::size_t>(each.count);
      if (size == 0) continue;
      std::unique_ptr<Block> block = find_kept(size);
      bytes += block ? block->size() : size;
      if (block) {
        ready.push_back(std::move(block));
      } else {
        missing.push_back(size);
      }
    }
    make_room(bytes);
    for (const std::size_t size : missing) {
      try {
        ready.push_back(std::make_unique<Block>(size));
      } catch (const std::bad_alloc&) {
        break;  // whoever needs the block is told when asking for it
      }
      ready.back()->touch();
    }
    std::vector<std::unique_ptr<Block>> surplus;  // unmapped without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::unique_ptr<Block>& block : ready) add_kept(std::move(block));
    // Other threads may have taken blocks meanwhile.
    surplus = shrink(0);
  }

  Usage usage() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {Bytes{static_cast<std::int64_t>(held_)}, Bytes{static_cast<std::int64_t>(kept_bytes_)}};
  }

 private:
  // Gives kept blocks back to the system if it has no more memory, and asks again.
  std::unique_ptr<Block> make_block(std::size_t bytes) {
    try {
      return std::make_unique<Block>(bytes);
    } catch (const std::bad_alloc&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      kept_.clear();
      kept_bytes_ = 0;
    }
    return std::make_unique<Block>(bytes);
  }

  // Takes out a kept block that is large enough and at most an eighth larger; null if there is
  // none.
  std::unique_ptr<Block> find_kept(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = kept_.lower_bound(bytes);
    if (found == kept_.end() || found->first > bytes + bytes / 8) return nullptr;
    std::unique_ptr<Block> block = std::move(found->second);
    kept_bytes_ -= block->size();
    kept_.erase(found);
    return block;
  }

  void keep(std::unique_ptr<Block> block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ -= block->size();
    add_kept(std::move(block));
  }

  void add_kept(std::unique_ptr<Block> block) {
    kept_bytes_ += block->size();
    const std::size_t size = block->size();
    kept_.emplace(size, std::move(block));
  }

  void make_room(std::size_t bytes) {
    std::vector<std::unique_ptr<Block>> surplus;  // unmapped without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    most_ = std::max(most_, held_ + bytes);
    surplus = shrink(bytes);
  }

  // Takes out kept blocks, the largest first, until there is room for `more` bytes.
  std::vector<std::unique_ptr<Block>> shrink(std::size_t more) {
    std::vector<std::unique_ptr<Block>> surplus;
    while (!kept_.empty() && held_ + kept_bytes_ + more > most_) {
      const auto largest = std::prev(kept_.end());
      kept_bytes_ -= largest->first;
      surplus.push_back(std::move(largest->second));
      kept_.erase(largest);
    }
    return surplus;
  }

  std::mutex mutex_;  // guards all below
  std::multimap<std::size_t, std::unique_ptr<Block>> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t held_ = 0;
  std::size_t most_ = 0;
};

StateMemory StateMemory::keeping() {
  StateMemory memory;
  memory.pool_ = std::make_shared<Pool>();
  return memory;
}

Bytes StateMemory::block_of(const Tensors& tensors) {
  std::size_t all = 0;
  for (const at::Tensor& tensor : tensors) {
    ENSURE(tensor.is_contiguous(), "state tensors are contiguous");
    if (!tensor.is_cpu()) return Bytes{};
    all += round_up(tensor.nbytes(), kAlignment);
  }
  return Bytes{static_cast<std::int64_t>(round_up(all, kPage))};
}

void StateMemory::reserve(const std::vector<Bytes>& blocks) const {
  if (pool_) pool_->reserve(blocks);
}

StateMemory::Usage StateMemory::usage() const { return pool_ ? pool_->usage() : Usage{}; }

std::shared_ptr<StateMemory::Block> StateMemory::take(Bytes bytes) const {
  const auto size = static_cast<std::size_t>(bytes.count);
  return pool_ ? pool_->take(size) : std::make_shared<Block>(size);
}

// Returns tensors like these, one after another in one block; none if these are empty or not on the
// host.
std::optional<Tensors> StateMemory::make_alike(const Tensors& tensors, bool is_zero) const {
  const Bytes bytes = block_of(tensors);
  if (bytes.count == 0) return std::nullopt;
  const std::shared_ptr<Block> block = take(bytes);
  if (is_zero && !block->is_zero()) std::memset(block->at(0), 0, block->size());
  Tensors alike;
  alike.reserve(tensors.size());
  std::size_t place = 0;
  for (const at::Tensor& tensor : tensors) {
    alike.push_back(at::from_blob(
        block->at(place), tensor.sizes(), [block](void*) {},
        tensor.options().requires_grad(false)));
    place += round_up(tensor.nbytes(), kAlignment);
  }
  return alike;
}

Tensors StateMemory::copy(const Tensors& tensors) const {
  std::optional<Tensors> copies = make_alike(tensors, false);
  if (!copies) {
    copies.emplace();
    for (const at::Tensor& tensor : tensors) copies->push_back(tensor.detach().clone());
    return *std::move(copies);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::memcpy((*copies)[i].data_ptr(), tensors[i].const_data_ptr(), tensors[i].nbytes());
  }
  return *std::move(copies);
}

Tensors StateMemory::zeros(const Tensors& tensors) const {
  if (std::optional<Tensors> zeros = make_alike(tensors, true)) return *std::move(zeros);
  Tensors zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros_like(tensor));
  return zeros;
}

}  // namespace frazil
