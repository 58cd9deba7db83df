#include "profiles/json_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace frazil {
namespace {

const std::string kText = R"({
  "batch": 4,
  "pipelines": [
    {"stages": [1,
                2],
     "name": "a"},
    {"stages": []}
  ]
})";

int line_of(const std::string& path) { return find_line(parse_json(kText, "plan.json"), path); }

TEST(JsonLines, OfAValueIsWhereItStands) {
  EXPECT_EQ(line_of("$"), 1);
  EXPECT_EQ(line_of("$.batch"), 2);
  EXPECT_EQ(line_of("$.pipelines"), 3);
  EXPECT_EQ(line_of("$.pipelines[0]"), 4);
  EXPECT_EQ(line_of("$.pipelines[0].stages[1]"), 5);
  EXPECT_EQ(line_of("$.pipelines[0].name"), 6);
  EXPECT_EQ(line_of("$.pipelines[1].stages"), 7);
}

TEST(JsonLines, OfWhatIsNotThereIsThatOfWhatWouldHoldIt) {
  EXPECT_EQ(line_of("$.pipelines[1].name"), 7);
  EXPECT_EQ(line_of("$.pipelines[1].stages[3].layers"), 7);
  EXPECT_EQ(line_of("$.pipelines[9]"), 3);
  EXPECT_EQ(line_of("$.schedule.actions"), 1);
  EXPECT_EQ(line_of("$.batch.size"), 2);
  EXPECT_EQ(line_of("$[\"a key\"]"), 1);
  EXPECT_EQ(line_of(""), 1);
}

TEST(JsonLines, OfAFileThatCannotBeReadAgainAreNotKnown) {
  EXPECT_EQ(lines_of("/nowhere/plan.json")("$.batch"), 0);
}

}  // namespace
}  // namespace frazil
