#pragma once
// A model profile from another program's file, and what in it was not measured.

#include <string>
#include <vector>

#include "profiles/model_profile.h"

namespace frazil {

struct ImportOptions {
  std::string model = "imported";
  int micro_batch_size = 1;  // samples that the times and sizes of the file are of
};

struct ImportedProfile {
  ModelProfile profile;
  std::vector<std::string> notes;  // what the numbers rest on that was not measured
};

}  // namespace frazil
