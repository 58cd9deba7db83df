#pragma once
// clang-format off
// Says when the balance of a step's costs has drifted out of the noise of their measurement.
//
// A quantity is a device beside the other devices, or a layer beside the other layers of its
// device. Its value in a step is the logarithm of measured / predicted less the mean of that over
// the quantities it stands beside (layers weighted by predicted time), so that what slows all
// alike, and what the profile gets wrong of a plan, is none of it. Its value in a window of steps
// is the median over the steps, which a step that was held up does not move.
// The first windows of a plan (12 to 64 of them) are the baseline: n values with mean m and standard
// deviation s. A later value y is outside if
//   |y - m| > t x s x sqrt(1 + 1/n)
// with t the quantile of Student's distribution of n - 1 degrees of freedom: the exact interval for
// one further value of a normal sample (prediction interval; Hahn, Technometrics 11, 1969). Its
// level is false_alarms / (2 x quantities x windows of the run): by the union bound (Bonferroni),
// no more than `false_alarms` of all runs without drift have any value outside, where windows are
// independent and normal. A drift is told if a quantity is outside in six windows running, on one
// side. On a virtual machine windows are neither: what other guests do comes in bursts of half a
// second, which look like a drift of 30 % as long as they last. Six windows outlast most of them.
// Windows beside a foreign load of more than 0.05 cores are left out and counted.
// A drift that begins before the baseline is there, or is slower than 64 windows, becomes part of
// the baseline and is not told.
// clang-format on

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/drift/attribute_drift.h"
#include "planner/drift/step_costs.h"
#include "profiles/units.h"

namespace frazil {

// The most cores that other programs may keep busy beside a window that counts.
inline constexpr double kMostCoresBesideWindow = 0.05;

struct DriftRule {
  int window_steps = 3;
  // The share of runs without drift in which a drift may be told.
  double false_alarms = 0.001;
  Step run_steps = 1;  // the length of the run
  friend bool operator==(const DriftRule&, const DriftRule&) = default;
};

// Returns the t of the rule above for a baseline of n windows. Requires: n >= 2.
double find_drift_threshold(const DriftRule& rule, int quantities, int windows);

class DriftDetector {
 public:
  explicit DriftDetector(DriftRule rule) : rule_(rule) {}

  // Begins with a plan, whose costs these are predicted to be; forgets all of the plan before.
  void begin(const StepCosts& predicted);
  // Begins a new baseline under the same plan.
  void restart() { begin(StepCosts(predicted_)); }
  // Takes a full step. Returns the drift if its window is the sixth one running in which a
  // quantity is outside. Layers may be missing in some steps. `foreign_cores`: none if unknown,
  // which counts as none. Requires: a plan has begun.
  std::optional<Drift> add(const StepCosts& measured, std::optional<double> foreign_cores);
  // Leaves out the windows that gave the last drift: they were found to be disturbed.
  void exclude_outside();

  int quantities() const { return static_cast<int>(quantities_.size()); }
  int excluded() const { return excluded_; }  // windows, under all plans

 private:
  struct Quantity {
    DeviceId device;
    std::optional<LayerId> layer = std::nullopt;  // none: the device as a whole
    double weight = 1;                            // beside the others of its group
    // Of the group's weight: beside the others alone, its value is 1 / (1 - share) times as large.
    double share = 0;
    Duration predicted{0};
    std::vector<double> steps = {};      // values of the window so far
    std::vector<double> own_steps = {};  // the same without the others taken off
    std::vector<double> baseline = {};
    std::vector<double> outside = {};  // values of the last windows, one side
    std::vector<double> own = {};      // own values: of the first windows, and of the last six
  };

  void add_group(std::vector<Quantity> group);
  void take_values(const StepCosts& measured);
  bool end_window();
  static void accept_outside(Quantity& quantity);
  bool judge(Quantity& quantity, double value);
  double threshold(std::size_t windows);
  double noise_of(const Quantity& quantity, std::size_t values);
  double change_of(const Quantity& quantity) const;
  Drift describe();

  DriftRule rule_;
  StepCosts predicted_;
  std::vector<Quantity> quantities_;  // groups in a row: the devices, then each device's layers
  int steps_ = 0;                     // of the window so far
  bool is_quiet_ = true;
  int windows_ = 0;  // that count, under this plan
  int excluded_ = 0;
  std::vector<double> thresholds_;  // by windows of a baseline; 0: not asked for yet
};

}  // namespace frazil
