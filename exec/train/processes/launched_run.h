#pragma once
// A run whose processes somebody else has launched: torchrun, mpirun, Slurm, or a person with
// --listen and --join. They find each other (exec/links/joining/join.h); the first one leads, the
// others serve it.

#include <functional>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/links/joining/join.h"
#include "exec/run/run.h"
#include "exec/train/processes/run_world.h"
#include "exec/train/train_options.h"
#include "profiles/error.h"

namespace frazil {

// Finds out whether this process is one of several of a launch, and if so waits for the others.
// `command`: the words of the command line, which processes of one launch have in common.
// `token_file`: empty, or the file that proves who belongs to the run. Throws as join_world() does.
std::optional<JoinedWorld> join_launch(const LaunchFlags& flags, const std::string& command,
                                       const std::string& token_file,
                                       const std::function<void(const std::string&)>& tell);

// Serves the leader of the joined world to the end of the run.
ExitCode serve_joined(JoinedWorld& joined);

// Returns the world of a run that this process leads over the joined processes, among which the
// devices of the cluster are spread. Throws InputError if there are fewer devices than processes.
RunWorld lead(JoinedWorld& joined, const TrainOptions& options, const Dataset& data,
              Transport transport);

}  // namespace frazil
