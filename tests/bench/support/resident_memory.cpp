#include "tests/bench/support/resident_memory.h"

#include <malloc.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace frazil {
namespace {

std::int64_t read_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  throw std::runtime_error("no " + name + " in /proc/self/status");
}

}  // namespace

std::int64_t resident_now() { return read_status("VmRSS"); }

std::int64_t resident_peak() { return read_status("VmHWM"); }

bool forget_peak() {
  malloc_trim(0);
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;
  return clear.good();
}

}  // namespace frazil
