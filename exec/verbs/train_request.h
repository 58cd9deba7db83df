#pragma once
// What the command line of `frazil train` asks for: flags, and for --resume also what the run was
// begun with, which its folder keeps (exec/train/stored_run.h).

#include <filesystem>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/train/run_folder.h"
#include "exec/train/stored_run.h"
#include "exec/train/train_options.h"
#include "planner/verbs/flags.h"

namespace frazil {

// The flag whose values are the words of the command line that belong to no flag.
inline constexpr const char* kTrainWords = "folder";

// Returns the folder of --out, or for --resume the word that names one; none if there is none.
// Throws InputError.
std::optional<std::filesystem::path> find_out(const Flags& flags);

struct TrainRequest {
  TrainOptions options;
  StoredRun stored;  // to be kept in the folder; what it holds is that of `options`
  Dataset data;
  std::string run_file;  // that refusals name
};

// Reads all inputs and checks them against each other. `folder` is none without --out. Throws
// InputError for what is wrong with an input, for a run in the folder that would be lost without
// --force, and for one that --resume cannot go on with.
TrainRequest read_request(const Flags& flags, const std::string& command, const RunFolder* folder);

}  // namespace frazil
