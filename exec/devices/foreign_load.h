#pragma once
// Measures how busy other programs keep this machine, from /proc/stat less this process's own time
// (stolen time counts as foreign). It decides, before any result is known, which measurements may
// count (kMostForeignCores, analysis/foreign_cores.h).

#include <chrono>
#include <optional>

namespace frazil {

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
