#include "planner/drift/drift_detector.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kFirstWindows = 12;
constexpr std::size_t kMostWindows = 64;
// The windows whose median is told as the cost now.
constexpr std::size_t kLastWindows = kLeastDriftScore;
// Of a normal distribution: the deviation over the median distance from the median (Hampel, JASA
// 69, 1974).
constexpr double kDeviationsOfDistance = 1.4826;
// The variance of the median of n values over that of one value, times n.
constexpr double kHalfPi = 1.5707963267948966;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

void DriftDetector::begin(const StepCosts& predicted) {
  predicted_ = predicted;
  quantities_.clear();
  steps_ = 0;
  is_quiet_ = true;
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
  // Where nothing stands out from what has changed with it there is nothing to tell.
  if (drift.what.empty()) return std::nullopt;
  return drift;
}

// Returns whether the score of a quantity is high enough.
bool DriftDetector::end_window() {
  const bool counts = std::exchange(is_quiet_, true);
  steps_ = 0;
  ++(counts ? counted_ : excluded_);
  if (counts) bursts_.begin_window();
  for (Quantity& quantity : quantities_) {
    const std::vector<double> steps = std::exchange(quantity.steps, {});
    const std::vector<double> own_steps = std::exchange(quantity.own_steps, {});
    if (!counts || steps.empty()) continue;
    judge(quantity, median(steps), median(own_steps));
  }
  return std::any_of(quantities_.begin(), quantities_.end(),
                     [&](const Quantity& quantity) { return has_drifted(quantity); });
}

double DriftDetector::threshold(std::size_t windows) {
  double& known = thresholds_.at(windows);
  if (known == 0) known = find_drift_threshold(rule_, quantities(), static_cast<int>(windows));
  return known;
}

// Returns how far from the median of its baseline a value of the quantity may lie that has so much
// of the variance of a window.
double DriftDetector::noise_of(const Quantity& quantity, double variance) {
  const std::size_t count = quantity.baseline.size();
  return threshold(count) * quantity.deviation *
         std::sqrt(variance + kHalfPi / static_cast<double>(count));
}

void DriftDetector::judge(Quantity& quantity, double value, double own) {
  if (quantity.last.size() == kLastWindows) quantity.last.erase(quantity.last.begin());
  quantity.last.push_back(own);
  if (quantity.baseline.size() < kFirstWindows) {
    learn(quantity, value, own);
    return;
  }
  const double change = value - quantity.middle;
  const bool is_outside =
      std::abs(change) > std::max(noise_of(quantity, 1), kLeastDrift * (1 - quantity.share));
  count(quantity.slower, is_outside && change > 0);
  count(quantity.faster, is_outside && change < 0);
  if (quantity.held.empty()) quantity.risen = bursts_.windows();
  quantity.held.emplace_back(value, own);
  if (std::max(quantity.slower.now, quantity.faster.now) > 0) return;
  for (const auto& [noise, own_noise] : std::exchange(quantity.held, {})) {
    if (quantity.baseline.size() < kMostWindows) learn(quantity, noise, own_noise);
  }
}

void DriftDetector::count(Score& score, bool is_outside) {
  score.now = std::max(0, score.now + (is_outside ? 1 : -1));
  score.greatest = std::max(score.greatest, score.now);
  if (score.now == 0 && score.greatest > 0) bursts_.add(std::exchange(score.greatest, 0));
}

void DriftDetector::learn(Quantity& quantity, double value, double own) {
  quantity.baseline.push_back(value);
  quantity.own.push_back(own);
  if (quantity.baseline.size() < kFirstWindows) return;
  quantity.middle = median(quantity.baseline);
  std::vector<double> distances;
  for (const double some : quantity.baseline) distances.push_back(std::abs(some - quantity.middle));
  quantity.deviation = kDeviationsOfDistance * median(std::move(distances));
}

bool DriftDetector::has_drifted(const Quantity& quantity) const {
  return std::max(quantity.slower.now, quantity.faster.now) >=
         std::max(kLeastDriftScore, 2 * bursts_.greatest());
}

void DriftDetector::exclude_outside() {
  int disturbed = 0;
  for (const Quantity& quantity : quantities_) {
    if (!has_drifted(quantity)) continue;
    disturbed = std::max(disturbed, bursts_.windows() - quantity.risen + 1);
  }
  counted_ -= disturbed;
  excluded_ += disturbed;
  for (Quantity& quantity : quantities_) {
    quantity.slower = {};
    quantity.faster = {};
    quantity.last.clear();
    quantity.held.clear();
  }
}

Drift DriftDetector::describe() {
  std::vector<CostChange> changes;
  for (const Quantity& quantity : quantities_) {
    if (quantity.last.size() < kLastWindows || quantity.baseline.size() < kFirstWindows) continue;
    const double noise = noise_of(quantity, kHalfPi / static_cast<double>(kLastWindows));
    changes.push_back({.device = quantity.device,
                       .layer = quantity.layer,
                       .weight = quantity.weight,
                       .change = median(quantity.last) - median(quantity.own),
                       .noise = noise / (1 - quantity.share),
                       .is_outside = has_drifted(quantity)});
  }
  return attribute_drift(changes, static_cast<int>(predicted_.devices.size()));
}

}  // namespace frazil
