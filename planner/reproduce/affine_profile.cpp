#include "planner/reproduce/affine_profile.h"

#include <algorithm>
#include <cmath>

#include "profiles/error.h"
#include "profiles/split_backward.h"

namespace frazil {
namespace {

Duration whole_backward(const CostSample& cost) {
  return cost.backward_input + cost.backward_weight;
}

template <class Time>
AffineTime fit_times(const Layer& layer, Time time_of) {
  std::vector<std::pair<int, Duration>> rows;
  for (const CostSample& cost : layer.costs) {
    rows.emplace_back(cost.micro_batch_size, time_of(cost));
  }
  return fit_affine(rows);
}

Duration read_line(const AffineTime& line, const AffineScale& scale, int size) {
  const double time = scale.fixed * line.fixed + scale.per_sample * line.per_sample * size;
  return Duration{std::max<std::int64_t>(std::llround(time), 0)};
}

}  // namespace

AffineTime fit_affine(const std::vector<std::pair<int, Duration>>& rows) {
  ENSURE(!rows.empty(), "a line through no row");
  const auto time_of = [](const auto& row) {
    return static_cast<double>(std::max<std::int64_t>(row.second.count(), 1));
  };
  if (rows.size() == 1) return {.fixed = 0, .per_sample = time_of(rows[0]) / rows[0].first};
  double weights = 0;
  double sizes = 0;
  double times = 0;
  for (const auto& row : rows) {
    const double weight = 1 / (time_of(row) * time_of(row));
    weights += weight;
    sizes += weight * row.first;
    times += weight * time_of(row);
  }
  const double mean_size = sizes / weights;
  const double mean_time = times / weights;
  double spread = 0;
  double product = 0;
  for (const auto& row : rows) {
    const double weight = 1 / (time_of(row) * time_of(row));
    spread += weight * (row.first - mean_size) * (row.first - mean_size);
    product += weight * (row.first - mean_size) * (time_of(row) - mean_time);
  }
  const double slope = product / spread;
  return {.fixed = mean_time - slope * mean_size, .per_sample = slope};
}

ModelProfile make_affine_profile(const ModelProfile& profile, const AffineScale& scale) {
  ModelProfile made = profile;
  for (Layer& layer : made.layers) {
    const AffineTime forward = fit_times(layer, [](const CostSample& c) { return c.forward; });
    const AffineTime backward = fit_times(layer, whole_backward);
    for (CostSample& cost : layer.costs) {
      cost.forward = read_line(forward, scale, cost.micro_batch_size);
      cost.forward_frozen = cost.forward;
      cost.backward_input = read_line(backward, scale, cost.micro_batch_size);
    }
  }
  split_whole_backwards(made);
  return made;
}

}  // namespace frazil
