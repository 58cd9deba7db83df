#pragma once
// Measures how busy other programs keep this machine, from /proc/stat less the time of this process
// and of its children, which are processes of the same run (stolen time counts as foreign). It
// decides, before any result is known, which measurements may count (kMostForeignCores,
// analysis/foreign_cores.h).

#include <chrono>
#include <optional>

namespace frazil {

// Returns the processor time in seconds that this process and its children have used, those that
// have ended among them.
double used_seconds();

class ForeignLoad {
 public:
  ForeignLoad();  // starts the clock
  // Returns the cores kept busy by other programs since the start, >= 0; none if the system does
  // not tell.
  std::optional<double> cores() const;

 private:
  std::chrono::steady_clock::time_point start_;
  std::optional<double> machine_;  // busy seconds of all cores since boot
  double own_ = 0;                 // seconds
};

// The load of the last second or two, for who looks at it many times a second: the ticks of
// /proc/stat are too coarse for less, and each look takes a tenth of a millisecond.
class RecentLoad {
 public:
  // Returns the load as it was at most `age` ago. The first second counts as a whole from the
  // start on.
  std::optional<double> cores(std::chrono::milliseconds age = std::chrono::milliseconds(0));

 private:
  ForeignLoad longer_;   // begun one or two seconds ago
  ForeignLoad shorter_;  // begun at most a second ago
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();  // shorter_
  std::chrono::steady_clock::time_point looked_ = {};
  std::optional<double> last_;
};

}  // namespace frazil
