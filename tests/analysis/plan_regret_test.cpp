// Tests that the regret of a run is kept in a trace and told.

#include "analysis/plan_regret.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace frazil {
namespace {

using std::chrono::milliseconds;

PlanRegret make_regret() {
  return {.from = 7,
          .predicted = milliseconds{1500},
          .hindsight = milliseconds{1200},
          .asking = milliseconds{3},
          .transitions = 2,
          .guarantee = PlanRegret::Guarantee{5, milliseconds{40}}};
}

TEST(PlanRegret, ComesBackFromAProvenance) {
  PlanRegret regret = make_regret();
  for (const bool guaranteed : {true, false}) {
    if (!guaranteed) regret.guarantee.reset();
    Provenance provenance{{"cores", "2"}};
    note_regret(regret, provenance);
    EXPECT_EQ(find_regret(provenance), regret);
    provenance["plans.hindsight_ns"] = "12x";
    EXPECT_EQ(find_regret(provenance), std::nullopt);
    provenance.erase("plans.hindsight_ns");
    EXPECT_EQ(find_regret(provenance), std::nullopt);
  }
  EXPECT_EQ(find_regret({}), std::nullopt);
}

TEST(PlanRegret, IsToldWithItsGuaranteeWhereThereIsOne) {
  PlanRegret regret = make_regret();
  EXPECT_EQ(
      tell_regret(regret),
      "plans and transitions from step 7 on: 1.500 s predicted with 2 transitions, 1.200 s in "
      "hindsight, 25.00 % above it; the masks were not known: at most 5 x hindsight + 40.000 "
      "ms; asking the planner took 3.000 ms");
  const auto json = nlohmann::json::parse(regret_json(regret));
  EXPECT_EQ(json["regret_ns"], 300'000'000);
  EXPECT_EQ(json["worst_factor"], 5);
  regret.guarantee.reset();
  regret.from = 0;
  EXPECT_EQ(tell_regret(regret).find("plans and transitions: 1.500 s"), 0U);
  EXPECT_NE(tell_regret(regret).find("; the masks were known;"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(regret_json(regret)).contains("worst_factor"));
}

}  // namespace
}  // namespace frazil
