#pragma once
// CacheControl is the cache of the frozen prefix in a run: it makes the cache as the configuration
// says, is told which samples a step works on, and tells what the cache did. In a run over
// processes, each of which has a cache (exec/run/pool_cache.cpp), it decides for all by what all
// have told.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cache/cache_report.h"
#include "exec/cache/cache_tally.h"
#include "exec/cache/prefix_cache.h"
#include "exec/config/run_config.h"
#include "exec/run/run.h"
#include "exec/train/cache_admission.h"
#include "planner/plan/plan.h"
#include "planner/trajectory/cached_walk.h"
#include "profiles/model_profile.h"
#include "traces/freeze_trace.h"

namespace frazil {

class CacheControl {
 public:
  // Makes the cache of `samples`, those of the training part. `options` and `run` must outlive this
  // object. Throws InputError if the folder of the cache file is not there, and for a durable run
  // whose cache rounds: the values cached before such a run ended would be missing when it goes on.
  CacheControl(const TrainOptions& options, const RunShape& shape, Run& run,
               const SampleSource& samples);

  // Is asked before a transition. Returns whether to go on with `cached`, filling the cache or with
  // what is held, rather than with `without`, the best plan that caches nothing. The amount that
  // the cache then keeps holds for that transition.
  bool admit(const Plan& cached, const std::optional<Plan>& without, Step step);
  // Is told before a transition to a plan of a course (exec/train/plans/plan_course.h), which
  // caches its prefix: fills the tier that the course fills, or reads on what is held.
  void follow(const Plan& cached, const HeldCache& planned, Step step);
  // Is told after a transition: this plan has come into force before this step.
  void begin(const Plan& plan, Step step);
  // Is told after a step that has taken so many places (exec/data/sample_loader.h).
  void add_step(Step step, Step places, Duration time);
  // Is told that the run is over, after so many steps.
  void end(Step steps);
  // Returns what has happened since the last call.
  std::vector<FreezeEvent> take_events() { return std::exchange(events_, {}); }

  // True if something is cached. A step then tells which samples it works on, by their cache
  // numbers.
  bool is_used() const { return cache_ && cache_->depth() > 0; }
  // True if every sample has been seen at the depth in force, so that what is not cached has no
  // room. Of several caches that share nothing, each goes on to fill.
  bool is_filled() const {
    return course_.steps >= round_ && count_stores(run_.cache_tallies(), run_.processes()) == 1;
  }
  // Returns what is cached under the plan that has come into force, or why nothing is, as the
  // continuation of a sentence; empty if there is nothing to say.
  std::string describe(const Plan& plan, const ModelProfile& profile) const;
  // Returns what has gone wrong since the last call; the first time also a warning if not all
  // samples fit.
  std::vector<std::string> take_warnings();
  std::optional<CacheReport> report() const;

 private:
  // What is asked about a plan with a cached prefix.
  struct Asked {
    int depth = 0;
    Bytes of_sample;
    FeatureRoom room;
  };
  // A course is the time during which one depth is cached, from its transition on.
  struct Course {
    int depth = 0;  // 0: nothing is cached
    std::optional<CacheAdmission::Answer> answer = std::nullopt;
    Step first = 0;
    Step steps = 0;  // done, counted in places
    Duration time{0};
    Duration reading{0};        // of the tiers, when the depth was filled
    FeatureCounts counts = {};  // before the course
    FeatureCounts filled = {};  // when the depth was filled
    std::int64_t checked = 0;
    bool is_full = false;
  };
  CacheTally tally() const { return join_tallies(run_.cache_tallies(), run_.processes()); }
  int count_caches(const Plan& plan) const;
  std::optional<Asked> ask(const Plan& cached, const std::optional<Plan>& without, Step step);
  CacheEvent describe_held(CacheChange change) const;
  void note(Step step, CacheEvent event) { events_.push_back({step, std::move(event)}); }
  void note_left(Step step);
  void end_course(Step step);
  void note_read(Step step);

  Run& run_;
  const CacheConfig& config_;
  const ModelProfile& profile_;
  int variants_;
  std::int64_t samples_;
  CacheAdmission admission_;
  Step round_;  // steps in which every sample is seen in each variant
  std::optional<PrefixCache> cache_;
  std::string room_warning_;
  std::string declined_;                          // why filling is declined under the plan in force
  std::optional<CacheAdmission::Answer> answer_;  // until the plan is in force
  Course course_;
  FeatureCache::Source held_;    // what is held after the last step
  FeatureCache::Source before_;  // the depth before, while it is there
  std::vector<FreezeEvent> events_;
};

}  // namespace frazil
