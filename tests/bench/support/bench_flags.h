#pragma once
// Describes the flags of a benchmark, and reads one that most of them take.

#include <boost/program_options.hpp>
#include <cstdint>
#include <vector>

#include "planner/verbs/flags.h"

namespace frazil {

struct BenchFlag {
  const char* name;
  const char* says;
};

// Describes flags with a value, and after them those without one.
boost::program_options::options_description describe_bench_flags(
    const std::vector<BenchFlag>& values, const std::vector<BenchFlag>& switches = {});

// Returns --seed, by default 1.
std::uint64_t read_seed(const Flags& flags);

}  // namespace frazil
