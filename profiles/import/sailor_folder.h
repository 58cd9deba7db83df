#pragma once
// A folder of Sailor's measurements for one model and one kind of GPU:
//   configs/*.json                          one file: the training configuration
//   layer_profiles/MODEL/GPU/profile.json   times, below the only GPU there is
//   llm_info.json                           sizes
//   providers/network_coeffs_all_homo.json  bandwidths
//   validation/**/*.json                    plans that were run

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
  std::vector<SailorPlan> plans;  // by number of nodes, replicas, batch and name
};

// Every plan has the model's layers, on the folder's GPU. Throws InputError naming the file.
SailorFolder read_sailor_folder(const std::filesystem::path& folder);

// The same without its plans.
SailorFolder read_sailor_measurements(const std::filesystem::path& folder);

}  // namespace frazil
