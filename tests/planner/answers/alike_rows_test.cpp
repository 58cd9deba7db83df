#include "planner/answers/alike_rows.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

std::vector<std::string> name_devices(int count) {
  std::vector<std::string> names;
  for (int d = 0; d < count; ++d) names.push_back("d" + std::to_string(d));
  return names;
}

std::vector<std::string> names_of(const std::vector<AlikeRow>& rows) {
  std::vector<std::string> names;
  for (const AlikeRow& row : rows) names.push_back(row.name);
  return names;
}

TEST(AlikeRows, StandForAllDevicesWithTheSameCells) {
  std::vector<std::string> cells(64, "a");
  for (std::size_t d = 1; d < 32; d += 2) cells[d] = "b";
  cells[63] = "c";
  cells[40] = cells[41] = "d";
  const std::vector<AlikeRow> rows = fold_alike_rows(name_devices(64), cells);
  EXPECT_EQ(names_of(rows),
            (std::vector<std::string>{"d0, d2, ... (45)", "d1, d3, ... (16)", "d40, d41", "d63"}));
  EXPECT_EQ(rows[1].device, 1U);
  EXPECT_EQ(rows[3].device, 63U);
  EXPECT_EQ(tell_folded(rows, 64), "devices whose rows are alike share one; --json lists all 64\n");
}

TEST(AlikeRows, NameConsecutiveDevicesByTheirEnds) {
  const std::vector<AlikeRow> rows =
      fold_alike_rows(name_devices(20), std::vector<std::string>(20, "a"));
  EXPECT_EQ(names_of(rows), std::vector<std::string>{"d0 to d19 (20)"});
}

TEST(AlikeRows, AreNotFoldedForSixteenDevices) {
  const std::vector<AlikeRow> rows =
      fold_alike_rows(name_devices(16), std::vector<std::string>(16, "a"));
  EXPECT_EQ(names_of(rows), name_devices(16));
  EXPECT_EQ(tell_folded(rows, 16), "");
}

}  // namespace
}  // namespace frazil
