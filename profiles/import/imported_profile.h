#pragma once
// A model profile from another program's file, and what in it was not measured.

#include <cstddef>
#include <string>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

// The most layers of an imported model, and the most edges of its graph. A longer file is refused
// before more memory is taken for it: a short line would become a hundred times its own size.
inline constexpr std::size_t kMostImportedLayers = std::size_t{1} << 14;
inline constexpr std::size_t kMostImportedEdges = std::size_t{1} << 16;

struct ImportOptions {
  std::string model = "imported";
  int micro_batch_size = 1;  // the file's times and sizes are for so many samples
};

struct ImportedProfile {
  ModelProfile profile;
  std::vector<std::string> notes;  // assumptions behind the numbers that were not measured
};

// Splits backwards that were measured whole (profiles/split_backward.h) and notes what is by rule.
// Requires: each sample holds its whole backward as backward_input; edges and losses are known.
void split_by_rule(ImportedProfile& imported);

}  // namespace frazil
