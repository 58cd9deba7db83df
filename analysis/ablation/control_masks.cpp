#include "analysis/ablation/control_masks.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "planner/prediction/answer_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns a number below `end`, each equally likely, from a generator whose numbers the standard
// fixes; the standard's own distributions differ from library to library.
std::size_t draw_below(std::size_t end, std::mt19937_64& random) {
  const std::uint64_t all = std::mt19937_64::max();
  const std::uint64_t fair = all - all % end;
  std::uint64_t drawn = random();
  while (drawn >= fair) drawn = random();
  return static_cast<std::size_t>(drawn % end);
}

// Returns the blocks before the head in the order in which they freeze.
std::vector<BlockId> list_order(BlockId head, ArmFacts::Masks masks, std::uint64_t seed) {
  std::vector<BlockId> order;
  for (BlockId block{0}; block < head; ++block.value) order.push_back(block);
  switch (masks) {
    case ArmFacts::Masks::kNone:
      order.clear();
      break;
    case ArmFacts::Masks::kPolicy:
      break;
    case ArmFacts::Masks::kReversed:
      std::reverse(order.begin(), order.end());
      break;
    case ArmFacts::Masks::kDrawn:
      std::mt19937_64 random(seed);
      for (std::size_t left = order.size(); left > 1; --left) {
        std::swap(order[left - 1], order[draw_below(left, random)]);
      }
      break;
  }
  return order;
}

}  // namespace

FreezeMask make_control_mask(const FreezeMask& policy, BlockId head, ArmFacts::Masks masks,
                             std::uint64_t seed) {
  if (masks == ArmFacts::Masks::kPolicy) return policy;
  FreezeMask mask = FreezeMask::all_active(policy.blocks());
  std::vector<BlockId> order = list_order(head, masks, seed);
  const auto frozen = static_cast<std::size_t>(policy.frozen_count());
  if (order.size() > frozen) order.resize(frozen);
  for (const BlockId block : order) mask.set_active(block, false);
  return mask;
}

std::vector<ForecastSegment> make_control_segments(const std::vector<ForecastSegment>& policy,
                                                   BlockId head, ArmFacts::Masks masks,
                                                   std::uint64_t seed) {
  std::vector<ForecastSegment> segments;
  for (const ForecastSegment& segment : policy) {
    FreezeMask mask = make_control_mask(segment.mask, head, masks, seed);
    if (!segments.empty() && segments.back().mask == mask &&
        segments.back().scales == segment.scales) {
      segments.back().steps += segment.steps;
    } else {
      segments.push_back({segment.step, segment.steps, std::move(mask), segment.scales});
    }
  }
  return segments;
}

std::vector<FreezeEvent> make_control_events(const FreezeTrace& policy, BlockId head,
                                             ArmFacts::Masks masks, std::uint64_t seed,
                                             std::string_view by) {
  std::vector<FreezeEvent> events;
  for (const FreezeEvent& event : policy.events) {
    const auto* const decided = std::get_if<MaskEvent>(&event.what);
    if (decided == nullptr) continue;
    const int frozen = decided->mask.frozen_count();
    events.push_back(
        {event.step, MaskEvent{.mask = make_control_mask(decided->mask, head, masks, seed),
                               .by = std::string(by),
                               .reason = "the policy froze " + count_of(frozen, "block")}});
  }
  return events;
}

}  // namespace frazil
