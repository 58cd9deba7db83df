#pragma once
// The works of one device of a V (wave placement with two chunks per device,
// planner/plan/placement.h) for one micro-batch, in the order in which the micro-batch makes them.
// The first four are the legs of its way: down the V and up again with F, then down and up with I.
// Device d has chunk 0 as stage d and chunk 1 as stage 2p-1-d.

#include <array>
#include <cstddef>
#include <cstdint>

#include "traces/action.h"

namespace frazil {

// kNone is no work, for lists with gaps.
enum class WavePart : std::uint8_t { kF0, kF1, kI1, kI0, kW1, kW0, kNone };
inline constexpr std::size_t kWaveParts = 6;
inline constexpr int kWaveLegs = 4;

constexpr std::size_t index_of(WavePart part) { return static_cast<std::size_t>(part); }
constexpr bool is_leg(WavePart part) { return static_cast<int>(part) < kWaveLegs; }
constexpr bool is_weight(WavePart part) { return part == WavePart::kW1 || part == WavePart::kW0; }

// Both require a part other than kNone.
constexpr ActionKind kind_of(WavePart part) {
  constexpr std::array kKinds{ActionKind::kForward,        ActionKind::kForward,
                              ActionKind::kBackwardInput,  ActionKind::kBackwardInput,
                              ActionKind::kBackwardWeight, ActionKind::kBackwardWeight};
  return kKinds[index_of(part)];
}
constexpr int stage_of(WavePart part, int device, int devices) {
  const bool chunk0 = part == WavePart::kF0 || part == WavePart::kI0 || part == WavePart::kW0;
  return chunk0 ? device : 2 * devices - 1 - device;
}

}  // namespace frazil
