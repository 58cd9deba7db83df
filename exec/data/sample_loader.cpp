#include "exec/data/sample_loader.h"

#include <algorithm>
#include <span>
#include <utility>

namespace frazil {

SampleRange RunPlaces::range(Step place, Step places) const {
  const std::int64_t first = place % of_epoch() * batch_size;
  return {static_cast<int>(place / of_epoch()), first,
          std::min<std::int64_t>(places * batch_size, samples - first)};
}

SampleLoader::Order SampleLoader::order_of(int epoch) {
  const auto known = orders_.find(epoch);
  if (known != orders_.end()) return known->second;
  // The order of the epoch before is still asked for while the next is expected: two are kept.
  if (orders_.size() > 1) orders_.erase(orders_.begin());
  return orders_[epoch] = std::make_shared<const std::vector<std::int64_t>>(
             epoch_order(samples_.count(), config_.seed, epoch));
}

std::vector<Samples> SampleLoader::make(const SampleRange& range, const Order& order) const {
  std::vector<Samples> micro_batches =
      gather_micro_batches(samples_, *order, range.first, range.count, config_.micro_batch_size);
  augment(micro_batches,
          std::span(*order).subspan(static_cast<std::size_t>(range.first),
                                    static_cast<std::size_t>(range.count)),
          config_.augmentation, config_.seed, variant_of(config_.augmentation, range.epoch),
          samples_.normalization());
  return micro_batches;
}

void SampleLoader::expect(const SampleRange& range) {
  if (expected_ == range) return;
  jobs_.wait();
  expected_ = range;
  jobs_.start([this, range, order = order_of(range.epoch)] { made_ = make(range, order); });
}

std::vector<Samples> SampleLoader::take(const SampleRange& range) {
  jobs_.wait();
  const bool is_made = expected_ == range;
  expected_.reset();
  if (is_made) return std::exchange(made_, {});
  return make(range, order_of(range.epoch));
}

std::vector<std::int64_t> SampleLoader::cache_numbers(const SampleRange& range) {
  const Order order = order_of(range.epoch);
  const std::int64_t variant = variant_of(config_.augmentation, range.epoch);
  std::vector<std::int64_t> numbers(order->begin() + range.first,
                                    order->begin() + range.first + range.count);
  for (std::int64_t& number : numbers) number += variant * samples_.count();
  return numbers;
}

}  // namespace frazil
