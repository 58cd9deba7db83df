#pragma once
// The flags of frazil verify. Two programs share them: frazil-verify, which knows no libtorch and
// guards traces, and frazil-verify-plan, which runs plans.

#include <optional>
#include <string>

#include "planner/verbs/command_line.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Returns name, purpose and usage of the subcommand.
Verb verify_verb();
// Adds the flags of both programs.
void describe_verify(boost::program_options::options_description& flags);

// The file of a good day: a measurement is compared with it, or becomes it.
struct BaselineFile {
  std::string path;
  bool is_written = false;
};
// Returns the file that --baseline or --write-baseline names; none if neither is given. Throws
// InputError for both flags, for --force alone, for a baseline to compare with that is not there,
// and for one to write whose place is taken, unless --force is given.
std::optional<BaselineFile> read_baseline_file(const Flags& flags);

}  // namespace frazil
