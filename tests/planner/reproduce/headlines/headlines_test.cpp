// Tests the table of headlines through the program.

#include "planner/reproduce/headlines/headlines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/golden.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

TEST(Headlines, AreTheSameToTheByte) {
  const ProgramFolder folder("headlines");
  const Outcome outcome = folder.run("reproduce", "headlines");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(matches_golden("planner/headlines.txt", outcome.out));
}

TEST(Headlines, AnswerInJsonWithAReasonInEveryRow) {
  const ProgramFolder folder("headlines_json");
  const Outcome outcome = folder.run("reproduce", "headlines --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto answer = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(answer.at("tables").size(), 1U);
  std::set<std::string> names;
  for (const auto& row : answer.at("tables").at(0).at("rows")) {
    EXPECT_TRUE(names.insert(row.at("name")).second) << row;
    EXPECT_GT(row.at("simulated"), 0) << row;
    EXPECT_FALSE(row.at("reason").get<std::string>().empty()) << row;
  }
  EXPECT_EQ(names.size(), simulate_headlines().rows.size());
}

TEST(Headlines, TakeNoData) {
  const ProgramFolder folder("headlines_data");
  const Outcome refused = folder.run("reproduce", "headlines --data .");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "");
}

}  // namespace
}  // namespace frazil
