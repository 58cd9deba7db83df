#pragma once
// Where the stages of a schedule lie: stage -> device, for p devices and v chunks per device.
//   linear        s                                          v = 1
//   looped        s mod p                                    any v
//   wave          0 1 .. p-1 p-1 .. 1 0 0 1 ..               v even; v = 2 is the V
//   both-ways     linear; direction 1 the same from the far end, p-1-s
//   wave-both-ways  wave; direction 1 the same from the far end          (BitPipe)

#include <cstdint>
#include <string_view>

namespace frazil {

enum class Placement : std::uint8_t { kLinear, kLooped, kWave, kBothWays, kWaveBothWays };

std::string_view placement_name(Placement placement);
int directions(Placement placement);  // 1 or 2
// Requires 0 <= stage; direction < directions(placement).
int device_of_stage(Placement placement, int devices, int direction, int stage);

}  // namespace frazil
