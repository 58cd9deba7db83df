#include "analysis/tables/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/analysis/sample_runs.h"
#include "tests/support/golden.h"

namespace frazil {
namespace {

TEST(Table, SetsNumbersRightAndWordsLeft) {
  const Table table{.header = {"name", "value"}, .rows = {{"a", "1"}, {"long", "-12.5"}}};
  EXPECT_EQ(to_text(table),
            "name  value\n"
            "----  -----\n"
            "a         1\n"
            "long  -12.5\n");
}

TEST(Table, MeasuresLettersNotBytes) {
  const Table table{.header = {"µ", "x"}, .rows = {{"größe", "1"}, {"ab", "2"}}};
  EXPECT_EQ(to_text(table),
            "µ      x\n"
            "-----  -\n"
            "größe  1\n"
            "ab     2\n");
}

TEST(Table, LeavesNoSpacesAtLineEnds) {
  const Table table{.header = {"a", "note"}, .rows = {{"1", ""}, {"2", "x"}}};
  EXPECT_EQ(to_text(table).find(" \n"), std::string::npos);
}

TEST(Table, RefusesARowOfAnotherLength) {
  EXPECT_THROW(to_text(Table{.header = {"a", "b"}, .rows = {{"1"}}}), std::logic_error);
}

TEST(Table, TakesAPhraseThatBeginsWithADigitForWords) {
  EXPECT_TRUE(is_number("-0.5"));
  EXPECT_TRUE(is_number("1.33x"));
  EXPECT_FALSE(is_number("2 stages x 1 pipeline"));
  EXPECT_FALSE(is_number(""));
  EXPECT_FALSE(is_number("F"));
}

TEST(ComparisonTable, IsThisText) {
  Timeline measured = two_stages(1'100'000, 3, 0);
  const Timeline later = two_stages(1'200'000, 4, 100'000'000);
  measured.spans.insert(measured.spans.end(), later.spans.begin(), later.spans.end());
  Action update = make_stage_action(PipelineId{}, StageId{1}, ActionKind::kUpdate);
  update.step = 4;
  add_span(measured, 1, Lane::kCompute, update, 108'000'000, 109'000'000);
  EXPECT_TRUE(matches_golden("analysis_comparison.txt",
                             to_text(compare(two_stages(1'000'000, 0, 0), measured))));
}

TEST(ComparisonTable, ShowsShortStepsInMicroseconds) {
  const std::string text = to_text(compare(one_forward(1500, 0), one_forward(3000, 0)));
  EXPECT_NE(text.find("predicted us"), std::string::npos);
  EXPECT_NE(text.find("1.500        3.000  0.500"), std::string::npos) << text;
}

}  // namespace
}  // namespace frazil
