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

}  // namespace frazil
