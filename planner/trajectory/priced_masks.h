#pragma once
// The different masks of a forecast, each with the costs that its steps are priced by. Forecasts
// come back to the same masks; a mask stands here once for each set of costs that it meets.

#include <cstddef>
#include <memory>
#include <vector>

#include "planner/trajectory/forecast_segments.h"
#include "profiles/setting.h"

namespace frazil {

class PricedMasks {
 public:
  // The profile and the cluster must outlive this.
  PricedMasks(Setting setting, const std::vector<ForecastSegment>& segments);

  const std::vector<FreezeMask>& masks() const { return masks_; }  // in order of coming
  // By mask: the setting that was given, or one of this object with measured costs. Masks of equal
  // costs have the same one.
  const std::vector<Setting>& settings() const { return settings_; }
  std::size_t of_segment(std::size_t segment) const { return of_segment_[segment]; }

 private:
  struct ScaledCosts {
    CostScales scales;
    ModelProfile profile;
    Cluster cluster;
  };

  Setting find_setting(Setting setting, const CostScales& scales);

  std::vector<FreezeMask> masks_;
  std::vector<Setting> settings_;
  std::vector<std::size_t> of_segment_;
  std::vector<std::unique_ptr<ScaledCosts>> scaled_;  // at places that settings refer to
};

}  // namespace frazil
