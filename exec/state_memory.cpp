#include "exec/state_memory.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr std::size_t kLeastBlock = std::size_t{1} << 20;

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// Begins at a huge page, so that it has as many as it holds.
class Block {
 public:
  explicit Block(std::size_t bytes) : size_(bytes) {
    const std::size_t whole = bytes + kHugePage;
    void* const memory =
        ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    auto* const begin = static_cast<char*>(memory);
    const std::size_t before = round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) -
                               reinterpret_cast<std::uintptr_t>(begin);
    bytes_ = begin + before;
    if (before > 0) (void)::munmap(begin, before);
    (void)::munmap(bytes_ + size_, kHugePage - before);
    // A matter of speed alone.
    (void)::madvise(bytes_, size_, MADV_HUGEPAGE);
  }
  ~Block() { (void)::munmap(bytes_, size_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  char* at(std::size_t place) const { return bytes_ + place; }

 private:
  std::size_t size_;
  char* bytes_ = nullptr;
};

// Places for tensors like these, one after another; none where they are few bytes or elsewhere.
// What comes from the system is zero.
std::optional<Tensors> make_alike(const Tensors& tensors) {
  constexpr std::size_t kPage = 4096;
  std::size_t all = 0;
  for (const at::Tensor& tensor : tensors) {
    ENSURE(tensor.is_contiguous(), "state tensors are contiguous");
    if (!tensor.is_cpu()) return std::nullopt;
    all += round_up(tensor.nbytes(), kAlignment);
  }
  if (all < kLeastBlock) return std::nullopt;
  const auto block = std::make_shared<const Block>(round_up(all, kPage));
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

}  // namespace

Tensors copy_to_own_memory(const Tensors& tensors) {
  std::optional<Tensors> copies = make_alike(tensors);
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

Tensors zeros_in_own_memory(const Tensors& tensors) {
  if (std::optional<Tensors> zeros = make_alike(tensors)) return *std::move(zeros);
  Tensors zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros_like(tensor));
  return zeros;
}

}  // namespace frazil
