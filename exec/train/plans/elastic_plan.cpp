#include "exec/train/plans/elastic_plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "exec/control/control_message.h"
#include "exec/devices/steady_time.h"
#include "exec/measuring/processor_caches.h"
#include "exec/train/plans/memory_probe.h"
#include "planner/what_if/plan_changes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Duration median(std::array<Duration, 3> times) {
  std::sort(times.begin(), times.end());
  return times[1];
}

}  // namespace

ElasticPlan::ElasticPlan(const TrainOptions& options, Run& run, CacheControl& cache,
                         Replanner& replanner)
    : options_(options),
      run_(run),
      cache_(cache),
      replanner_(replanner),
      preparation_(replanner, run),
      ahead_(replanner) {
  replanner_.set_devices(run_.devices_there());
}

// Asks for the plan for a mask. It caches only where that pays, or as a course says.
const Plan& ElasticPlan::choose(const FreezeMask& mask, Step step) {
  const Plan& plan = replanner_.go_on(mask, step);
  if (!plan.cache_frozen_prefix) return plan;
  if (const auto& planned = replanner_.planned_cache()) {
    cache_.follow(plan, *planned, step);
    return plan;
  }
  const std::optional<Plan> uncached = replanner_.find_uncached();
  return cache_.admit(plan, uncached, step) ? plan : replanner_.hold(*uncached);
}

ElasticPlan::Transitioned ElasticPlan::transition_to(const FreezeMask& mask, Step step) {
  const SteadyTime start = std::chrono::steady_clock::now();
  preparation_.end();
  const Duration waited = since(start);
  const Plan& plan = choose(mask, step);
  if (options_.durable && plan.versions != WeightVersions::kSync) {
    throw InfeasibleError("a plan with weight versions cannot be checkpointed");
  }
  if (options_.processes_may_come && plan.versions != WeightVersions::kSync) {
    throw InfeasibleError(
        "a plan with weight versions ends with any process that is lost, so no others can come");
  }
  TransitionEvent transition;
  if (plan_) transition.predicted = replanner_.predict_times(*plan_);
  transition.plan_time = replanner_.take_time();
  const TransitionReport report =
      run_.transition_to(with_lists(plan, {options_.profile, options_.cluster}));
  transition.move_time = waited + report.move_time;
  transition.start_time = report.start_time();
  transition.moved = report.move.moved;
  // The step is predicted after the transition, which says more of a plan that cannot be executed.
  const SteadyTime predicting = std::chrono::steady_clock::now();
  const bool is_given = options_.plan && (!plan_ || !options_.elastic);
  BegunPhase begun = predict_phase(step, plan, options_, is_given ? options_.plan_file : "");
  transition.plan_time += since(predicting);
  plan_ = plan;
  return {std::move(begun), transition};
}

ElasticPlan::Recovered ElasticPlan::recover(const FreezeMask& mask, Step step) {
  preparation_.end();
  return settle(mask, step, run_.regroup());
}

ElasticPlan::Recovered ElasticPlan::take_in(const FreezeMask& mask, Step step) {
  preparation_.end();
  return settle(mask, step, run_.take_in());
}

ElasticPlan::Recovered ElasticPlan::settle(const FreezeMask& mask, Step step,
                                           std::vector<std::string> lost) {
  Recovered recovered{.lost = std::move(lost), .transitioned = {}, .plan_ready = false};
  for (;;) {
    const std::vector<DeviceId> devices = run_.devices_there();
    replanner_.set_devices(devices);
    const std::optional<FoundPlans> found = ahead_.find(mask, devices);
    recovered.plan_ready = found.has_value();
    if (found) replanner_.take(mask, *found);
    if (!run_.lost_layers().empty()) {
      const std::string sentence =
          (recovered.lost.empty() ? "a process is lost" : recovered.lost.back()) +
          ", and nobody else holds " + run_.model().layers[run_.lost_layers().front().index()].name;
      const auto left = static_cast<int>(run_.processes().size());
      const bool goes_on = options_.members_join_again && options_.durable;
      run_.end(goes_on ? kJoinAgain : static_cast<int>(ExitCode::kPeerLost), sentence);
      throw LayersLost(sentence, left);
    }
    try {
      recovered.transitioned = transition_to(mask, step);
      return recovered;
    } catch (const StepUndone&) {
      // Another one was lost meanwhile.
    }
    for (std::string& sentence : run_.regroup()) recovered.lost.push_back(std::move(sentence));
  }
}

void ElasticPlan::go_on() {
  preparation_.go_on();
  std::vector<std::vector<DeviceId>> devices = run_.devices_after_losses();
  if (devices.empty() && run_.devices_expected() == run_.devices_there()) return;
  devices.push_back(run_.devices_expected());
  ahead_.expect(run_.plan().mask, std::move(devices));
}

void ElasticPlan::find_overhead(const TransitionEvent& first) {
  if (replanner_.overhead()) return;
  TransitionOverhead overhead{.plan = first.plan_time, .start = first.start_time};
  if (options_.elastic && options_.processors.kind == DeviceKind::kCpu) {
    ProcessorCaches caches;
    // The first search and the first start take longer than any later one.
    overhead.plan = std::min(overhead.plan, replanner_.time_search(first.plan_time, caches));
    std::array<Duration, 3> moves;
    std::array<Duration, 3> starts;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      caches.fill();
      const TransitionReport again = run_.transition_to(Plan(run_.plan()));
      moves[i] = again.move_time;
      starts[i] = again.program_time + again.executor_time;
    }
    overhead.move = median(moves);
    overhead.start = median(starts);
    overhead.memory = probe_memory(run_, caches);
  }
  replanner_.set_overhead(overhead);
}

}  // namespace frazil
