#include "planner/plan/placement.h"

#include "profiles/error.h"

namespace frazil {
namespace {

int wave(int devices, int stage) {
  const int along = stage % (2 * devices);
  return along < devices ? along : 2 * devices - 1 - along;
}

}  // namespace

std::string_view placement_name(Placement placement) {
  switch (placement) {
    case Placement::kLinear:
      return "linear";
    case Placement::kLooped:
      return "looped";
    case Placement::kWave:
      return "wave";
    case Placement::kBothWays:
      return "both-ways";
    case Placement::kWaveBothWays:
      return "wave-both-ways";
  }
  return "";
}

int directions(Placement placement) {
  return placement == Placement::kBothWays || placement == Placement::kWaveBothWays ? 2 : 1;
}

int device_of_stage(Placement placement, int devices, int direction, int stage) {
  ENSURE(stage >= 0 && direction >= 0 && direction < directions(placement), "an unknown stage");
  const bool waves = placement == Placement::kWave || placement == Placement::kWaveBothWays;
  const int device = waves ? wave(devices, stage) : stage % devices;
  return direction == 0 ? device : devices - 1 - device;
}

}  // namespace frazil
