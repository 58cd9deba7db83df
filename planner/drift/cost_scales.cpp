#include "planner/drift/cost_scales.h"

#include <algorithm>
#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

std::int64_t scale(std::int64_t value, std::int64_t ppm, std::int64_t least, std::int64_t most) {
  const Wide product = Wide{value} * ppm / kMillion;
  return static_cast<std::int64_t>(std::clamp<Wide>(product, least, most));
}

void multiply(std::int64_t& ppm, double factor) {
  const auto factor_ppm = static_cast<std::int64_t>(
      std::llround(std::clamp(factor * static_cast<double>(kMillion), 1.0, 1e12)));
  ppm = scale(ppm, factor_ppm, 1, kLargestTimePpm);
}

}  // namespace

CostScales no_scales(int devices, int layers) {
  return {.device_ppm = std::vector<std::int64_t>(static_cast<std::size_t>(devices), kMillion),
          .layer_ppm = std::vector<std::int64_t>(static_cast<std::size_t>(layers), kMillion)};
}

CostScales with_drift(CostScales scales, const DriftFactors& drift) {
  ENSURE(drift.devices.size() == scales.device_ppm.size(), "a drift of these devices");
  for (std::size_t d = 0; d < drift.devices.size(); ++d) {
    multiply(scales.device_ppm[d], drift.devices[d]);
  }
  for (const auto& [layer, factor] : drift.layers) {
    multiply(scales.layer_ppm.at(layer.index()), factor);
  }
  return scales;
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
    ppm = scale(ppm, scales.device_ppm[d], 1, kLargestTimePpm);
  }
  return cluster;
}

}  // namespace frazil
