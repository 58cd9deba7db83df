#include "analysis/ablation/pilot.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/analysis/ablation/planted_runs.h"

namespace frazil {
namespace {

using Seeds = std::vector<std::int64_t>;

std::string pilot_text(const std::string& differences) {
  return R"({"format": "frazil.ablation_pilot", "version": 1, "run_hash": "ab", "differences": [)" +
         differences + "]}";
}

// s_d of 0, 2, 0, 2 is sqrt(4 / 3); 6.18 x 4 / 3 = 8.24.
TEST(Pilot, ChoosesTheNumberOfSeedsAndLeavesOutItsOwn) {
  const Pilot pilot = parse_pilot(
      pilot_text(R"({"seed": 2, "points": 0}, {"seed": 5, "points": 2}, {"seed": 90, "points": 0},
                    {"seed": 91, "points": 2})"),
      "pilot.json");
  const ChosenSeeds chosen = choose_seeds({}, pilot, 1);
  EXPECT_EQ(chosen.seeds, (Seeds{1, 3, 4, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(chosen.asked->asked, 9);
  EXPECT_EQ(choose_seeds({.count = 3}, pilot, 1).seeds, (Seeds{1, 3, 4}));
  EXPECT_EQ(choose_seeds({}, std::nullopt, 1).seeds, (Seeds{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(choose_seeds({.seeds = Seeds{7, 3}}, pilot, 1).seeds, (Seeds{7, 3}));
  try {
    (void)choose_seeds({.seeds = Seeds{1, 5}}, pilot, 1);
    FAIL() << "took a seed of the pilot";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "seed 5 in --seed-list");
    EXPECT_EQ(error.expected(), "seeds that the pilot pilot.json has not used");
  }
}

TEST(Pilot, IsMadeOfTheSeedsThatBothArmsHave) {
  PlantedRuns planted;
  for (const std::int64_t seed : {1, 2, 3, 4, 5}) {
    planted.add(Arm::kUnfrozen, seed, 0.5, 8);
    if (seed != 3) planted.add(Arm::kAll, seed, 0.5 + 0.125 * static_cast<double>(seed), 4);
  }
  planted.add(Arm::kAll, 6, 0.5, 4);
  const Pilot pilot = parse_pilot(to_json(make_pilot(planted.runs().results)), "pilot.json");
  EXPECT_EQ(pilot.seeds, (Seeds{1, 2, 4, 5}));
  EXPECT_EQ(pilot.differences, (std::vector<double>{12.5, 25, 50, 62.5}));
  EXPECT_EQ(pilot.run_hash, "of the run");
  refuse_other_run(pilot, "of the run");
  EXPECT_THROW(refuse_other_run(pilot, "of another"), InputError);
}

TEST(Pilot, IsRefusedWithLessThanASpread) {
  const std::string three = R"({"seed": 1, "points": 0}, {"seed": 2, "points": 1},
                               {"seed": 3, "points": 0})";
  EXPECT_EQ(parse_pilot(pilot_text(three + R"(, {"seed": 4, "points": 1})"), "p").seeds.size(), 4U);
  for (const std::string& differences :
       {std::string(), three, three + R"(, {"seed": 1, "points": 1})",
        three + R"(, {"seed": 4, "points": 101})", three + R"(, {"seed": 4, "point": 1})"}) {
    EXPECT_THROW((void)parse_pilot(pilot_text(differences), "pilot.json"), InputError)
        << differences;
  }
}

}  // namespace
}  // namespace frazil
