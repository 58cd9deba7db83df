#pragma once
// Asks the planner whether a run fills its cache under a new mask: the question of
// planner/transitions/fill_choice.h, with steps as they are simulated from the run's profile, tiers
// at their declared rates, and the steps to come as far as they are foreseen. A function of the
// run's configuration, profile and cluster, the two plans, the step and what is held: nothing that
// is measured meanwhile enters, so that a run decides alike whenever it runs.

#include <optional>
#include <vector>

#include "exec/cache/feature_cache.h"
#include "exec/train/train_options.h"
#include "planner/transitions/cache_residency.h"
#include "planner/transitions/fill_choice.h"

namespace frazil {

class CacheAdmission {
 public:
  // Of `samples` samples in each of `variants` variants, of which an epoch sees one: all are seen
  // and filled in as many epochs. `options` outlives it.
  CacheAdmission(const TrainOptions& options, const RunShape& run, std::int64_t samples,
                 int variants = 1);

  struct Answer {
    int depth = 0;
    FillQuestion question;
    FillChoice choice;
    // Of a step without these features: that the plan without a cache takes, and that going on with
    // the source takes; none: there is no such plan, or no source.
    std::optional<Duration> uncached;
    std::optional<Duration> going_on;
    bool fills = false;
    bool keeps_source = false;  // it does not fill, and going on with what is held is best
  };
  // `cached`: a plan with a cached prefix; `without`: the best that caches nothing, where one fits.
  // `of_sample` and `room`: of features at that prefix's end.
  Answer ask(const Plan& cached, const std::optional<Plan>& without, Step step,
             const FeatureCache::Source& source, Bytes of_sample, const FeatureRoom& room) const;

 private:
  Duration step_time(const Plan& plan, int depth) const;  // for a batch of the run
  Duration fixed_part(Duration prefix, int from, int depth) const;
  FeatureStore find_store(Bytes of_sample, const FeatureRoom& room) const;

  const TrainOptions& options_;
  RunShape run_;
  std::int64_t samples_;  // in all variants
  std::optional<std::vector<TracedMask>> forecast_;
};

}  // namespace frazil
