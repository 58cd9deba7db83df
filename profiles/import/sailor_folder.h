#pragma once
// clang-format off
// Reads a folder of Sailor's measurements for one model and one kind of GPU:
//   configs/*.json                          one file: the training configuration
//   layer_profiles/MODEL/GPU/profile.json   times; MODEL holds one GPU
//   llm_info.json                           sizes
//   providers/network_coeffs_all_homo.json  bandwidths
//   validation/**/*.json                    plans that were run
// clang-format on

#include <filesystem>
#include <string>
#include <vector>

#include "profiles/import/sailor_links.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/import/sailor_profile.h"

namespace frazil {

struct SailorFolder {
  std::string gpu;
  SailorConfig config;
  SailorTimes times;
  SailorSizes sizes;
  SailorLinks links;
  std::vector<SailorPlan> plans;  // sorted by stages x replicas, replicas, batch size and name
};

// Reads the folder with its plans. Throws InputError naming the file, also for a plan that has
// other layers than the model or runs on another GPU than the folder's.
SailorFolder read_sailor_folder(const std::filesystem::path& folder);

// Reads the folder without its plans. Throws InputError naming the file.
SailorFolder read_sailor_measurements(const std::filesystem::path& folder);

}  // namespace frazil
