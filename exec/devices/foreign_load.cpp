#include "exec/devices/foreign_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace frazil {
namespace {

// Reads the first line of /proc/stat: cpu user nice system idle iowait irq softirq steal, in ticks.
std::optional<double> machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, steal = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> waiting >> irq >> soft >> steal)) {
    return std::nullopt;
  }
  return (user + nice + system + irq + soft + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

ForeignLoad::ForeignLoad()
    : start_(std::chrono::steady_clock::now()), machine_(machine_seconds()), own_(own_seconds()) {}

std::optional<double> ForeignLoad::cores() const {
  const std::optional<double> now = machine_seconds();
  if (!now || !machine_) return std::nullopt;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double foreign = (*now - *machine_) - (own_seconds() - own_);
  return std::max(0.0, foreign / elapsed.count());
}

}  // namespace frazil
