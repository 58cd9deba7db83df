#pragma once
// The names of the files in the folder of a run's checkpoints. Whoever looks for a run there, or
// removes one, goes by these alone: other files in such a folder are somebody else's.

#include <optional>
#include <string>
#include <string_view>

#include "profiles/units.h"

namespace frazil {

inline constexpr const char* kJournalFile = "steps.journal";
inline constexpr const char* kKeysFile = "run.json";
inline constexpr const char* kKernelsFile = "kernels.json";
inline constexpr std::string_view kHalfWritten = ".tmp-";  // begins what a killed process left

// Returns "step-<12 digits>.safetensors".
std::string checkpoint_name(Step step);
// Returns none for a name of another form.
std::optional<Step> parse_checkpoint_name(std::string_view name);

// Returns true if a run lies where a file of this name is: its journal or a checkpoint.
bool tells_of_run(std::string_view name);
// Returns true if a run writes files of this name: those, its keys and kernels, what was damaged
// and is kept aside, and what is half written.
bool is_written_by_run(std::string_view name);

}  // namespace frazil
