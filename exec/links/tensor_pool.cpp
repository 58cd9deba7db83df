#include "exec/links/tensor_pool.h"

#include <ATen/ATen.h>

#include <map>
#include <mutex>
#include <utility>

#include "exec/links/checksum.h"

namespace frazil {
namespace {

constexpr std::uint64_t kLarge = 256 * 1024;  // what is smaller comes from malloc's own lists

}  // namespace

struct TensorPool::Kept {
  std::int64_t most = 0;
  std::mutex mutex;
  std::int64_t bytes = 0;
  std::multimap<std::uint64_t, at::Tensor> blocks;  // by size

  at::Tensor take(std::uint64_t wanted) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = blocks.lower_bound(wanted);
    if (found == blocks.end() || found->first > wanted + wanted / 4) return {};
    bytes -= static_cast<std::int64_t>(found->first);
    return std::move(blocks.extract(found).mapped());
  }

  // What does not fit is freed by the caller, outside of the lock.
  void give_back(at::Tensor& block) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (bytes + block.numel() > most) return;
    bytes += block.numel();
    blocks.emplace(static_cast<std::uint64_t>(block.numel()), std::move(block));
  }
};

TensorPool::TensorPool(std::int64_t most_kept) : kept_(std::make_shared<Kept>()) {
  kept_->most = most_kept;
}

at::Tensor TensorPool::make(const TensorHead& head) const {
  if (head.place == TensorPlace::kNone) return {};
  const auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(head.type));
  if (head.bytes < kLarge) return at::empty_strided(head.shape, head.strides, options);
  at::Tensor block = kept_->take(head.bytes);
  if (!block.defined()) block = at::empty({static_cast<std::int64_t>(head.bytes)}, at::kByte);
  void* const memory = block.mutable_data_ptr();
  const auto give_back = [kept = kept_, block = std::move(block)](void*) mutable {
    kept->give_back(block);
  };
  return at::from_blob(memory, head.shape, head.strides, give_back, options);
}

TensorHead describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {.type = static_cast<std::uint8_t>(tensor.scalar_type()),
          .place = TensorPlace::kBehind,
          .bytes = static_cast<std::uint64_t>(tensor.nbytes()),
          .shape = tensor.sizes().vec(),
          .strides = tensor.strides().vec()};
}

at::Tensor make_dense(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const at::Tensor here = tensor.is_cpu() ? tensor : tensor.cpu();
  return here.is_non_overlapping_and_dense() ? here : here.contiguous();
}

std::uint32_t sum_bytes(const at::Tensor& tensor) {
  return tensor.defined() ? crc32c(tensor.const_data_ptr(), tensor.nbytes()) : 0;
}

}  // namespace frazil
