#include "exec/measuring/memory_account.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "profiles/error.h"

namespace frazil {

void MemoryAccount::begin(DeviceId device, Bytes parameters, Bytes optimizer) {
  *this = MemoryAccount();
  is_open_ = true;
  start_ = Clock::now();
  measured_.device = device;
  measured_.allocator_peak = parameters + optimizer;
  change(MemoryKind::kParameters, parameters.count);
  change(MemoryKind::kOptimizer, optimizer.count);
}

void MemoryAccount::change(MemoryKind kind, std::int64_t bytes) {
  if (!is_open_ || bytes == 0) return;
  const auto k = static_cast<std::size_t>(kind);
  held_[k] += bytes;
  ENSURE(held_[k] >= 0, "nothing is given back twice");
  measured_.peak[k].count = std::max(measured_.peak[k].count, held_[k]);
  const Bytes total{std::accumulate(held_.begin(), held_.end(), std::int64_t{0})};
  measured_.total_peak = std::max(measured_.total_peak, total);
  const TimePoint now{std::chrono::duration_cast<Duration>(Clock::now() - start_)};
  measured_.curve.push_back({now, total});
}

void MemoryAccount::reserve_gradients(LayerId layer, Bytes bytes) {
  std::int64_t& reserved = reserved_[layer];
  if (bytes.count <= reserved) return;
  change(MemoryKind::kGradients, bytes.count - std::exchange(reserved, bytes.count));
}

MeasuredMemory MemoryAccount::take() {
  is_open_ = false;
  return std::exchange(measured_, {});
}

}  // namespace frazil
