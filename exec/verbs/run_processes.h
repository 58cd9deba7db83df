#pragma once
// RunProcesses are the processes of `frazil train` as its flags ask for them: this one alone, its
// own children (--procs), those that --join it where it listens, or those of a launcher such as
// torchrun.

#include <functional>
#include <optional>
#include <string>

#include "exec/train/processes/launched_run.h"
#include "exec/train/processes/member_processes.h"
#include "exec/verbs/train_request.h"
#include "planner/verbs/flags.h"
#include "profiles/error.h"

namespace frazil {

// Writes the sentence to standard error as one of `frazil train`.
void tell_person(const std::string& sentence);

class RunProcesses {
 public:
  // Waits for the other processes where this one is one of several that somebody has launched.
  // Throws InputError for flags that do not go together, and as join_launch() does.
  RunProcesses(const Flags& flags, std::string command);

  // Serves the run where another process leads it. Returns the exit code at its end; none: this
  // process leads, or is alone.
  std::optional<ExitCode> serve();
  // Makes the processes with which a run goes on of those that are left, so many; empty: it cannot.
  using Renew = std::function<void(int left)>;
  // Spreads the devices of the request over the processes, and gives it the world that they make,
  // which uses the request and this object. Throws InputError for flags that do not go together and
  // for more processes than devices.
  Renew spread(TrainRequest& request);

 private:
  struct Counts;
  Counts count(const TrainRequest& request) const;

  const Flags& flags_;
  std::string command_;
  std::optional<JoinedWorld> joined_;
  std::optional<MemberProcesses> members_;  // outlives the run that it serves
};

}  // namespace frazil
