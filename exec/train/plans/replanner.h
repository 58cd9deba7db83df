#pragma once
// Replanner is the planner as a run asks it: which plan the run goes on with under a mask, and what
// the transition to that plan would bring and cost.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "exec/devices/background_jobs.h"
#include "exec/measuring/processor_caches.h"
#include "exec/train/plans/plan_finder.h"
#include "exec/train/train_options.h"
#include "planner/freezing/decorators.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/processes.h"
#include "traces/freeze_trace.h"

namespace frazil {

class Replanner {
 public:
  // Serves a run over so many training samples. `options` must outlive this object.
  Replanner(const TrainOptions& options, std::int64_t samples)
      : options_(options), finder_(options, samples, all_devices(options.cluster)) {}

  // Returns the plan to go on with under the mask, and holds it from now on. The first plan is the
  // given one or the planner's best. A later one is the best under the mask if the run is elastic
  // or the held plan has no room under the mask, else the held plan. Its frozen prefix is cached
  // where the run has a cache and the plan allows it. Throws InfeasibleError if no plan fits,
  // InputError for a given plan with a cached prefix in a run without a cache. If the batch grows
  // with the pipelines, the plan is the fastest by sample of those that are best for the batch that
  // their pipelines have.
  const Plan& go_on(const FreezeMask& mask);
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
  // Takes over what find_ahead() found for the devices that are there.
  void take(const FreezeMask& mask, const FoundPlans& found);
  // Holds this plan in place of the held one.
  const Plan& hold(const Plan& plan);
  // Asks the planner ahead, in a thread of its own, what go_on(mask) and then find_uncached() will
  // ask, if they will. An error is dropped. Waits for nothing: does not begin while another mask is
  // being worked out, or before a plan is held; it may be called again then.
  void expect(const FreezeMask& mask);
  // Returns the plan that has been found for the mask; none as long as none is known.
  std::optional<Plan> find_expected(const FreezeMask& mask);
  // True if a plan to go on with fits under the mask. Requires: a plan is held.
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

  // Times the search for the held plan and returns the median of three runs. Returns `most`,
  // without a search, if that is 0 or over 50 ms. `caches` are filled before each run.
  Duration time_search(Duration most, ProcessorCaches& caches);

  // Returns what asking, copying and starting are predicted to take: the times of the first
  // transition, so that a run's predictions are the same all along. Checkpoints keep them.
  const std::optional<TransitionOverhead>& overhead() const { return overhead_; }
  void set_overhead(const TransitionOverhead& overhead) { overhead_ = overhead; }

 private:
  struct Expected;
  void take_expected();
  Plan answer(const FreezeMask& mask);

  const TrainOptions& options_;
  PlanFinder finder_;
  std::optional<Plan> held_;
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
  int searches_ = 0;  // searches in `time_`
  std::optional<TransitionOverhead> overhead_;
  std::shared_ptr<Expected> expected_;  // in work or to be taken: finder_ is the thread's
  BackgroundJobs jobs_{true};           // last: it uses the members above
};

}  // namespace frazil
