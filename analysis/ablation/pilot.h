#pragma once
// Reads the pilot of an ablation, differences of accuracy under a few seeds that were measured
// before, and chooses the seeds of the ablation from it. Seeds of the pilot are not used again:
// what chose the number of seeds may not also be judged by them.
//   {"format": "frazil.ablation_pilot", "version": 1, "run_hash": "..",
//    "differences": [{"seed": 101, "points": -0.3}, ...]}
// "points" are those of arm `all` less those of `unfrozen`, as difference_to_unfrozen of an
// ablation over these seeds is made of; "run_hash" says of which run configuration (pair_result.h).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/verdict.h"

namespace frazil {

struct Pilot {
  std::string file;
  std::string run_hash;
  std::vector<std::int64_t> seeds;
  std::vector<double> differences;  // points, by seed
};

// A spread of fewer is too uncertain to plan by.
inline constexpr std::size_t kLeastPilotSeeds = 4;

// Throws InputError for fewer differences than that, or a seed that stands twice.
Pilot parse_pilot(std::string_view text, const std::string& file);
Pilot read_pilot(const std::filesystem::path& file);

// Returns the text that parse_pilot() reads.
std::string to_json(const Pilot& pilot);
// Returns the pilot of an ablation over the seeds that both arms have.
Pilot make_pilot(const std::vector<PairResult>& results);
// Throws InputError for the pilot of another run configuration.
void refuse_other_run(const Pilot& pilot, const std::string& run_hash);

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
