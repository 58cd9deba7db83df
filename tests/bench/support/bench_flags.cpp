#include "tests/bench/support/bench_flags.h"

#include <string>

namespace frazil {

namespace po = boost::program_options;

po::options_description describe_bench_flags(const std::vector<BenchFlag>& values,
                                             const std::vector<BenchFlag>& switches) {
  po::options_description flags("flags", 100);
  for (const auto& [name, says] : values) {
    flags.add_options()(name, po::value<std::string>(), says);
  }
  for (const auto& [name, says] : switches) flags.add_options()(name, po::bool_switch(), says);
  return flags;
}

std::uint64_t read_seed(const Flags& flags) {
  return static_cast<std::uint64_t>(integer_or(flags, "seed", 1, 0, 1'000'000));
}

}  // namespace frazil
