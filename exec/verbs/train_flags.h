#pragma once
// The flags of `frazil train`.

#include <boost/program_options.hpp>

namespace frazil {

inline constexpr int kMostProcesses = 4096;

boost::program_options::options_description describe_train_flags();

}  // namespace frazil
