#pragma once
// The flags of `frazil ablate` where it trains: which arms, under which seeds, over which files.

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "analysis/ablation/run_ablation.h"
#include "analysis/ablation/verdict.h"
#include "planner/verbs/flags.h"

namespace frazil {

void add_ablation_flags(boost::program_options::options_description& flags);

// Returns a line for each arm: its name and what it does.
std::string list_arms();

struct AblationOrder {
  AblationRequest request;
  double margin_points = 1;
  std::optional<SeedCount> asked_seeds;  // by a pilot
};

// Reads the flags and the files that they name. Throws InputError for what cannot be judged: arms
// without those that they are compared with, seeds of the pilot, another run's pilot, a policy that
// freezes nothing, an output in the place of an input.
AblationOrder read_ablation(const Flags& flags);

}  // namespace frazil
