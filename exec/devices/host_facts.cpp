#include "exec/devices/host_facts.h"

#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace frazil {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  const std::string key = "model name";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return {text.data(), size};
}

}  // namespace

Bytes peak_resident() {
  std::ifstream file("/proc/self/status");
  const std::string key = "VmHWM:";
  constexpr std::int64_t kKiB = 1024;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return Bytes{std::atoll(line.c_str() + key.size()) * kKiB};
  }
  return {};
}

Provenance host_facts() {
  Provenance facts{{"date", today()},
                   {"processor", processor_name()},
                   {"cores", std::to_string(std::thread::hardware_concurrency())},
                   {"torch", TORCH_VERSION}};
  utsname system{};
  if (uname(&system) == 0) facts["system"] = std::string(system.sysname) + " " + system.release;
  const char* code_path = std::getenv("MKL_CBWR");
  facts["mkl_cbwr"] = code_path == nullptr ? "unset" : code_path;
  return facts;
}

}  // namespace frazil
