#pragma once
// The arms of an ablation: the ways to train one model on one cluster that are compared, one row
// each. All of them take the same samples in the same order from the same start weights.
// "Freezes" means: by the policy of the run configuration. An arm that may change its plan asks the
// planner anew as layers freeze, within what its row allows:
// clang-format off
//   changes plans   stages and cuts may become others (AutoPipe)
//   adds replicas   pipelines may become more than the first plan has (AutoDP)
//   caches          the frozen prefix is computed once and then read (AutoCache)
// clang-format on

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace frazil {

enum class Arm : std::uint8_t {
  kOneDevice,
  kDataParallel,
  kUnfrozen,
  kFreezeOnly,
  kAutoPipe,
  kAutoPipeCache,
  kAutoPipeReplicas,
  kAll,
  kPipeTransformer,
  kShorter,
  kFromTop,
  kRandomMasks
};

struct ArmFacts {
  // Where the masks of an arm come from. kReversed and kDrawn freeze as many blocks at each step as
  // the policy did in arm kAll under the same seed: from the top down, and any.
  enum class Masks : std::uint8_t { kNone, kPolicy, kReversed, kDrawn };
  // Which plan an arm begins with: the best of all, of those on one device, of those whose
  // pipelines have one stage each, or the one that PipeTransformer's planner gives.
  enum class First : std::uint8_t { kBest, kOneDevice, kReplicas, kPipeTransformer };

  Arm arm = Arm::kUnfrozen;
  std::string_view name;      // in files and flags
  std::string_view one_line;  // for people
  Masks masks = Masks::kNone;
  First first = First::kBest;
  bool changes_plans = false;
  bool adds_replicas = false;
  bool caches = false;
  // True if it shows what another arm would show without freezing's own merit.
  bool is_control = false;
};

// Returns all rows, in the order in which tables show them.
std::span<const ArmFacts> all_arms();
const ArmFacts& facts_of(Arm arm);
// Returns none for a word that names no arm.
std::optional<Arm> find_arm(std::string_view name);

}  // namespace frazil
