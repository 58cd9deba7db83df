#pragma once
// Replanner is the planner as a run asks it: which plan the run goes on with under a mask, and what
// the transition to that plan would bring and cost.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analysis/plan_regret.h"
#include "exec/devices/background_jobs.h"
#include "exec/measuring/processor_caches.h"
#include "exec/train/plans/plan_course.h"
#include "exec/train/plans/plan_finder.h"
#include "exec/train/train_options.h"
#include "planner/freezing/decorators.h"
#include "planner/transitions/cache_residency.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/processes.h"
#include "traces/freeze_trace.h"

namespace frazil {

class Replanner {
 public:
  // Serves a run of this shape over so many training samples. `options` must outlive this object.
  Replanner(const TrainOptions& options, const RunShape& run, std::int64_t samples)
      : options_(options),
        finder_(options, samples, all_devices(options.cluster)),
        masks_(options.planner ? foresee_masks(options.config.freeze, run) : std::nullopt),
        course_(options, run, samples, finder_),
        overhead_(options.overhead) {}

  // Returns the plan to go on with under the mask from this step on, and holds it from now on. The
  // first plan is the given one. Any other is that of the course (exec/train/plans/plan_course.h)
  // if the run follows one. Else it is the best under the mask if the run
  // is elastic or the held plan has no room under the mask, or the held plan. Its frozen prefix is
  // cached where the run has a cache and the plan allows it, on a course where the course caches.
  // Throws InfeasibleError if no plan fits, InputError for a given plan with a cached prefix in a
  // run without a cache. If the batch grows with the pipelines, the plan is the fastest by sample
  // of those that are best for the batch that their pipelines have.
  const Plan& go_on(const FreezeMask& mask, Step step);
  // Takes a step under the mask in force. Returns whether the course then leaves the held plan;
  // go_on() answers with the next.
  bool leaves(Step step);
  // Returns what the course caches under the held plan; none: the plan is not that of a course.
  const std::optional<HeldCache>& planned_cache() const { return planned_cache_; }
  // Returns the best plan under the held plan's mask that caches nothing; none if none fits.
  std::optional<Plan> find_uncached();
  // Says which devices of the cluster are there, ascending; at first all are. Later plans use no
  // others, also if the run is not elastic.
  void set_devices(std::vector<DeviceId> devices);
  // Returns what go_on(mask) and find_uncached() would find with these devices; none if no plan
  // fits, or the batch grows with the pipelines. Any thread.
  std::optional<FoundPlans> find_ahead(const FreezeMask& mask,
                                       const std::vector<DeviceId>& devices) const {
    return finder_.find_both_on(devices, mask);
  }
  // Takes over what find_ahead() found for the devices that are there. The next plan is then this
  // one, so that nobody waits; a course begins at the next mask.
  void take(const FreezeMask& mask, const FoundPlans& found);
  // Lets `change` change what profile and cluster of the options say of times, and forgets all that
  // was answered by them: a course begins at the next mask. Waits for what is being asked ahead.
  void renew_costs(const std::function<void()>& change);
  // Returns the best plan under the mask, which caches its frozen prefix or does not; none if none
  // fits. It is not remembered.
  std::optional<Plan> find_best(const FreezeMask& mask, bool caches);
  // Returns the plan that the run goes on with. Requires: there is one.
  const Plan& held() const { return *held_; }
  // Holds this plan in place of the held one.
  const Plan& hold(const Plan& plan);
  // Asks the planner ahead, in a thread of its own, what go_on(mask) and then find_uncached() will
  // ask, if they will. An error is dropped. Waits for nothing: does not begin while another mask is
  // being worked out, or before a plan is held; it may be called again then.
  void expect(const FreezeMask& mask);
  // Returns the plan that has been found for the mask; none as long as none is known.
  std::optional<Plan> find_expected(const FreezeMask& mask);
  // True if a plan to go on with fits under the mask, and where another system's planner leads the
  // run: then go_on() throws if none fits. Requires: a plan is held.
  bool has_room(const FreezeMask& mask);
  // Returns what go_on(mask) would bring and cost. A cache that the plan brings is filled in an
  // epoch (of so many steps) for each variant of the samples, or in the steps that are left.
  PredictedTransition predict(const FreezeMask& mask, Step epoch, Step left);
  // Returns the predicted times of the parts of a transition from `before` to the held plan, by the
  // overhead. The planner is asked as often as it has been since take_time(); the bytes are the
  // profile's.
  TransitionTimes predict_times(const Plan& before) const;

