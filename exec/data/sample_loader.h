#pragma once
// Makes the samples of the steps to come: drawn by epoch, gathered and augmented in a thread of its
// own while the step before runs. What a step gets is the same as if it were made when it is asked
// for.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "exec/data/augmentation.h"
#include "exec/data/dataset.h"
#include "exec/devices/background_jobs.h"
#include "exec/tensors/sample_range.h"
#include "profiles/units.h"

namespace frazil {

// The places of a run of `samples` samples an epoch, one for each batch of the configured size; the
// last of an epoch may be short. A step takes the samples of one place, or, if the batch has grown,
// of several, but never of two epochs.
struct RunPlaces {
  std::int64_t samples = 1;
  int batch_size = 1;

  Step of_epoch() const { return divide_up<std::int64_t>(samples, batch_size); }
  // Returns the samples of up to `places` places from `place` on, counted from 0 over the run; the
  // end of the epoch cuts them off.
  SampleRange range(Step place, Step places) const;
  // Returns how many places a range takes.
  Step count(const SampleRange& range) const {
    return divide_up<std::int64_t>(range.count, batch_size);
  }
};

// The samples of a step follow from these settings and their range.
struct LoaderConfig {
  int micro_batch_size = 8;
  std::uint64_t seed = 1;  // decides the order of an epoch and augmentation
  AugmentationConfig augmentation = {};
};

// Makes the samples of the next steps on a thread of its own. Called by one thread. Requires:
// ranges lie within their epoch.
class SampleLoader {
 public:
  // `samples` are the training part.
  SampleLoader(SampleSource samples, const LoaderConfig& config)
      : samples_(std::move(samples)), config_(config) {}

  // Begins to make these samples, which are asked for next, one after another. Waits for others
  // expected before; keeps those that are expected still and drops the rest.
  void expect(const std::vector<SampleRange>& ranges);
  void expect(const SampleRange& range) { expect(std::vector{range}); }
  // Returns the samples by micro-batches; makes them on the spot if they were not expected. Throws
  // what making them has thrown; once the thread has failed, every later call throws that.
  std::vector<Samples> take(const SampleRange& range);
  // Returns their numbers in a cache: sample s in variant v is v x samples + s.
  std::vector<std::int64_t> cache_numbers(const SampleRange& range);

 private:
  using Order = std::shared_ptr<const std::vector<std::int64_t>>;
  Order order_of(int epoch);
  std::vector<Samples> make(const SampleRange& range, const Order& order) const;

  SampleSource samples_;
  LoaderConfig config_;
  std::map<int, Order> orders_;  // by epoch, the latest two
  // What is expected and not yet taken; the samples are the thread's until it has ended.
  struct Expected {
    SampleRange range;
    std::vector<Samples> made;
  };
  std::vector<Expected> expected_;
  BackgroundJobs jobs_{true};  // last: it uses the members above
};

}  // namespace frazil
