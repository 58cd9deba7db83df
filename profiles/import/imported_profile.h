#pragma once
// A model profile from another program's file, and what in it was not measured.

#include <string>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

struct ImportOptions {
  std::string model = "imported";
  int micro_batch_size = 1;  // the file's times and sizes are for so many samples
};

struct ImportedProfile {
  ModelProfile profile;
  std::vector<std::string> notes;  // assumptions behind the numbers that were not measured
};

}  // namespace frazil
