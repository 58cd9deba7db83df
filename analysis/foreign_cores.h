#pragma once
// Judges how busy other programs kept the machine while a run was measured. Above kMostForeignCores
// its times may be longer than they would be alone, and every answer that shows them says so.

#include <optional>
#include <string>

#include "profiles/model_profile.h"

namespace frazil {

// The most cores that other programs may keep busy while something is measured.
inline constexpr double kMostForeignCores = 0.15;

// The key of the cores, a mean over time, in the provenance of a trace or a profile.
inline constexpr const char* kForeignCores = "foreign_cores";

// Returns the cores that other programs kept busy while a run or a profile was measured; none if
// its provenance does not tell.
std::optional<double> find_foreign_cores(const Provenance& provenance);

// Says that other programs kept too many cores busy, as "other programs kept 0.46 cores busy
// meanwhile, so its times may be too long"; returns "" if they did not, or if nobody knows.
std::string tell_foreign_cores(std::optional<double> cores);

}  // namespace frazil
