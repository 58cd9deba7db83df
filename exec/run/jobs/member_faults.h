#pragma once
// Carries failures between the processes of a run, so that all say the same and keep their exit
// code.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "exec/control/control_group.h"
#include "exec/run/run_options.h"

namespace frazil {

// Returns what a member tells of the exception that is being handled; call it in a catch block.
FailureMessage tell_failure(std::uint64_t number);

// Throws the failure that explains why a job has ended. `own` is what this process's part threw,
// `cause` the sentence with which the job was ended everywhere. A failure that is no consequence of
// another's comes first. If a member was lost, throws StepUndone with the cause.
[[noreturn]] void throw_explaining(const std::exception_ptr& own,
                                   const std::vector<MemberReply>& replies,
                                   const std::optional<std::string>& cause, bool has_lost);

// Returns "rank 1" or "ranks 2 and 3": the devices of a process.
std::string name_ranks(const PoolPlace& place, int process);

}  // namespace frazil
