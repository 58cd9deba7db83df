#include "planner/drift/drift_detector.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kFirstWindows = 12;
constexpr std::size_t kMostWindows = 64;
constexpr std::size_t kOutsideWindows = 6;
// Scales are told in millionths: noise below that is none, also where no two values differ.
constexpr double kLeastDeviation = 1e-6;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::max(kLeastDeviation, std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

double find_drift_threshold(const DriftRule& rule, int quantities, int windows) {
  ENSURE(windows >= 2 && quantities >= 1, "a baseline, and something that may drift");
  const double looks = std::max(1.0, static_cast<double>(rule.run_steps) / rule.window_steps);
  const double level = rule.false_alarms / (2.0 * quantities * looks);
  const boost::math::students_t_distribution<double> student(windows - 1);
  return boost::math::quantile(boost::math::complement(student, level));
}

void DriftDetector::begin(const StepCosts& predicted) {
  predicted_ = predicted;
  quantities_.clear();
  steps_ = 0;
  is_quiet_ = true;
  windows_ = 0;
  thresholds_.assign(kMostWindows + 1, 0);
  std::vector<Quantity> devices;
  for (std::size_t d = 0; d < predicted_.devices.size(); ++d) {
    if (predicted_.devices[d] <= kNoTime) continue;
    devices.push_back({.device = DeviceId{d}, .predicted = predicted_.devices[d]});
  }
  add_group(std::move(devices));
  for (std::size_t l = 0; l < predicted_.layers.size();) {
    std::vector<Quantity> layers;
    const DeviceId device = predicted_.layers[l].device;
    for (; l < predicted_.layers.size() && predicted_.layers[l].device == device; ++l) {
      const LayerTime& layer = predicted_.layers[l];
      layers.push_back({.device = device,
                        .layer = layer.layer,
                        .weight = static_cast<double>(layer.time.count()),
                        .predicted = layer.time});
    }
    add_group(std::move(layers));
  }
}

// A quantity alone stands beside nothing.
void DriftDetector::add_group(std::vector<Quantity> group) {
  if (group.size() < 2) return;
  double all = 0;
  for (const Quantity& quantity : group) all += quantity.weight;
  for (Quantity& quantity : group) quantity.share = quantity.weight / all;
  std::move(group.begin(), group.end(), std::back_inserter(quantities_));
}

void DriftDetector::take_values(const StepCosts& measured) {
  std::map<std::pair<DeviceId, LayerId>, Duration> layers;
  for (const LayerTime& layer : measured.layers) layers[{layer.device, layer.layer}] = layer.time;
  const auto time_of = [&](const Quantity& quantity) {
    if (!quantity.layer) return measured.devices.at(quantity.device.index());
    const auto found = layers.find({quantity.device, *quantity.layer});
    return found == layers.end() ? kNoTime : found->second;
  };
  for (auto first = quantities_.begin(); first != quantities_.end();) {
    const auto is_other = [&](const Quantity& quantity) {
      return quantity.layer.has_value() != first->layer.has_value() ||
             (first->layer && quantity.device != first->device);
    };
    const auto end = std::find_if(first, quantities_.end(), is_other);
    std::vector<double> values;
    double sum = 0;
    double weights = 0;
    for (auto quantity = first; quantity != end; ++quantity) {
      const Duration time = time_of(*quantity);
      if (time <= kNoTime) break;
      values.push_back(std::log(static_cast<double>(time.count()) /
                                static_cast<double>(quantity->predicted.count())));
      sum += quantity->weight * values.back();
      weights += quantity->weight;
    }
    // A group counts as a whole.
    if (values.size() == static_cast<std::size_t>(end - first)) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        Quantity& quantity = *(first + static_cast<std::ptrdiff_t>(i));
        quantity.steps.push_back(values[i] - sum / weights);
        quantity.own_steps.push_back(values[i]);
      }
    }
    first = end;
  }
}

