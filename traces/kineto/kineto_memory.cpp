#include "traces/kineto/kineto_memory.h"

#include <algorithm>
#include <unordered_map>

#include "traces/kineto/kineto_costs.h"

namespace frazil {
namespace {

std::size_t place_in(std::int32_t place) { return static_cast<std::size_t>(place); }

class StashSum {
 public:
  StashSum(const JoinedTrace& trace, const TraceLayers& layers) : trace_(trace), layers_(layers) {
    sums_.assign(layers.names.size(), std::vector<std::int64_t>(trace.steps.kept.size()));
  }

  std::vector<std::vector<std::int64_t>> run() {
    const bool on_device =
        std::any_of(trace_.memory.begin(), trace_.memory.end(),
                    [](const MemoryWork& change) { return change.is_on_device; });
    bool any = false;
    for (const MemoryWork& change : trace_.memory) {
      if (change.is_on_device != on_device) continue;
      any = true;
      if (change.bytes > 0) {
        allocate(change);
      } else {
        release(change);
      }
    }
    for (const auto& [address, block] : kept_) add_survivor(block);
    if (!any) sums_.clear();
    return std::move(sums_);
  }

 private:
  bool is_backward(const MemoryWork& change) const {
    return change.work >= 0 && change.is_inside_work &&
           trace_.works[place_in(change.work)].kind != HostWorkKind::kForward;
  }

  bool is_update(const MemoryWork& change) const {
    return change.mark >= 0 && trace_.ranges[place_in(change.mark)].kind == RangeKind::kUpdate;
  }

  void allocate(const MemoryWork& change) {
    kept_.erase(change.address);
    if (change.step < 0 || is_backward(change) || is_update(change)) return;
    kept_[change.address] = change;
  }

  // A block that is freed before any backward of its step was scratch.
  void release(const MemoryWork& change) {
    const auto place = kept_.find(change.address);
    if (place == kept_.end()) return;
    const MemoryWork block = place->second;
    kept_.erase(place);
    if (!is_backward(change)) {
      if (change.passes > block.passes) add_survivor(block);
      return;
    }
    const std::int32_t layer = layers_.of_work[place_in(change.work)];
    if (layer >= 0) add(layer, block);
  }

  void add_survivor(const MemoryWork& block) {
    const std::int32_t layer =
        block.work >= 0 && block.is_inside_work ? layers_.of_work[place_in(block.work)] : -1;
    if (layer >= 0 || block.passes < last_pass()) add(std::max(layer, 0), block);
  }

  std::int32_t last_pass() const { return trace_.memory.empty() ? 0 : trace_.memory.back().passes; }

  void add(std::int32_t layer, const MemoryWork& block) {
    add_saturating(sums_[place_in(layer)][place_in(block.step)], block.bytes);
  }

  const JoinedTrace& trace_;
  const TraceLayers& layers_;
  std::unordered_map<std::int64_t, MemoryWork> kept_;  // by address
  std::vector<std::vector<std::int64_t>> sums_;
};

}  // namespace

std::vector<std::vector<std::int64_t>> sum_stashes(const JoinedTrace& trace,
                                                   const TraceLayers& layers) {
  return StashSum(trace, layers).run();
}

}  // namespace frazil
