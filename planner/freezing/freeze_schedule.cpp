#include "planner/freezing/freeze_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "profiles/error.h"

namespace frazil {
namespace {

// Counts the intervals that have begun; 0 before the start.
template <class Paced>
Step intervals_begun(const Paced& policy, Step step) {
  ENSURE(policy.unit == PaceUnit::kSteps, "a pace in steps");
  ENSURE(policy.interval >= 1, "a freeze interval is at least one step");
  return step < policy.start ? 0 : 1 + (step - policy.start) / policy.interval;
}

int as_count(Step steps) {
  return static_cast<int>(std::min<Step>(steps, std::numeric_limits<int>::max()));
}

// Mixes a key into 64 even bits (the finaliser of SplitMix64: Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15U;
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9U;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebU;
  return key ^ (key >> 31U);
}

// Returns the `draw`-th random number below `bound` for a key, each equally likely: words of the
// last, incomplete round of `bound` numbers are thrown away.
std::uint64_t draw_below(std::uint64_t key, std::uint64_t draw, std::uint64_t bound) {
  const std::uint64_t rounds = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t word = mix(key + mix(draw));
  while (word >= rounds) word = mix(word);
  return word % bound;
}

Step traced_step(const TraceFreeze& policy, Step step, Step steps) {
  if (!policy.rescale) return step;
  __extension__ using Wide = __int128;
  return static_cast<Step>(static_cast<Wide>(step) * policy.steps / steps);
}

struct Scheduler {
  Step step;
  const RunShape& run;

  int layers() const { return run.layers(); }

  Wanted operator()(const NoFreeze&) const {
    return {FreezeMask::all_active(run.blocks), "Nothing ever freezes."};
  }

  Wanted operator()(const StaticFreeze& policy) const {
    if (policy.mask) {
      ENSURE(policy.mask->blocks() == run.blocks, "a mask of the model's blocks");
      return {*policy.mask, fmt::format("The mask is {} throughout.", policy.mask->text())};
    }
    return {freeze_layers(run.blocks, policy.frozen_layers),
            fmt::format("{} of {} layers are frozen throughout.", policy.frozen_layers,
                        std::max(run.blocks - 2, 0))};
  }

  Wanted operator()(const AlphaFreeze& policy) const {
    const Step begun = intervals_begun(policy, step);
    const int frozen = alpha_frozen_layers(layers(), policy.alpha, as_count(begun));
    return {freeze_layers(run.blocks, frozen),
            fmt::format("After {} interval{} alpha {:.3g} freezes {} of {} layers.", begun,
                        begun == 1 ? "" : "s", policy.alpha, frozen, layers())};
  }

  Wanted operator()(const LinearFreeze& policy) const {
    ENSURE(policy.unit == PaceUnit::kSteps && policy.interval >= 1, "an interval in steps");
    const Step at = step - step % policy.interval;
    const double progress = static_cast<double>(at) / static_cast<double>(run.steps);
    const int frozen = linear_frozen_blocks(policy, progress, run.counted());
    return {FreezeMask::frozen_prefix(run.blocks, BlockId{frozen - 1}),
            fmt::format("At step {} of {} the line freezes {} of {} blocks.", at, run.steps, frozen,
                        run.counted())};
  }

  std::nullopt_t operator()(const PaperFreeze&) const { return std::nullopt; }
  std::nullopt_t operator()(const AutoFreeze&) const { return std::nullopt; }
  std::nullopt_t operator()(const PlasticityFreeze&) const { return std::nullopt; }

  Wanted operator()(const FreezeOut& policy) const {
    FreezeMask mask = FreezeMask::all_active(run.blocks);
    for (int block = 0; block + 1 < run.counted(); ++block) {
      const double end = freezeout_end(policy, BlockId{block}, run.counted());
      const bool over = static_cast<double>(step) > end * static_cast<double>(run.steps);
      mask.set_active(BlockId{block}, !over);
    }
    const int frozen = mask.frozen_count();
    return {std::move(mask), fmt::format("At step {} of {} the rates of {} blocks have come to 0.",
                                         step, run.steps, frozen)};
  }

