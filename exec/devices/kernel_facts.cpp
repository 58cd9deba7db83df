#include "exec/devices/kernel_facts.h"

#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace frazil {
namespace {

constexpr const char* kAten = "ATEN_CPU_CAPABILITY";
constexpr const char* kMkl = "MKL_CBWR";
constexpr const char* kUnset = "unset";

// Returns the first line of /proc/cpuinfo with this key, without the key.
std::string processor_fact(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string list_features() {
  std::istringstream flags(processor_fact("flags"));
  std::string features;
  for (std::string flag; flags >> flag;) {
    const bool counts = flag.starts_with("avx") || flag.starts_with("amx") || flag == "fma" ||
                        flag == "f16c" || flag == "sse4_2";
    if (counts) features += (features.empty() ? "" : " ") + flag;
  }
  return features;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? kUnset : value;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

// As ATen and MKL ask for it themselves where nothing names a branch. ATen takes a branch that is
// named without asking.
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}

bool has_branch(const std::string& branch) {
  if (branch.starts_with("AVX512")) return has_avx512();
  return !branch.starts_with("AVX2") || has_avx2();
}

// Returns what gave way, if something did.
std::string set(const char* name, const std::string& value) {
  const std::string before = environment(name);
  ::setenv(name, value.c_str(), /*overwrite=*/1);
  if (before == kUnset || before == value) return "";
  return std::string(name) + "=" + value + " in place of " + before;
}

}  // namespace

KernelFacts present_kernels() {
  return {.processor = processor_fact("model name"),
          .vendor = processor_fact("vendor_id"),
          .features = list_features(),
          .aten = at::get_cpu_capability(),
          .mkl = environment(kMkl),
          .torch = TORCH_VERSION};
}

std::string describe(const KernelFacts& kernels) {
  return kernels.aten + " of ATen and " + kernels.mkl + " of MKL on " + kernels.vendor +
         " with torch " + kernels.torch;
}

bool gives_same_bits(const KernelFacts& a, const KernelFacts& b) {
  return a.aten == b.aten && a.mkl == b.mkl && a.vendor == b.vendor && a.torch == b.torch;
}

std::string narrow_instructions(const KernelFacts& kernels) {
  std::istringstream features(kernels.features);
  std::string narrow;
  for (std::string feature; features >> feature;) {
    if (!feature.ends_with("bf16")) continue;
    narrow += (narrow.empty() ? "" : " ") + feature;
  }
  return narrow.empty() ? "none" : narrow;
}

std::optional<std::string> select_kernels(const KernelFacts& recorded) {
  __builtin_cpu_init();
  std::string told;
  if (has_branch(recorded.aten)) {
    std::string value = recorded.aten;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    told = set(kAten, value == "avx512" || value == "avx2" ? value : "default");
  }
  if (recorded.mkl != kUnset && has_branch(recorded.mkl)) {
    const std::string more = set(kMkl, recorded.mkl);
    told += (told.empty() || more.empty() ? "" : ", ") + more;
  }
  return told.empty() ? std::nullopt : std::optional(told);
}

}  // namespace frazil
