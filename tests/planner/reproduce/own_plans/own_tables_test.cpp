// Tests the comparison of Frazil's own plans with PipeTransformer's, through the program.

#include "planner/reproduce/own_plans/own_tables.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

TEST(OwnTables, PassThePublishedSpeedUpOverTheBestPlanThatNeverFreezes) {
  const ProgramFolder folder("own_tables");
  const Outcome outcome = folder.run("reproduce", "pipetransformer --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto own = nlohmann::json::parse(outcome.out).at("own");
  const auto& rows = own.at("rows");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.at(0).at("over_gpipe"), 1.0);
  EXPECT_EQ(rows.at(1).at("over_unfrozen"), 1.0);
  EXPECT_FALSE(rows.at(2).contains("parts"));
  EXPECT_GE(rows.at(4).at("over_unfrozen"), 2.83);
  EXPECT_LE(rows.at(4).at("over_unfrozen"), own.at("compute_limit"));
  for (const auto& row : rows) {
    // Ratios are those of the times.
    EXPECT_NEAR(row.at("over_gpipe").get<double>() * row.at("time_ns").get<double>(),
                rows.at(0).at("time_ns").get<double>(), 1e9);
    if (!row.contains("parts")) continue;
    std::int64_t sum = 0;
    for (const auto& [part, time] : row.at("parts").items()) sum += time.get<std::int64_t>();
    EXPECT_EQ(sum, row.at("time_ns"));
  }
  for (const auto& one : own.at("cases")) {
    EXPECT_LE(one.at("elastic").at("time_ns"), one.at("fixed").at("time_ns")) << one.dump();
    EXPECT_LE(one.at("fixed").at("time_ns"), one.at("unfrozen").at("time_ns")) << one.dump();
  }
}

TEST(OwnTables, SayWhatMissesWhereThePublishedSpeedUpIsNotPassed) {
  const auto row = [](Duration compute, Duration waits) {
    return OwnRow{.name = "row",
                  .plans = "1 x 1",
                  .time = compute + waits,
                  .parts = TimeParts{.compute = compute, .waits = waits}};
  };
  using std::chrono::seconds;
  const OwnComparison comparison{
      .title = "title",
      .rows = {row(seconds{800}, seconds{0}), row(seconds{400}, seconds{0}),
               row(seconds{200}, seconds{0}), row(seconds{200}, seconds{0}),
               row(seconds{100}, seconds{60})}};
  EXPECT_EQ(comparison.compute_limit(), 4);
  const std::string text = print_own(comparison, {});
  EXPECT_NE(text.find("2.50x over the best plan that never freezes misses the 2.83x"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("allows 4.00x, and what costs most beside it is `waits`"), std::string::npos)
      << text;
}

TEST(OwnTables, AreTheSameToTheByte) {
  const ProgramFolder folder("own_text");
  const Outcome outcome = folder.run("reproduce", "pipetransformer");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t begin = outcome.out.find("Frazil's own plans");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_TRUE(matches_golden("planner/pipetransformer_own.txt", outcome.out.substr(begin)));
}

}  // namespace
}  // namespace frazil
