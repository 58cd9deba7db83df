#include "planner/reproduce/sailor/sailor_prediction.h"

#include <algorithm>
#include <utility>

#include "planner/actions/validate_plan.h"
#include "planner/interop/sailor_plan.h"
#include "planner/prediction/contended_step.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/reproduce/affine_profile.h"

namespace frazil {
namespace {

constexpr int kStandingEnds = 2;

Bytes find_peak(const std::vector<MemoryPeak>& memory) {
  Bytes peak;
  for (const MemoryPeak& device : memory) peak = std::max(peak, device.total);
  return peak;
}

}  // namespace

SailorPredictor::SailorPredictor(const SailorFolder& folder)
    : links_(folder.links), plans_(folder.plans) {
  for (const SailorPlan& plan : plans_) {
    if (profiles_.count(plan.degree) > 0) continue;
    profiles_.emplace(plan.degree, make_sailor_profile(folder.config, folder.times, folder.sizes,
                                                       plan.degree, plan.name));
  }
  for (const SailorPlan& plan : plans_) {
    const ModelProfile& profile = profiles_.at(plan.degree);
    Step step{&plan, &profile, make_sailor_plan(plan, profile), {}};
    const Cluster cluster = make_sailor_cluster(plan, profile, links_);
    validate(step.plan, {profile, cluster}, plan.name);
    SimulatedStep simulated = simulate_step(step.plan, {profile, cluster});
    peak_memory_.push_back(find_peak(simulated.simulation.memory));
    step.lowered = std::move(simulated.lowered);
    steps_.push_back(std::move(step));
  }
}

std::vector<Duration> SailorPredictor::predict(const SailorConstants& constants) const {
  std::map<int, ModelProfile> scaled;
  for (const auto& [degree, profile] : profiles_) {
    scaled.emplace(degree, make_affine_profile(profile, {constants.fixed, constants.per_sample}));
  }
  const SailorLinkScale scale{.reduction = constants.reduction,
                              .message_overhead = constants.message_overhead,
                              .standing_ends = kStandingEnds};
  std::vector<Duration> predicted;
  for (const Step& step : steps_) {
    const Cluster cluster = make_sailor_cluster(*step.source, *step.profile, links_, scale);
    const ModelProfile& profile = scaled.at(step.source->degree);
    predicted.push_back(
        simulate_contended(step.lowered, {profile, cluster}, {.block_sends = true}).makespan);
  }
  return predicted;
}

}  // namespace frazil