std::optional<Drift> DriftDetector::add(const StepCosts& measured,
                                        std::optional<double> foreign_cores) {
  if (quantities_.empty()) return std::nullopt;
  is_quiet_ = is_quiet_ && foreign_cores.value_or(0) <= kMostCoresBesideWindow;
  take_values(measured);
  if (++steps_ < rule_.window_steps) return std::nullopt;
  if (!end_window()) return std::nullopt;
  Drift drift = describe();
  if (!drift.what.empty()) return drift;
  // Nothing stands out from what has changed with it: that is noise, too.
  for (Quantity& quantity : quantities_) accept_outside(quantity);
  return std::nullopt;
}

// Returns whether a quantity has been outside for long enough.
bool DriftDetector::end_window() {
  bool has_drifted = false;
  const bool counts = std::exchange(is_quiet_, true);
  steps_ = 0;
  ++(counts ? windows_ : excluded_);
  for (Quantity& quantity : quantities_) {
    const std::vector<double> steps = std::exchange(quantity.steps, {});
    const std::vector<double> own_steps = std::exchange(quantity.own_steps, {});
    if (!counts || steps.empty()) continue;
    if (quantity.own.size() == kMostWindows + kOutsideWindows) {
      quantity.own.erase(quantity.own.begin() + kMostWindows);
    }
    quantity.own.push_back(median(own_steps));
    has_drifted = judge(quantity, median(steps)) || has_drifted;
  }
  return has_drifted;
}

double DriftDetector::threshold(std::size_t windows) {
  double& known = thresholds_.at(windows);
  if (known == 0) known = find_drift_threshold(rule_, quantities(), static_cast<int>(windows));
  return known;
}

// Returns how far from the mean of its baseline the mean of so many values of the quantity may lie.
double DriftDetector::noise_of(const Quantity& quantity, std::size_t values) {
  const std::size_t count = quantity.baseline.size();
  return threshold(count) * deviation(quantity.baseline) *
         std::sqrt(1.0 / static_cast<double>(values) + 1.0 / static_cast<double>(count));
}

bool DriftDetector::judge(Quantity& quantity, double value) {
  std::vector<double>& baseline = quantity.baseline;
  std::vector<double>& outside = quantity.outside;
  if (baseline.size() >= kFirstWindows) {
    const double middle = mean(baseline);
    const bool is_one_side = outside.empty() || (outside.back() > middle) == (value > middle);
    if (std::abs(value - middle) > noise_of(quantity, 1) && is_one_side) {
      outside.push_back(value);
      return outside.size() >= kOutsideWindows;
    }
  }
  // What was outside once belongs to the noise.
  outside.push_back(value);
  accept_outside(quantity);
  return false;
}

// Adds what was outside to the baseline.
void DriftDetector::accept_outside(Quantity& quantity) {
  for (const double noise : std::exchange(quantity.outside, {})) {
    if (quantity.baseline.size() < kMostWindows) quantity.baseline.push_back(noise);
  }
}

void DriftDetector::exclude_outside() {
  for (Quantity& quantity : quantities_) {
    quantity.outside.clear();
    for (std::size_t i = 0; i < kOutsideWindows && !quantity.own.empty(); ++i) {
      quantity.own.pop_back();
    }
  }
  windows_ -= static_cast<int>(kOutsideWindows);
  excluded_ += static_cast<int>(kOutsideWindows);
}

// Returns the logarithm of the own time in the last windows over that of the first ones. The first
// window outside may have begun before the drift has.
double DriftDetector::change_of(const Quantity& quantity) const {
  const auto outside = quantity.own.end() - kOutsideWindows;
  return mean({outside + 1, quantity.own.end()}) - mean({quantity.own.begin(), outside});
}

Drift DriftDetector::describe() {
  std::vector<CostChange> changes;
  for (const Quantity& quantity : quantities_) {
    if (quantity.own.size() <= kOutsideWindows || quantity.baseline.size() < kFirstWindows) {
      continue;
    }
    changes.push_back({.device = quantity.device,
                       .layer = quantity.layer,
                       .weight = quantity.weight,
                       .change = change_of(quantity),
                       .noise = noise_of(quantity, kOutsideWindows - 1) / (1 - quantity.share),
                       .is_outside = quantity.outside.size() >= kOutsideWindows});
  }
  Drift drift = attribute_drift(changes, static_cast<int>(predicted_.devices.size()));
  drift.windows = windows_ - static_cast<int>(kOutsideWindows);
  return drift;
}

}  // namespace frazil
