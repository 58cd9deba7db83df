#include "planner/search/variant_memory.h"

#include <algorithm>

#include "planner/linear_orders.h"
#include "planner/schedule_menu.h"

namespace frazil {

Placement placement_of(const ShapeVariant& variant) {
  return family_of(variant.schedule).placement;
}

ScheduleKind example_of(Placement placement) {
  switch (placement) {
    case Placement::kLinear:
      return ScheduleKind::kGpipe;
    case Placement::kLooped:
      return ScheduleKind::kInterleaved;
    case Placement::kWave:
      return ScheduleKind::kZbV;
    case Placement::kBothWays:
      return ScheduleKind::kDualPipe;
    case Placement::kWaveBothWays:
      return ScheduleKind::kBitPipe;
  }
  return ScheduleKind::kGpipe;
}

ScheduleKind alike(const ShapeVariant& variant) {
  const Placement placement = placement_of(variant);
  return placement == Placement::kLinear ? ScheduleKind::kGpipe : example_of(placement);
}

int stages_per_device(const ShapeVariant& variant) {
  return variant.chunks * directions(placement_of(variant));
}

bool recomputes(const ShapeVariant& variant, int stage, int stages) {
  if (variant.schedule == ScheduleKind::kVaruna) return stage + 1 < stages;
  return variant.recompute;
}

std::optional<int> known_in_flight(const ShapeVariant& variant, int share, int stages, int stage) {
  const auto depth = [&](int own) { return variant.in_flight.value_or(own); };
  switch (variant.schedule) {
    case ScheduleKind::kGpipe:
      return share;
    case ScheduleKind::kOneForwardOneBackward:
      return std::min(share, warm_up(depth(stages), stages, stage));
    case ScheduleKind::kEagerOneForwardOneBackward:
      return std::min(share, warm_up(depth(2 * stages - 1), stages, stage));
    case ScheduleKind::kZbH1:
      return std::min(share, depth(stages));
    case ScheduleKind::kZbH2:
      return std::min(share, depth(2 * stages - 1));
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kLoopedBfs:
    case ScheduleKind::kZb1p:
    case ScheduleKind::kZb2p:
    case ScheduleKind::kZbV:
    case ScheduleKind::kVHalf:
    case ScheduleKind::kVMin:
    case ScheduleKind::kInterleavedZb:
    case ScheduleKind::kDualPipe:
    case ScheduleKind::kDualPipeV:
    case ScheduleKind::kChimera:
    case ScheduleKind::kBitPipe:
    case ScheduleKind::kHanayo:
    case ScheduleKind::kTwoBp:
    case ScheduleKind::kPipeDream:
    case ScheduleKind::kPipeDream2Bw:
    case ScheduleKind::kVaruna:
      return std::nullopt;
  }
  return std::nullopt;
}

int most_in_flight(const ShapeVariant& variant, int share, int stages, int stage) {
  return known_in_flight(variant, share, stages, stage).value_or(share);
}

}  // namespace frazil
