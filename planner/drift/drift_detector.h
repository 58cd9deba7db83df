#pragma once
// Says when the balance of a step's costs has drifted out of the noise of their measurement.
//
// A quantity is a device beside the other devices, or a layer beside the other layers of its
// device. Its value in a step is the logarithm of measured / predicted less the mean of that over
// the quantities it stands beside (layers weighted by predicted time), so that what slows all
// alike, and what the profile gets wrong of a plan, is none of it. Its value in a window of steps
// is the median over the steps: of two their mean.
// The first windows of a plan (12 to 64 of them) are the baseline: n values with median m, and s,
// 1.4826 times the median of their distances from m (Hampel, JASA 69, 1974), which few windows that
// were held up do not blow up. A later value y is outside if
//   |y - m| > t x s x sqrt(1 + pi/2n)   and   |y - m| > kLeastDrift x (1 - the quantity's share)
// where pi/2n is what a median of n normal values adds to the variance, and t such that no more
// than about `false_alarms` of runs without drift have one told, if windows are independent and
// normal (drift_threshold.h). A score for each side, slower and faster, rises by 1 with a window
// outside on that side and falls by 1 with any other, not below 0 (a cumulative sum of signs; Page,
// Biometrika 41, 1954). A drift is told if a score reaches kLeastDriftScore, and twice the greatest
// that has fallen back to 0 within the last 64 windows (burst_memory.h).
// What was outside joins the baseline when its score has fallen back to 0: it was noise.
// Windows beside a foreign load of more than 0.05 cores are left out and counted. A drift that
// begins before the baseline is there, or is slower than 64 windows, becomes part of it untold.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "planner/drift/attribute_drift.h"
#include "planner/drift/burst_memory.h"
#include "planner/drift/drift_threshold.h"
#include "planner/drift/step_costs.h"
#include "profiles/units.h"

namespace frazil {

// The most cores that other programs may keep busy beside a window that counts.
inline constexpr double kMostCoresBesideWindow = 0.05;

// The least drift, as the logarithm of time now / time before: 17 %. Less is within the noise of
// machines that are shared, and seldom worth a transition.
inline constexpr double kLeastDrift = 0.16;

class DriftDetector {
 public:
  explicit DriftDetector(DriftRule rule) : rule_(rule) {}

  // Begins with a plan, whose costs these are predicted to be; forgets all of the plan before but
  // the bursts.
  void begin(const StepCosts& predicted);
  // Begins a new baseline under the same plan.
  void restart() { begin(StepCosts(predicted_)); }
  // Takes a full step, perhaps without layers. Returns the drift if it is told after it.
  // `foreign_cores`: none if unknown, which counts as none. Requires: a plan has begun.
  std::optional<Drift> add(const StepCosts& measured, std::optional<double> foreign_cores);
  // Leaves out the windows that gave the drift just told, which were found to be disturbed: all
  // since its score has risen from 0 (the longest, of several). All scores begin anew; what other
  // quantities, without a score, have learned of these windows stays. Requires: no step since.
  void exclude_outside();

  int quantities() const { return static_cast<int>(quantities_.size()); }
  // Windows under all plans: that counted, and that did not.
  int counted() const { return counted_; }
  int excluded() const { return excluded_; }

 private:
  // A score on one side, slower or faster.
  struct Score {
    int now = 0;
    int greatest = 0;  // since it was 0
  };
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
    std::vector<double> own = {};   // own values of the same windows
    std::vector<double> last = {};  // own values of the last windows
    double middle = 0;              // of the baseline, and so is the deviation
    double deviation = 0;
    // Values and own values since a score has risen from 0.
    std::vector<std::pair<double, double>> held = {};
    int risen = 0;  // the first window of these
    Score slower = {};
    Score faster = {};
  };

  void add_group(std::vector<Quantity> group);
  void take_values(const StepCosts& measured);
  bool end_window();
  void judge(Quantity& quantity, double value, double own);
  void count(Score& score, bool is_outside);
  static void learn(Quantity& quantity, double value, double own);
  bool has_drifted(const Quantity& quantity) const;
  double threshold(std::size_t windows);
  double noise_of(const Quantity& quantity, double variance);
  Drift describe();

  DriftRule rule_;
  StepCosts predicted_;
  std::vector<Quantity> quantities_;  // groups in a row: the devices, then each device's layers
  int steps_ = 0;                     // of the window so far
  bool is_quiet_ = true;
  int counted_ = 0;
  int excluded_ = 0;
  BurstMemory bursts_;              // under all plans
  std::vector<double> thresholds_;  // by windows of a baseline; 0: not asked for yet
};

}  // namespace frazil
