#pragma once
// Reads the pilot of an ablation, differences of accuracy under a few seeds that were measured
// before, and chooses the seeds of the ablation from it. Seeds of the pilot are not used again:
// what chose the number of seeds may not also be judged by them.
//   {"format": "frazil.ablation_pilot", "version": 1,
//    "differences": [{"seed": 101, "points": -0.3}, ...]}
// "points" are those of arm `all` less those of `unfrozen`, as difference_to_unfrozen of an
// ablation over these seeds is made of.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/ablation/verdict.h"

namespace frazil {

struct Pilot {
  std::string file;
  std::vector<std::int64_t> seeds;
  std::vector<double> differences;  // points, by seed
};

// A spread of fewer is too uncertain to plan by.
inline constexpr std::size_t kLeastPilotSeeds = 4;

// Throws InputError for fewer differences than that, or a seed that stands twice.
Pilot parse_pilot(std::string_view text, const std::string& file);
Pilot read_pilot(const std::filesystem::path& file);

// What the command line says of seeds.
struct AskedSeeds {
  std::optional<int> count = std::nullopt;                        // --seeds
  std::optional<std::vector<std::int64_t>> seeds = std::nullopt;  // --seed-list
};

struct ChosenSeeds {
  std::vector<std::int64_t> seeds;
  std::optional<SeedCount> asked;  // by the pilot
};

// Returns the seeds: those of the list; else so many from 1 on, as are asked for or follow from the
// pilot or else kLeastSeeds, without those of the pilot. Throws InputError for a list with a seed
// of the pilot.
ChosenSeeds choose_seeds(const AskedSeeds& asked, const std::optional<Pilot>& pilot,
                         double margin_points);

}  // namespace frazil
