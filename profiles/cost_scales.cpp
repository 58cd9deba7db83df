#include "profiles/cost_scales.h"

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

std::int64_t scale(std::int64_t value, std::int64_t ppm, std::int64_t least, std::int64_t most) {
  const Wide product = Wide{value} * ppm / kMillion;
  return static_cast<std::int64_t>(std::clamp<Wide>(product, least, most));
}

}  // namespace

CostScales no_scales(int devices, int layers) {
  return {.device_ppm = std::vector<std::int64_t>(static_cast<std::size_t>(devices), kMillion),
          .layer_ppm = std::vector<std::int64_t>(static_cast<std::size_t>(layers), kMillion)};
}

bool changes_nothing(const CostScales& scales) {
  const auto is_none = [](std::int64_t ppm) { return ppm == kMillion; };
  return std::all_of(scales.device_ppm.begin(), scales.device_ppm.end(), is_none) &&
         std::all_of(scales.layer_ppm.begin(), scales.layer_ppm.end(), is_none);
}

std::int64_t multiply_ppm(std::int64_t ppm, std::int64_t by_ppm) {
  return scale(ppm, by_ppm, 1, kLargestTimePpm);
}

ModelProfile scaled(ModelProfile profile, const CostScales& scales) {
  ENSURE(scales.layer_ppm.size() == profile.layers.size(), "a scale for every layer");
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    for (CostSample& cost : profile.layers[l].costs) {
      for (Duration* const time : {&cost.forward, &cost.forward_frozen, &cost.backward_input,
                                   &cost.backward_weight, &cost.backward_weight_alone}) {
        *time = Duration{scale(time->count(), scales.layer_ppm[l], 0, kLargestQuantity)};
      }
    }
  }
  return profile;
}

Cluster scaled(Cluster cluster, const CostScales& scales) {
  ENSURE(scales.device_ppm.size() == cluster.devices.size(), "a scale for every device");
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    std::int64_t& ppm = cluster.devices[d].time_ppm;
    ppm = multiply_ppm(ppm, scales.device_ppm[d]);
  }
  return cluster;
}

}  // namespace frazil
