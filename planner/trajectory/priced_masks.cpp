#include "planner/trajectory/priced_masks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace frazil {

PricedMasks::PricedMasks(Setting setting, const std::vector<ForecastSegment>& segments) {
  // Masks are found by their text, costs by the profile that has them.
  std::map<std::pair<std::string, const ModelProfile*>, std::size_t> known;
  for (const ForecastSegment& segment : segments) {
    const Setting costs = find_setting(setting, segment.scales);
    const auto [place, added] =
        known.try_emplace({segment.mask.text(), &costs.profile()}, masks_.size());
    if (added) {
      masks_.push_back(segment.mask);
      settings_.push_back(costs);
    }
    of_segment_.push_back(place->second);
  }
}

Setting PricedMasks::find_setting(Setting setting, const CostScales& scales) {
  if (scales.is_empty()) return setting;
  auto place = std::find_if(scaled_.begin(), scaled_.end(),
                            [&](const auto& each) { return each->scales == scales; });
  if (place == scaled_.end()) {
    scaled_.push_back(std::make_unique<ScaledCosts>(
        ScaledCosts{scales, scaled(setting.profile(), scales), scaled(setting.cluster(), scales)}));
    place = scaled_.end() - 1;
  }
  return {(*place)->profile, (*place)->cluster};
}

}  // namespace frazil
