#include "exec/devices/foreign_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

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

double seconds_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Reads the 14th and 15th field of /proc/PID/stat, user and system time in ticks. The name before
// them may hold anything but ends with the last ")".
double seconds_of_child(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  std::istringstream fields(line.substr(std::min(line.rfind(')'), line.size() - 1) + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) return 0;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Each thread has a list of the children that it has started.
double seconds_of_living_children() {
  double sum = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) sum += seconds_of_child(pid);
  }
  return sum;
}

}  // namespace

double used_seconds() {
  return seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN) + seconds_of_living_children();
}

ForeignLoad::ForeignLoad()
    : start_(std::chrono::steady_clock::now()), machine_(machine_seconds()), own_(used_seconds()) {}

std::optional<double> ForeignLoad::cores() const {
  const std::optional<double> now = machine_seconds();
  if (!now || !machine_) return std::nullopt;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double foreign = (*now - *machine_) - (used_seconds() - own_);
  return std::max(0.0, foreign / elapsed.count());
}

std::optional<double> RecentLoad::cores(std::chrono::milliseconds age) {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ <= age) return last_;
  looked_ = now;
  if (now - begun_ >= std::chrono::seconds(1)) {
    longer_ = std::exchange(shorter_, ForeignLoad());
    begun_ = now;
  }
  return last_ = longer_.cores();
}

}  // namespace frazil
