#pragma once
// PlanFinder asks the planner which plan is best for a run under a mask, on the devices that are
// there, and looks whether a given plan can go on. It remembers no answer. Where another system's
// planner leads the run (planner/named/run_plan.h), that planner's one plan is the best.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/train/plans/present_devices.h"
#include "exec/train/train_options.h"
#include "planner/search/search.h"

namespace frazil {

// The answers for a mask.
struct FoundPlans {
  Plan plan;
  std::optional<Plan> uncached;  // where the plan caches its prefix; none: none fits
};

class PlanFinder {
 public:
  // Serves a run over so many training samples. `devices`: those of the cluster that are there,
  // ascending; plans are found on these. `options` must outlive this object.
  PlanFinder(const TrainOptions& options, std::int64_t samples, std::vector<DeviceId> devices);
  PlanFinder(const PlanFinder&) = delete;
  PlanFinder& operator=(const PlanFinder&) = delete;

  // Says that other devices are there.
  void set_devices(std::vector<DeviceId> devices);
  const std::vector<DeviceId>& devices() const { return devices_; }
  const Cluster& present() const { return present_; }  // of these devices
  // Returns what the planner is asked for the run under a mask.
  SearchOptions question(const FreezeMask& mask, bool caches) const;
  // Tells the plan that the run goes on with, of which the first counts: from then on, if the batch
  // grows with the pipelines, a plan is the fastest by sample of those that are best for the batch
  // that their pipelines have.
  void note_held(const Plan& plan);

  // Returns the best plan; none if none fits. Only one thread at a time may ask.
  std::optional<Plan> find(const FreezeMask& mask, bool caches);
  // Returns the best plan, which caches where the run does. Throws InfeasibleError, with the
  // reason, if none fits. Only one thread at a time may ask.
  Plan find_or_explain(const FreezeMask& mask);
  // Returns the answers with and without a cache; none if no plan fits. Only one thread at a time
  // may ask.
  std::optional<FoundPlans> find_both(const FreezeMask& mask);
  // Returns the best plans, fastest first, from which a course chooses; empty if none fits. They
  // are on the devices of present(). Only one thread at a time may ask.
  std::vector<Plan> find_candidates(const FreezeMask& mask);
  // Returns what find_both(mask) would find with these devices; none if the batch grows with the
  // pipelines. Any thread.
  std::optional<FoundPlans> find_both_on(const std::vector<DeviceId>& devices,
                                         const FreezeMask& mask) const;

  // True if the plan fits into the memory of the cluster's devices.
  bool fits(const Plan& plan) const;
  // True if all devices that the plan uses are there.
  bool is_there(const Plan& plan) const;
  // Returns the plan with its frozen prefix cached if the run has a cache and the plan allows it,
  // else without a cached prefix.
  Plan cache_prefix(const Plan& plan) const;

 private:
  Plan make_named(const FreezeMask& mask, bool caches) const;
  Ranking rank(const FreezeMask& mask, bool caches);
  std::optional<Plan> find_grown(const FreezeMask& mask, bool caches);

  const TrainOptions& options_;
  std::int64_t samples_;
  std::vector<DeviceId> devices_;       // that are there
  Cluster present_;                     // of these
  std::unique_ptr<PlanSearch> search_;  // on these; never null
  int first_pipelines_ = 0;             // 0: there is no plan yet
};

}  // namespace frazil
