#include "planner/drift/drift_threshold.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

// How many values the median distance from the median is worth of those behind a standard
// deviation, as a share of their number (Rousseeuw and Croux, JASA 88, 1993).
constexpr double kWorthOfDistance = 0.37;

}  // namespace

// Half of false_alarms goes to chance. A window is outside on a side with chance p; then a score is
// at 8 with chance (p / (1 - p))^8 (the reflected walk, Feller I, XIV), which may be at most
// false_alarms / 2 / (2 x quantities x windows of the run) by the union bound. The other half goes
// to baselines that are quieter than their machine: the deviation is s x sqrt(f / c) at most, with
// c the quantile of chi-square at false_alarms / 2 / quantities, of f = 0.37 (n - 1) degrees of
// freedom. The threshold is sqrt(f / c) times the normal quantile of p.
double find_drift_threshold(const DriftRule& rule, int quantities, int windows) {
  ENSURE(windows >= 2 && quantities >= 1, "a baseline, and something that may drift");
  const double looks = std::max(1.0, static_cast<double>(rule.run_steps) / rule.window_steps);
  const double half = rule.false_alarms / 2;
  const double odds = std::pow(half / (2.0 * quantities * looks), 1.0 / kLeastDriftScore);
  const double freedom = std::max(1.0, kWorthOfDistance * (windows - 1));
  const boost::math::normal_distribution<double> normal;
  const boost::math::chi_squared_distribution<double> squares(freedom);
  return boost::math::quantile(boost::math::complement(normal, odds / (1 + odds))) *
         std::sqrt(freedom / boost::math::quantile(squares, half / quantities));
}

}  // namespace frazil
