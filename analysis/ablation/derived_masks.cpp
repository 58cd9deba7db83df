#include "analysis/ablation/derived_masks.h"

#include <numeric>
#include <vector>

#include "analysis/ablation/pair_order.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::uint64_t kMaskKey = 0x6d61736b;  // no other draw of a seed has it

// Returns the blocks below the head in the order in which they freeze.
std::vector<int> order_blocks(int blocks, ArmFacts::Masks masks, std::int64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(blocks - 1));
  std::iota(order.rbegin(), order.rend(), 0);
  if (masks == ArmFacts::Masks::kDrawn) shuffle_by(order, seed, kMaskKey);
  return order;
}

}  // namespace

FreezeTrace derive_masks(const FreezeTrace& of_all, ArmFacts::Masks masks, std::int64_t seed) {
  ENSURE(masks == ArmFacts::Masks::kReversed || masks == ArmFacts::Masks::kDrawn,
         "masks that are derived");
  const auto blocks = static_cast<int>(of_all.blocks.size());
  const std::vector<int> order = order_blocks(blocks, masks, seed);
  FreezeTrace derived;
  derived.model_hash = of_all.model_hash;
  derived.blocks = of_all.blocks;
  derived.steps = of_all.steps;
  derived.batch_size = of_all.batch_size;
  for (const FreezeEvent& event : of_all.events) {
    const auto* const mask = std::get_if<MaskEvent>(&event.what);
    if (mask == nullptr) continue;
    const auto frozen = static_cast<std::size_t>(mask->mask.frozen_count());
    FreezeMask other = FreezeMask::all_active(blocks);
    for (std::size_t i = 0; i < frozen; ++i) other.set_active(BlockId{order.at(i)}, false);
    derived.events.push_back({event.step, MaskEvent{other}});
  }
  return derived;
}

}  // namespace frazil
