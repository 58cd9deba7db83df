#pragma once
// The flag --kernels of the subcommands that compute with libtorch (exec/devices/kernel_choice.h).
// One of them, verify, is described by a program without libtorch too.

#include "planner/verbs/flags.h"

namespace frazil {

void add_kernels_flag(boost::program_options::options_description& flags);

// True for `portable`; the other word is `fastest`, the default. Throws InputError for any other.
bool wants_portable_kernels(const Flags& flags);

}  // namespace frazil
