// Tests the comparison of Frazil's own plans with PipeTransformer's.

#include "planner/reproduce/own_plans/own_tables.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/reproduce/own_plans/print_own.h"
#include "tests/support/golden.h"

namespace frazil {
namespace {

// Both take seconds to plan.
const OwnComparison& comparison() {
  static const OwnComparison planned = compare_own_plans();
  return planned;
}
const std::vector<OwnCase>& cases() {
  static const std::vector<OwnCase> planned = plan_cases();
  return planned;
}

TEST(OwnTables, PassThePublishedSpeedUpOverTheBestPlanThatNeverFreezes) {
  const auto own = nlohmann::json::parse(own_json(comparison(), cases()));
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
}

TEST(OwnTables, HostsWithLessRoomThanTheFeaturesTakeAreSlower) {
  const auto own = nlohmann::json::parse(own_json(comparison(), cases()));
  const auto& hosts = own.at("hosts");
  ASSERT_EQ(hosts.size(), 4U);
  EXPECT_GT(own.at("cache_of_host_bytes"), hosts.at(1).at("memory_bytes"));
  for (const std::size_t h : {1U, 2U}) {
    // Memory holds all features or none, so any less room is none.
    EXPECT_EQ(hosts.at(h).at("time_ns"), hosts.at(1).at("time_ns"));
    EXPECT_EQ(hosts.at(h).at("parts").at("cache_written_ns"), 0);
    EXPECT_GT(hosts.at(h).at("time_ns"), own.at("rows").at(3).at("time_ns"));
  }
  EXPECT_GT(hosts.at(3).at("time_ns"), own.at("rows").at(4).at("time_ns"));
  EXPECT_GT(hosts.at(0).at("time_ns"), hosts.at(1).at("time_ns"));
}

TEST(OwnTables, TheElasticPipelineDoublesTheBestFixedPlanWhereTheModelFitsNoDevice) {
  bool doubles = false;
  for (const OwnCase& one : cases()) {
    const Duration elastic = one.runs.elastic.parts.total();
    EXPECT_LE(elastic, one.runs.fixed.parts.total()) << one.name;
    EXPECT_LE(one.runs.fixed.parts.total(), one.runs.unfrozen.parts.total()) << one.name;
    doubles = doubles || (one.fitting_samples == 0 && elastic * 2 <= one.runs.fixed.parts.total());
  }
  EXPECT_TRUE(doubles);
}

TEST(OwnTables, AreTheSameToTheByte) {
  EXPECT_TRUE(matches_golden("planner/pipetransformer_own.txt", print_own(comparison(), cases())));
}

TEST(OwnComparison, SaysWhatMissesWhereThePublishedSpeedUpIsNotPassed) {
  const auto row = [](Duration compute, Duration waits) {
    return OwnRow{.name = "row",
                  .plans = "1 x 1",
                  .time = compute + waits,
                  .parts = TimeParts{.compute = compute, .waits = waits}};
  };
  using std::chrono::seconds;
  const OwnComparison missed{.title = "title",
                             .cache_of_host = {},
                             .rows = {row(seconds{800}, seconds{0}), row(seconds{400}, seconds{0}),
                                      row(seconds{200}, seconds{0}), row(seconds{200}, seconds{0}),
                                      row(seconds{100}, seconds{60})}};
  EXPECT_EQ(missed.compute_limit(), 4);
  const std::string text = print_own(missed, {});
  EXPECT_NE(text.find("compute of these plans alone allows 4.00x; by the 2.83x published"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("row: 2.50x misses, what costs most beside compute is `waits`"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace frazil
