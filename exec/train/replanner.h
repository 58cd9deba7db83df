#pragma once
// The planner, asked by a run: which plan it goes on with under a mask, and what going there would
// bring and cost.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "exec/devices/background_jobs.h"
#include "exec/train/train_options.h"
#include "planner/freezing/decorators.h"
#include "planner/search/search.h"
#include "planner/transitions/transition_cost.h"
#include "traces/freeze_trace.h"

namespace frazil {

class Replanner {
 public:
  // Of a run over so many training samples. `options` outlives this.
  Replanner(const TrainOptions& options, std::int64_t samples)
      : options_(options), samples_(samples), search_(options.profile, options.cluster) {}

  // The plan to go on with under the mask, held from now on: to begin with the given one or the
  // planner's best, later, where the run is elastic or the held one has no room under the mask, the
  // best under the mask, else the held one; with its frozen prefix cached where the run has a cache
  // and the plan allows it. Throws InfeasibleError where no plan fits, InputError of a given one
  // with a cached prefix in a run without a cache. Where the batch grows with the pipelines, the
  // plan is the fastest by sample of those that are best for the batch which their pipelines have.
  const Plan& go_on(const FreezeMask& mask);
  // Under the held plan's mask the best that caches nothing; none where none fits.
  std::optional<Plan> find_uncached();
  // Goes on with this one in place of the held.
  const Plan& hold(const Plan& plan);
  // Works out in a thread of its own, as far as that ends well, what go_on(mask) and then
  // find_uncached() will ask the planner, where they will. Waits for nothing: while something else
  // is being worked out, or before there is a plan to go on from, it is not begun, and may be told
  // again.
  void expect(const FreezeMask& mask);
  // The plan that has been found for the mask; none as long as none is known.
  std::optional<Plan> find_expected(const FreezeMask& mask);
  // Whether a plan to go on with fits. Requires: one is held.
  bool has_room(const FreezeMask& mask);
  // What go_on(mask) would bring and cost; a cache it brings is filled in an epoch for each variant
  // of the samples, or in the steps that are left.
  PredictedTransition predict(const FreezeMask& mask, Step epoch, Step left);
  // The parts of going from `before` to the held plan, as the overhead says them: the planner is
  // asked as often as it has been since take_time(), the bytes are the profile's.
  TransitionTimes predict_times(const Plan& before) const;

  // Spent on asking the planner, or on waiting for what it is asked ahead, since the last call.
  Duration take_time() {
    searches_ = 0;
    return std::exchange(time_, Duration{0});
  }

  // What asking again for the held plan takes, the median of three; `most`, without asking, where
  // that is nothing or long.
  Duration time_search(Duration most);

  // What asking, copying and starting are predicted to take: what they took at first, so that a
  // run's predictions are the same all along. Kept by checkpoints.
  const std::optional<TransitionOverhead>& overhead() const { return overhead_; }
  void set_overhead(const TransitionOverhead& overhead) { overhead_ = overhead; }

 private:
  struct Expected;
  void take_expected();
  Plan answer(const FreezeMask& mask);
  SearchOptions question(const FreezeMask& mask, bool caches) const;
  std::optional<Plan> find_grown(const FreezeMask& mask, bool caches);
  // The best plan; where none fits, none, or InfeasibleError with the reason.
  std::optional<Plan> find(const FreezeMask& mask, bool caches, bool explains = false);
  bool fits(const Plan& plan) const;
  Plan cache_prefix(const Plan& plan) const;

  const TrainOptions& options_;
  std::int64_t samples_;
  PlanSearch search_;
  int first_pipelines_ = 0;  // of the first plan; 0: there is none
  std::optional<Plan> held_;
  // By the mask's bits: what the planner has said, and what it has predicted from the held plan.
  std::map<std::string, Plan> plans_;
  std::map<std::string, std::optional<Plan>> uncached_;
  struct Predicted {
    PredictedTransition full;  // as if its cache were full
    Duration fill{0};          // more, of a step that fills it
  };
  std::map<std::string, Predicted> predicted_;
  std::set<std::string> without_room_;  // masks that no plan fits
  Duration time_{0};
  int searches_ = 0;  // in that time
  std::optional<TransitionOverhead> overhead_;
  std::shared_ptr<Expected> expected_;  // in work, or to be taken; then search_ is the thread's
  BackgroundJobs jobs_{true};           // last: it uses the others
};

}  // namespace frazil
