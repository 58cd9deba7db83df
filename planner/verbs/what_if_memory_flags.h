#pragma once
// Adds and reads the flags that ask a what-if for memory: --activation, --stage-input,
// --state and --memory-limit.

#include <optional>

#include "planner/verbs/flags.h"
#include "planner/what_if/held_bytes.h"

namespace frazil {

void describe_what_if_memory(boost::program_options::options_description& flags);

// Returns none if no size is given. Throws InputError, also for one of the others without
// --activation.
std::optional<WhatIfMemory> read_what_if_memory(const Flags& flags);

}  // namespace frazil
