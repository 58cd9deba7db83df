#pragma once
// Placements say on which of p devices stage s of a schedule lies, with v chunks (model chunks of
// PyTorch's interleaved schedules) per device:
// clang-format off
//   placement       device of stage s
//   linear          s                                          v = 1
//   looped          s mod p                                    any v
//   wave            0 1 .. p-1 p-1 .. 1 0 0 1 ..               v even; v = 2 is the V
//   both-ways       linear; direction 1 counts from the far end, p-1-s
//   wave-both-ways  wave; direction 1 counts from the far end             (BitPipe)
// clang-format on

#include <cstdint>
#include <string_view>

namespace frazil {

enum class Placement : std::uint8_t { kLinear, kLooped, kWave, kBothWays, kWaveBothWays };

std::string_view placement_name(Placement placement);
int directions(Placement placement);  // 1, or 2 where the model runs both ways over the devices
// Returns the device of a stage. Requires: stage >= 0; 0 <= direction < directions(placement).
int device_of_stage(Placement placement, int devices, int direction, int stage);

}  // namespace frazil
