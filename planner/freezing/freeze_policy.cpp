#include "planner/freezing/freeze_policy.h"

#include <algorithm>
#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr Step kLongestEpoch = Step{1} << 32;
constexpr Step kLargestPace = 1'000'000'000;

struct PolicyName {
  std::string_view operator()(const NoFreeze&) const { return "none"; }
  std::string_view operator()(const StaticFreeze&) const { return "static"; }
  std::string_view operator()(const AlphaFreeze&) const { return "alpha"; }
  std::string_view operator()(const PaperFreeze&) const { return "pt-paper"; }
  std::string_view operator()(const AutoFreeze&) const { return "autofreeze"; }
  std::string_view operator()(const LinearFreeze&) const { return "linear"; }
  std::string_view operator()(const FreezeOut&) const { return "freezeout"; }
  std::string_view operator()(const PlasticityFreeze&) const { return "plasticity"; }
  std::string_view operator()(const GradualUnfreeze&) const { return "gradual-unfreeze"; }
  std::string_view operator()(const RandomFreeze&) const { return "random"; }
  std::string_view operator()(const TraceFreeze&) const { return "trace"; }
};

}  // namespace

std::string_view name_of(const FreezePolicy& policy) { return std::visit(PolicyName{}, policy); }

FreezePolicy in_steps(FreezePolicy policy, Step steps_per_epoch) {
  ENSURE(steps_per_epoch >= 1 && steps_per_epoch <= kLongestEpoch, "an epoch of at least one step");
  std::visit(
      [&](auto& paced) {
        if constexpr (requires { paced.unit; }) {
          if (paced.unit == PaceUnit::kSteps) return;
          ENSURE(paced.interval <= kLargestPace, "epochs that can be counted in steps");
          paced.interval *= steps_per_epoch;
          if constexpr (requires { paced.start; }) {
            ENSURE(paced.start <= kLargestPace, "epochs that can be counted in steps");
            paced.start *= steps_per_epoch;
          }
          paced.unit = PaceUnit::kSteps;
        }
      },
      policy);
  return policy;
}

int alpha_frozen_layers(int layers, double alpha, int interval_index) {
  ENSURE(layers >= 0 && interval_index >= 0, "layers and intervals are counts");
  ENSURE(alpha > 0 && alpha < 1, "alpha lies between 0 and 1");
  const double bound = layers * (1 - std::pow(1 - alpha, interval_index));
  return std::clamp(static_cast<int>(std::ceil(bound - kRoundingNoise)), 0, layers);
}

FreezeMask freeze_layers(int blocks, int layers) {
  ENSURE(layers >= 0 && (layers == 0 || layers <= blocks - 2), "no more frozen than there are");
  if (layers == 0) return FreezeMask::all_active(blocks);
  return FreezeMask::frozen_prefix(blocks, BlockId{layers});
}

}  // namespace frazil
