#pragma once
// The flags of `frazil train`.

#include <boost/program_options.hpp>

namespace frazil {

inline constexpr int kMostProcesses = 4096;

void add_train_flags(boost::program_options::options_description& flags);

}  // namespace frazil