  Wanted operator()(const GradualUnfreeze& policy) const {
    ENSURE(policy.blocks_per_interval >= 1, "at least one block thaws");
    // The first interval trains the head alone.
    const Step over = std::max<Step>(intervals_begun(policy, step) - 1, 0);
    const int blocks = run.counted();
    const Step thawed = over >= blocks ? blocks : over * policy.blocks_per_interval;
    const int active = 1 + static_cast<int>(std::min<Step>(thawed, blocks - 1));
    return {FreezeMask::frozen_prefix(run.blocks, BlockId{blocks - 1 - active}),
            fmt::format("After {} intervals the last {} blocks train.", over, active)};
  }

  Wanted operator()(const RandomFreeze& policy) const {
    const Step begun = intervals_begun(policy, step);
    if (begun == 0) return {FreezeMask::all_active(run.blocks), "The first draw is still to come."};
    ENSURE(policy.active_layers >= 0, "a number of layers");
    const int active = std::min(policy.active_layers, layers());
    std::vector<int> order(static_cast<std::size_t>(layers()));
    std::iota(order.begin(), order.end(), 1);
    const std::uint64_t key = mix(run.seed) ^ mix(static_cast<std::uint64_t>(begun));
    for (std::size_t i = 0; i < static_cast<std::size_t>(active); ++i) {
      std::swap(order[i], order[i + draw_below(key, i, order.size() - i)]);
    }
    FreezeMask mask = FreezeMask::all_active(run.blocks);
    if (run.counted() > 1) mask.set_active(BlockId{0}, policy.embedding_active);
    for (std::size_t i = static_cast<std::size_t>(active); i < order.size(); ++i) {
      mask.set_active(BlockId{order[i]}, false);
    }
    return {std::move(mask), fmt::format("Draw {} of seed {} lets {} of {} layers train.", begun,
                                         run.seed, active, layers())};
  }

  Wanted operator()(const TraceFreeze& policy) const {
    const Step at = traced_step(policy, step, run.steps);
    const auto later =
        std::upper_bound(policy.masks.begin(), policy.masks.end(), at,
                         [](Step value, const TracedMask& traced) { return value < traced.step; });
    if (later == policy.masks.begin()) {
      return {FreezeMask::all_active(run.blocks),
              fmt::format("The trace has no mask before its step {}.", at)};
    }
    const TracedMask& traced = *std::prev(later);
    ENSURE(traced.mask.blocks() == run.blocks, "a trace of the model's blocks");
    return {traced.mask,
            fmt::format("The trace has had this mask since its step {}.", traced.step)};
  }
};

}  // namespace

std::optional<Wanted> want_by_step(const FreezePolicy& policy, Step step, const RunShape& run) {
  ENSURE(run.blocks >= 1 && run.steps >= 1 && step >= 0, "a step of a run");
  return std::visit(
      [&](const auto& chosen) -> std::optional<Wanted> {
        return Scheduler{step, run}(chosen);
      },
      policy);
}

int linear_frozen_blocks(const LinearFreeze& policy, double progress, int blocks) {
  if (progress <= policy.freeze_start) return 0;
  const double share =
      policy.freeze_level * (progress - policy.freeze_start) / (1 - policy.freeze_start);
  const int below_head = blocks - 1;
  return std::clamp(static_cast<int>(std::floor(share * below_head + kRoundingNoise)), 0,
                    below_head);
}

double freezeout_end(const FreezeOut& policy, BlockId block, int blocks) {
  ENSURE(blocks >= 1 && block.value >= 0 && block.value < blocks, "a block of the model");
  if (block.value + 1 == blocks) return 1;
  const double depth = static_cast<double>(block.value) / (blocks - 1);
  const double share = policy.t0 + (1 - policy.t0) * depth;
  double end = 1;
  for (int i = 0; i < policy.power; ++i) end *= share;
  return end;
}

double freezeout_rate(const FreezeOut& policy, BlockId block, int blocks, double progress) {
  const double end = freezeout_end(policy, block, blocks);
  if (end == 0 || progress > end) return 0;
  const double rate = (1 + std::cos(std::numbers::pi * progress / end)) / 2;
  return policy.scaled ? rate / end : rate;
}

std::optional<FreezeOut> find_rates(const FreezePolicy& policy) {
  if (const auto* freezeout = std::get_if<FreezeOut>(&policy)) return *freezeout;
  if (const auto* trace = std::get_if<TraceFreeze>(&policy)) return trace->rates;
  return std::nullopt;
}

}  // namespace frazil
