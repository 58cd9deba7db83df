#include "exec/devices/cores.h"

#include <sched.h>

namespace frazil {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void keep_to_cores(std::size_t first, std::size_t count) {
  const std::vector<int> cores = allowed_cores();
  if (first + count > cores.size()) return;
  const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(first);
  keep_to({begin, begin + static_cast<std::ptrdiff_t>(count)});
}

void keep_to(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

}  // namespace frazil
