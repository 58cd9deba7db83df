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

void SampleLoader::expect(const std::vector<SampleRange>& ranges) {
  const auto is_same = [](const Expected& one, const SampleRange& range) {
    return one.range == range;
  };
  if (std::equal(expected_.begin(), expected_.end(), ranges.begin(), ranges.end(), is_same)) return;
  jobs_.wait();
  std::vector<Expected> before = std::exchange(expected_, {});
  std::vector<std::pair<std::size_t, Order>> missing;
  for (const SampleRange& range : ranges) {
    Expected& one = expected_.emplace_back(Expected{range, {}});
    const auto kept = std::find_if(before.begin(), before.end(),
                                   [&](const Expected& made) { return made.range == range; });
    if (kept != before.end()) {
      one.made = std::move(kept->made);
    } else {
      missing.emplace_back(expected_.size() - 1, order_of(range.epoch));
    }
  }
  jobs_.start([this, missing] {
    for (const auto& [place, order] : missing) {
      expected_[place].made = make(expected_[place].range, order);
    }
  });
}

std::vector<Samples> SampleLoader::take(const SampleRange& range) {
  jobs_.wait();
  const auto found = std::find_if(expected_.begin(), expected_.end(),
                                  [&](const Expected& one) { return one.range == range; });
  if (found == expected_.end()) return make(range, order_of(range.epoch));
  std::vector<Samples> made = std::move(found->made);
  expected_.erase(found);
  return made;
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
