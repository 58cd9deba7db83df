#include "analysis/ablation/pilot.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/ablation/control_origin.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr const char* kPilotFormat = "frazil.ablation_pilot";
constexpr int kPilotVersion = 1;
constexpr std::int64_t kMostSeed = 1'000'000'000;
constexpr double kMostPoints = 100;

bool has_seed(const std::vector<std::int64_t>& seeds, std::int64_t seed) {
  return std::find(seeds.begin(), seeds.end(), seed) != seeds.end();
}

}  // namespace

Pilot parse_pilot(std::string_view text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  expect_format(fields, kPilotFormat, kPilotVersion);
  Pilot pilot;
  pilot.file = file;
  pilot.run_hash = fields.required("run_hash").text();
  const JsonCursor differences = fields.required("differences");
  for (const JsonCursor& object : differences.items()) {
    JsonFields difference(object);
    const JsonCursor seed = difference.required("seed");
    pilot.differences.push_back(difference.required("points").real(-kMostPoints, kMostPoints));
    difference.finish();
    const std::int64_t number = seed.integer(0, kMostSeed);
    if (has_seed(pilot.seeds, number)) seed.fail("the same seed again", "each seed once");
    pilot.seeds.push_back(number);
  }
  fields.finish();
  if (pilot.seeds.size() < kLeastPilotSeeds) {
    differences.fail(fmt::format("{} differences", pilot.seeds.size()),
                     fmt::format("at least {}", kLeastPilotSeeds));
  }
  return pilot;
}

std::string to_json(const Pilot& pilot) {
  std::string differences;
  for (std::size_t i = 0; i < pilot.seeds.size(); ++i) {
    differences += fmt::format("{}    {{\"seed\": {}, \"points\": {}}}", i == 0 ? "" : ",\n",
                               pilot.seeds[i], pilot.differences[i]);
  }
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"run_hash\": {},\n"
      "  \"differences\": [\n{}\n  ]\n}}\n",
      kPilotFormat, kPilotVersion, json_string(pilot.run_hash), differences);
}

Pilot make_pilot(const std::vector<PairResult>& results) {
  Pilot pilot;
  for (const PairResult& result : results) {
    if (result.pair.arm != Arm::kAll) continue;
    const PairResult* const base = find_result(results, {Arm::kUnfrozen, result.pair.seed});
    if (base == nullptr) continue;
    pilot.run_hash = result.inputs.run_hash;
    pilot.seeds.push_back(result.pair.seed);
    pilot.differences.push_back(kMostPoints * (result.accuracy - base->accuracy));
  }
  return pilot;
}

void refuse_other_run(const Pilot& pilot, const std::string& run_hash) {
  if (pilot.run_hash == run_hash) return;
  throw InputError(pilot.file, 0,
                   fmt::format("the pilot of another run configuration ({})", pilot.run_hash),
                   fmt::format("that of this one ({})", run_hash));
}

Pilot read_pilot(const std::filesystem::path& file) {
  return parse_pilot(read_text_file(file), file.string());
}

ChosenSeeds choose_seeds(const AskedSeeds& asked, const std::optional<Pilot>& pilot,
                         double margin_points) {
  ChosenSeeds chosen;
  if (pilot) {
    chosen.asked = count_seeds(estimate_mean(pilot->differences).deviation, margin_points);
  }
  if (asked.seeds) {
    for (const std::int64_t seed : *asked.seeds) {
      if (pilot && has_seed(pilot->seeds, seed)) {
        throw InputError("command line", 0, fmt::format("seed {} in --seed-list", seed),
                         fmt::format("seeds that the pilot {} has not used", pilot->file));
      }
    }
    chosen.seeds = *asked.seeds;
    return chosen;
  }
  const int planned = chosen.asked ? chosen.asked->planned : kLeastSeeds;
  const auto count = static_cast<std::size_t>(asked.count.value_or(planned));
  for (std::int64_t seed = 1; chosen.seeds.size() < count; ++seed) {
    if (!pilot || !has_seed(pilot->seeds, seed)) chosen.seeds.push_back(seed);
  }
  return chosen;
}

}  // namespace frazil
