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
// `token_file`: empty, or the file that proves who belongs to the run. `may_grow`: a process alone
// listens too. Throws as join_world() does.
std::optional<JoinedWorld> join_launch(const LaunchFlags& flags, const std::string& command,
                                       const std::string& token_file, bool may_grow,
                                       const std::function<void(const std::string&)>& tell);

// Serves the leader of the joined world to the end of the run. Tells why if that is no good one.
// Returns none if this process is to join again.
std::optional<ExitCode> serve_joined(JoinedWorld& joined,
                                     const std::function<void(const std::string&)>& tell);

// True if the members of this world, which this process leads, can join it again.
bool may_join_again(const JoinedWorld& joined, Transport transport);
// Listens where the world before has listened and waits for its members, of which so many are left,
// this process included. After ten seconds the world has those that have come; the places of the
// others are vacant.
JoinedWorld join_again(const JoinedWorld& before, int left,
                       const std::function<void(const std::string&)>& tell);

// Returns the world of a run that this process leads over the joined processes. Where its door is
// open, others may come while the run goes on. `tell` is given a sentence for each that is turned
// away, by another thread.
RunWorld lead(JoinedWorld& joined, const TrainOptions& options, const Dataset& data,
              Transport transport, const std::function<void(const std::string&)>& tell);

}  // namespace frazil
