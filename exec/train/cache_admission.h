#pragma once
// CacheAdmission asks the planner whether a run fills its cache under a new mask: the question of
// planner/transitions/fill_choice.h, with steps as they are simulated from the run's profile, tiers
// at their declared rates, and the steps to come as far as they are foreseen. The answer is a
// function of the run's configuration, profile and cluster, the two plans, the step and what is
// held. Nothing that is measured meanwhile enters, so a run always decides alike.

#include <optional>
#include <vector>

#include "exec/cache/feature_cache.h"
#include "exec/train/train_options.h"
#include "planner/transitions/cache_residency.h"
#include "planner/transitions/fill_choice.h"

namespace frazil {

class CacheAdmission {
 public:
  // Decides for `samples` samples in each of `variants` variants. An epoch sees one variant of each
  // sample, so all variants are seen and filled in as many epochs as there are variants. `options`
  // must outlive this object.
  CacheAdmission(const TrainOptions& options, const RunShape& run, std::int64_t samples,
                 int variants = 1);

  struct Answer {
    int depth = 0;
    FillQuestion question;
    FillChoice choice;
    // Step times without the new features: of the plan without a cache (none: there is no such
    // plan), and of going on with the held source (none: there is no source).
    std::optional<Duration> uncached;
    std::optional<Duration> going_on;
    bool fills = false;
    bool keeps_source = false;  // does not fill: going on with the source is best
  };
  // Answers for a new mask. `cached`: a plan with a cached prefix; `without`: the best plan that
  // caches nothing, if one fits. `source`: the features that are held. `of_sample` and `room`: size
  // of, and room for, features at the end of that prefix, in each of `caches` caches that share
  // nothing.
  Answer ask(const Plan& cached, const std::optional<Plan>& without, Step step,
             const FeatureCache::Source& source, Bytes of_sample, const FeatureRoom& room,
             int caches = 1) const;

 private:
  Duration step_time(const Plan& plan, int depth) const;  // for one configured batch
  Duration fixed_part(Duration prefix, const Activity& activity, int from, int depth) const;
  FeatureStore find_store(Bytes of_sample, const FeatureRoom& room) const;

  const TrainOptions& options_;
  RunShape run_;
  std::int64_t samples_;  // in all variants
  std::optional<std::vector<TracedMask>> forecast_;
};

}  // namespace frazil
