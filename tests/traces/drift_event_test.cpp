#include "traces/drift_event.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

FreezeTrace trace_with(const DriftEvent& drift, const DevicesEvent& devices) {
  FreezeTrace trace;
  trace.blocks = {"a", "b"};
  trace.steps = 9;
  trace.open = true;
  trace.events = {{3, drift}, {4, devices}};
  return trace;
}

const DriftEvent kReplannedDrift{.change = DriftChange::kReplanned,
                                 .by = "diffusion",
                                 .steps = 50,
                                 .held_step = Duration{7},
                                 .best_step = Duration{5},
                                 .transition = Duration{20},
                                 .excluded = 2,
                                 .devices_ppm = {1'000'000, 1'300'000},
                                 .layers_ppm = {1'000'000},
                                 .reason = "device 1 takes 1.30 x",
                                 .note = "a \"note\""};

TEST(DriftEvent, ReadsBackFromATraceThatDoesNotAnnounceIt) {
  FreezeTrace trace =
      trace_with(kReplannedDrift, {DevicesChange::kAskedBack, {DeviceId{1}, DeviceId{3}}});
  trace.events.push_back({5, DriftEvent{}});
  trace.events.push_back({5, DevicesEvent{DevicesChange::kReleased, {}}});
  const std::string text = to_jsonl(trace);
  EXPECT_NE(text.find(R"({"step":4,"kind":"x-devices","event":"asked_back","device_ids":[1,3]})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("devices_ppm":[1000000,1300000],"layers_ppm":[1000000],)"),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_freeze_trace(text, "run.jsonl"), trace);
  trace.open = false;
  EXPECT_NE(to_jsonl(trace).find("\"events\":0,"), std::string::npos);
}

TEST(DriftEvent, RefusesWhatIsNone) {
  const std::string good = to_jsonl(trace_with(kReplannedDrift, {}));
  for (const auto& [found, instead, told] :
       {std::tuple{"\"replanned\"", "\"moved\"", "replanned or declined"},
        std::tuple{"\"released\"", "\"sold\"", "released or asked_back"},
        std::tuple{"\"steps\":50", "\"steps\":-1", "-1"},
        std::tuple{"1300000", "\"1.3\"", "1.3"}}) {
    std::string text = good;
    text.replace(text.find(found), std::string_view(found).size(), instead);
    try {
      parse_freeze_trace(text, "run.jsonl");
      ADD_FAILURE() << instead;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(told), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace frazil
