#pragma once
// The cache of the frozen prefix in a run: made as the configuration says, told which samples a
// step works on, asked what it did.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cache/cache_report.h"
#include "exec/cache/prefix_cache.h"
#include "exec/config/run_config.h"
#include "exec/run/run.h"
#include "exec/train/cache_admission.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "traces/freeze_trace.h"

namespace frazil {

// The plan with its frozen prefix cached, where there is one and its stages allow it; else none.
std::optional<Plan> with_cached_prefix(const Plan& plan, const ModelProfile& profile);

class CacheControl {
 public:
  // Of the samples of the training part. `options` and `run` outlive it. Throws InputError where
  // the folder of the file is not there, and of a durable run whose cache rounds: what was cached
  // before it ended would be missing when it goes on.
  CacheControl(const TrainOptions& options, const RunShape& shape, Run& run,
               const Samples& samples);

  // Before a switch: whether to go on with `cached`, filling or with what is held, rather than with
  // `without`, the best plan that caches nothing. How much it keeps holds for that switch.
  bool admit(const Plan& cached, const std::optional<Plan>& without, Step step);
  // After it: the plan that has come into force before this step.
  void begin(const Plan& plan, Step step);
  // A step is done that has taken so many places (exec/data/sample_loader.h).
  void add_step(Step step, Step places, Duration time);
  // The run is over, after so many steps.
  void end(Step steps);
  // What has happened since the last call.
  std::vector<FreezeEvent> take_events() { return std::exchange(events_, {}); }

  // Whether something is cached: a step tells which samples it works on, by their numbers in it.
  bool is_used() const { return cache_ && cache_->depth() > 0; }
  // Every sample has been seen at the depth in force: what is not there now has no room.
  bool is_filled() const { return course_.steps >= round_; }
  // Reads ahead for the step on these, in micro-batches of `size`.
  void expect(const std::vector<std::int64_t>& samples, int size);
  // What is cached under the plan that has come into force, or why nothing is, to go on with after
  // a sentence; empty where there is nothing to say.
  std::string describe(const Plan& plan, const ModelProfile& profile) const;
  // What has gone wrong since the last call; the first time also that not all samples fit.
  std::vector<std::string> take_warnings();
  std::optional<CacheReport> report() const;

 private:
  // A depth from its switch on.
  struct Course {
    int depth = 0;  // 0: nothing is cached
    std::optional<CacheAdmission::Answer> answer = std::nullopt;
    Step first = 0;
    Step steps = 0;  // done, counted in places
    Duration time{0};
    Duration reading{0};        // of the tiers, when it was filled
    FeatureCounts counts = {};  // before it
    FeatureCounts filled = {};  // when it was filled
    std::int64_t checked = 0;
    bool is_full = false;
  };
  CacheEvent describe_held(CacheChange change) const;
  void note(Step step, CacheEvent event) { events_.push_back({step, std::move(event)}); }
  void note_left(Step step);
  void end_course(Step step);
  Duration reading() const;
  void note_read(Step step);

  const CacheConfig& config_;
  const ModelProfile& profile_;
  int variants_;
  std::int64_t samples_;
  CacheAdmission admission_;
  Step round_;  // steps in which every sample is seen in each variant
  std::optional<PrefixCache> cache_;
  std::string room_warning_;
  std::string declined_;                          // why, of the plan in force
  std::optional<CacheAdmission::Answer> answer_;  // until the plan is in force
  Course course_;
  FeatureCache::Source held_;    // after the last step
  FeatureCache::Source before_;  // the depth before, while it is there
  std::vector<FreezeEvent> events_;
};

}  // namespace frazil
