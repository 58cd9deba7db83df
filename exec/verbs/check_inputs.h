#pragma once
// Checks the inputs of `frazil train` against each other before anything is begun. All functions
// throw InputError, with the file that is wrong.

#include <filesystem>
#include <string>

#include "exec/config/run_config.h"
#include "exec/train/train_options.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Refuses a profile of another model than the run's, or in another precision. `file` is the
// profile's, for refusals.
void check_profile(const TrainOptions& options, const std::string& file);

// Refuses a plan to begin with that is not valid for profile and cluster, whose batch, micro-batch
// size or reduction mode are not the run's, whose mask freezes something, or that has more replicas
// than TrainOptions::max_replicas; throws InfeasibleError for one whose schedule, slices or layers
// the run cannot perform. Without a plan there is nothing to check.
void check_plan(const TrainOptions& options);

// Refuses a freeze policy that names more layers than policies count
// (planner/freezing/run_shape.h): a configuration alone knows the blocks, not what trains in them.
// `file` is the configuration's.
void check_freezing(const TrainOptions& options, const std::string& file);

// Refuses inputs that the run would overwrite in its folder: weights, trace and log, and all that
// lies in the folder of a phase or among the inputs that it keeps.
void refuse_inputs_inside(const Flags& flags, const RunConfig& config,
                          const std::filesystem::path& folder);

}  // namespace frazil
