#include "analysis/ablation/arm.h"

#include <algorithm>
#include <array>

#include "profiles/error.h"

namespace frazil {
namespace {

using First = ArmFacts::First;
using Masks = ArmFacts::Masks;

constexpr auto kArms = std::to_array<ArmFacts>({
    {.arm = Arm::kOneDevice,
     .name = "one-device",
     .one_line = "one device, nothing freezes",
     .first = First::kOneDevice},
    {.arm = Arm::kDataParallel,
     .name = "data-parallel",
     .one_line = "the whole model on every device, nothing freezes",
     .first = First::kReplicas},
    {.arm = Arm::kUnfrozen, .name = "unfrozen", .one_line = "the best plan, nothing freezes"},
    {.arm = Arm::kFreezeOnly,
     .name = "freeze",
     .one_line = "the same plan throughout, layers freeze",
     .masks = Masks::kPolicy},
    {.arm = Arm::kAutoPipe,
     .name = "pipe",
     .one_line = "layers freeze, stages change",
     .masks = Masks::kPolicy,
     .changes_plans = true},
    {.arm = Arm::kAutoPipeCache,
     .name = "pipe-cache",
     .one_line = "layers freeze, stages change, frozen features are kept",
     .masks = Masks::kPolicy,
     .changes_plans = true,
     .caches = true},
    {.arm = Arm::kAutoPipeReplicas,
     .name = "pipe-replicas",
     .one_line = "layers freeze, stages and replicas change",
     .masks = Masks::kPolicy,
     .changes_plans = true,
     .adds_replicas = true},
    {.arm = Arm::kAll,
     .name = "all",
     .one_line = "layers freeze, stages and replicas change, frozen features are kept",
     .masks = Masks::kPolicy,
     .changes_plans = true,
     .adds_replicas = true,
     .caches = true},
    {.arm = Arm::kPipeTransformer,
     .name = "pipetransformer",
     .one_line = "all, with PipeTransformer's own planner",
     .masks = Masks::kPolicy,
     .first = First::kPipeTransformer,
     .changes_plans = true,
     .adds_replicas = true,
     .caches = true},
    {.arm = Arm::kShorter,
     .name = "shorter",
     .one_line = "the best plan, nothing freezes, so few steps that it takes the time of all",
     .is_control = true},
    {.arm = Arm::kFromTop,
     .name = "from-top",
     .one_line = "as all, but as many blocks freeze from the top down",
     .masks = Masks::kReversed,
     .changes_plans = true,
     .adds_replicas = true,
     .caches = true,
     .is_control = true},
    {.arm = Arm::kRandomMasks,
     .name = "random-masks",
     .one_line = "as all, but any blocks freeze, as many",
     .masks = Masks::kDrawn,
     .changes_plans = true,
     .adds_replicas = true,
     .caches = true,
     .is_control = true},
});

}  // namespace

std::span<const ArmFacts> all_arms() { return kArms; }

const ArmFacts& facts_of(Arm arm) {
  const auto* row = std::find_if(kArms.begin(), kArms.end(),
                                 [arm](const ArmFacts& facts) { return facts.arm == arm; });
  ENSURE(row != kArms.end(), "an arm has a row");
  return *row;
}

std::optional<Arm> find_arm(std::string_view name) {
  for (const ArmFacts& facts : kArms) {
    if (facts.name == name) return facts.arm;
  }
  return std::nullopt;
}

}  // namespace frazil
