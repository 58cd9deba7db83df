// What a DevicePool (exec/run/device_pool.h) asks its cache between and in steps.
#include "exec/run/device_pool.h"

#include <algorithm>
#include <utility>

#include "exec/cache/prefix_cache.h"
#include "profiles/error.h"

namespace frazil {

FeatureRoom DevicePool::room_for(const std::vector<std::uint64_t>& hashes) const {
  ENSURE(cache_ != nullptr, "the pool has a cache");
  return cache_->room_for(program().activity.cached, hashes);
}

CacheTally DevicePool::use_cache(const std::vector<std::uint64_t>& hashes,
                                 const FeatureRoom& room) {
  if (cache_ == nullptr) return {};
  cache_->admit(room);
  cache_->use(program().activity.cached, hashes);
  return tally();
}

// What went wrong in the process that leads is asked of its cache itself.
CacheTally DevicePool::tally() const {
  CacheTally tally = cache_->tally();
  tally.process = place_.process();
  if (tally.store == 0) tally.store = static_cast<std::uint64_t>(tally.process) + 1;
  if (tally.process != 0) tally.warnings = cache_->take_warnings();
  return tally;
}

StoreOffer DevicePool::offer_store() const {
  StoreOffer offer = cache_ == nullptr ? StoreOffer{} : cache_->offer();
  offer.process = place_.process();
  return offer;
}

// A process that has come in the place of a lost one brings rows of which none is there.
void DevicePool::take_store(const std::vector<StoreOffer>& offers) {
  const StoreOffer own = offer_store();
  if (own.host.empty()) return;
  const StoreOffer* best = nullptr;
  for (const StoreOffer& offer : offers) {
    if (offer.host != own.host) continue;
    if (best == nullptr || offer.changes > best->changes) best = &offer;
  }
  if (best != nullptr) cache_->take(*best);
}

// True if a device of this process runs the first stage on the micro-batch, or on a slice.
bool DevicePool::begins_here(MicroBatchId micro_batch) const {
  const Plan& plan = program().plan;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const Pipeline& pipeline = plan.pipelines[p];
    const bool owns = std::any_of(pipeline.micro_batches.begin(), pipeline.micro_batches.end(),
                                  [&](const MicroBatches& all) {
                                    return micro_batch >= all.first && micro_batch <= all.last;
                                  });
    if (!owns) continue;
    const Stage& stage = pipeline.stages.front();
    if (stage.axis == DeviceAxis::kData) {
      return place_.is_here(program().device_of(PipelineId{p}, StageId{0}, micro_batch));
    }
    return std::any_of(stage.devices.begin(), stage.devices.end(),
                       [this](DeviceId device) { return place_.is_here(device); });
  }
  return false;
}

void DevicePool::read_ahead(const std::vector<std::int64_t>& sample_ids, int size) {
  if (cache_ == nullptr || full_ == nullptr) return;
  std::vector<std::vector<std::int64_t>> micro_batches;
  const auto count = static_cast<std::ptrdiff_t>(sample_ids.size());
  std::int32_t number = 0;
  for (std::ptrdiff_t begin = 0; begin < count; begin += size, ++number) {
    if (!begins_here(MicroBatchId{number})) continue;
    const std::ptrdiff_t end = std::min<std::ptrdiff_t>(begin + size, count);
    micro_batches.emplace_back(sample_ids.begin() + begin, sample_ids.begin() + end);
  }
  cache_->expect(std::move(micro_batches));
}

}  // namespace frazil
