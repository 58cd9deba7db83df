#include "analysis/tables/drift_table.h"

#include <gtest/gtest.h>

#include "analysis/html/html_decisions.h"

namespace frazil {
namespace {

using namespace std::chrono_literals;
using Row = std::vector<std::string>;

TEST(DriftTable, TellsWhyWhatWasDecidedAndByWhichFigures) {
  FreezeTrace trace;
  trace.events = {
      {0, DevicesEvent{DevicesChange::kReleased, {DeviceId{2}, DeviceId{3}}}},
      {150, DriftEvent{.change = DriftChange::kReplanned,
                       .by = "partition",
                       .steps = 50,
                       .held_step = 5ms,
                       .best_step = 4ms,
                       .transition = 2ms,
                       .excluded = 3,
                       .devices_ppm = {},
                       .layers_ppm = {},
                       .reason = "device 1 takes 1.30 x",
                       .note = "partition saves < 1 ms"}},
      {150, DevicesEvent{DevicesChange::kAskedBack, {DeviceId{3}}}},
      {190, DriftEvent{.steps = 10, .held_step = 5ms, .reason = "layer 3 takes 2.00 x"}}};
  const Table table = tabulate_drift(trace);
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(table.rows[0], (Row{"0", "packing", "devices 2, 3 released", "-", "-", "-", "-", ""}));
  EXPECT_EQ(table.rows[1], (Row{"150", "drift: device 1 takes 1.30 x", "replanned, partition", "50",
                                "5.000", "4.000", "2.000",
                                "partition saves < 1 ms; 3 windows beside foreign load left out"}));
  EXPECT_EQ(table.rows[2], (Row{"150", "packing", "device 3 asked back", "-", "-", "-", "-", ""}));
  EXPECT_EQ(table.rows[3],
            (Row{"190", "drift: layer 3 takes 2.00 x", "declined", "10", "5.000", "-", "-", ""}));
  EXPECT_NE(draw_drift(trace).find("partition saves &lt; 1 ms"), std::string::npos);
  EXPECT_EQ(draw_drift(FreezeTrace{}), "");
  EXPECT_TRUE(tabulate_drift(FreezeTrace{}).rows.empty());
}

}  // namespace
}  // namespace frazil
