#include "analysis/foreign_cores.h"

#include <fmt/format.h>

#include <charconv>

namespace frazil {

std::optional<double> find_foreign_cores(const Provenance& provenance) {
  const auto found = provenance.find(kForeignCores);
  if (found == provenance.end()) return std::nullopt;
  const std::string& text = found->second;
  double cores = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), cores);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return cores;
}

std::string tell_foreign_cores(std::optional<double> cores) {
  if (!cores || !(*cores > kMostForeignCores)) return "";
  return fmt::format(
      "other programs kept {:.2f} cores busy meanwhile, so its times may be too long", *cores);
}

}  // namespace frazil