  // Returns the time spent since the last call on asking the planner, or on waiting for what was
  // asked ahead.
  Duration take_time() {
    searches_ = 0;
    return std::exchange(time_, Duration{0});
  }

  // Returns all the time that has ever been spent so.
  Duration asking() const { return asking_; }

  // Times the search for the held plan and returns the median of three runs. Returns `most`,
  // without a search, if that is 0 or over 50 ms. `caches` are filled before each run.
  Duration time_search(Duration most, ProcessorCaches& caches);

  // Returns what asking, copying and starting are predicted to take: the times of the first
  // transition, so that a run's predictions are the same all along. Checkpoints keep them.
  const std::optional<TransitionOverhead>& overhead() const { return overhead_; }
  void set_overhead(const TransitionOverhead& overhead);

  // Returns what the plans cost from the last begin of a course on; none: the run follows none.
  std::optional<PlanRegret> find_regret() const;
  // The course that the run follows. A checkpoint keeps where it has begun; a run that goes on
  // there on the same devices, without a given plan, follows the same course.
  const PlanCourse& course() const { return course_; }
  void restore_course(const PlanCourse::Origin& origin, const std::vector<TracedMask>& masks) {
    restored_ = Restored{origin, masks};
  }
  // Has go_on() begin as if this plan had been held until then, if its devices are there and it
  // fits: under the plan's own mask the run goes on with it, in place of a given plan, and under
  // another one with what follows on it. Requires: no plan is held.
  void restore_held(Plan plan) { restored_held_ = std::move(plan); }

 private:
  struct Expected;
  bool take_restored(const FreezeMask& mask);
  void check_masks(Step step);
  void take_expected();
  void forget_answers();
  Plan answer(const FreezeMask& mask);
  std::optional<Plan> follow(const FreezeMask& mask, Step step);
  void begin_course(const FreezeMask& mask, Step step);
  void add_time(Duration time);
  Plan as_held(const PlanCourse::Hold& hold) const;

  const TrainOptions& options_;
  PlanFinder finder_;
  // Of the whole run; none: they are not known, or no other system's planner leads the run.
  std::optional<std::vector<TracedMask>> masks_;
  PlanCourse course_;
  struct Restored {
    PlanCourse::Origin origin;
    std::vector<TracedMask> masks;  // so far
  };
  std::optional<Restored> restored_;   // until a course begins
  std::optional<Plan> restored_held_;  // until a plan is held
  bool is_ready_ = false;  // a plan for the devices that are there now has been taken over
  std::optional<Plan> held_;
  std::optional<HeldCache> planned_cache_;
  // Answers of the planner, and predictions from the held plan, all by the mask's bits.
  std::map<std::string, Plan> plans_;
  std::map<std::string, std::optional<Plan>> uncached_;
  struct Predicted {
    PredictedTransition full;  // as if its cache were full
    Duration fill{0};          // extra time of a step that fills the cache
  };
  std::map<std::string, Predicted> predicted_;
  std::set<std::string> without_room_;  // masks that no plan fits
  Duration time_{0};
  Duration asking_{0};  // all that has ever been in time_, and asking when the overhead was found
  int searches_ = 0;    // searches in `time_`
  std::optional<TransitionOverhead> overhead_;
  std::shared_ptr<Expected> expected_;  // in work or to be taken: finder_ is the thread's
  BackgroundJobs jobs_{true};           // last: it uses the members above
};

}  // namespace frazil
