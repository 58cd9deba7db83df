#include "traces/chrome_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "profiles/error.h"
#include "tests/support/golden.h"
#include "tests/traces/sample_timelines.h"

namespace frazil {
namespace {

using nlohmann::json;

TEST(ChromeTrace, WritesASmallTimeline) {
  const Timeline predicted{
      .devices = 2,
      .spans = {make_span(0, "0F0-3", -1500, 0, Lane::kCompute, 4),
                make_span(0, "0SEND_F0", 0, 7, Lane::kSend, 4),
                make_span(1, "(1F1;1B0)OVERLAP_F_B", 9007199254740993, 9007199254741003),
                make_span(1, "1U", 9007199254741003, 9007199254741003)}};
  const Timeline measured{.devices = 1, .spans = {}};
  EXPECT_TRUE(matches_golden("traces_chrome.json", to_chrome_json({{"predicted", &predicted},
                                                                   {"\"measured\"", &measured}})));
}

TEST(ChromeTrace, TellsHowSureTheClocksOfSeveralProcessesAre) {
  const Timeline timeline{.devices = 1, .spans = {}};
  const std::string text =
      to_chrome_json({{"predicted", &timeline}, {"measured", &timeline, Duration{1'234}}});
  EXPECT_EQ(json::parse(text).at("otherData").at("clock_uncertainty_ns"), 1'234);
}

void expect_same(const json& event, const Span& span, int process) {
  ASSERT_EQ(event.at("name"), to_text(span.action));
  ASSERT_EQ(event.at("cat"), kind_name(span.action.kind));
  ASSERT_EQ(event.at("pid"), process);
  ASSERT_EQ(event.at("tid"), span.device.value * 8 + static_cast<int>(span.lane));
  ASSERT_EQ(std::llround(event.at("ts").get<double>() * 1000),
            span.start.time_since_epoch().count());
  ASSERT_EQ(std::llround(event.at("dur").get<double>() * 1000), span.duration().count());
  const json& arguments = event.at("args");
  ASSERT_EQ(arguments.at("step"), span.action.step);
  ASSERT_EQ(arguments.at("device"), span.device.value);
  ASSERT_EQ(arguments.contains("micro_batch"), span.action.micro_batches.has_value());
  if (!span.action.micro_batches) return;
  ASSERT_EQ(arguments.at("micro_batch"), span.action.micro_batches->first.value);
  ASSERT_EQ(arguments.value("last_micro_batch", span.action.micro_batches->first.value),
            span.action.micro_batches->last.value);
}

TEST(ChromeTrace, HasOneEventPerSpanAndANamePerThread) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    const std::vector<Timeline> timelines = {make_random_timeline(random),
                                             make_random_timeline(random)};
    const std::string text = to_chrome_json({{"one", &timelines[0]}, {"two", &timelines[1]}});
    const json events = json::parse(text).at("traceEvents");
    std::size_t next = 0;
    for (int process = 1; process <= 2; ++process) {
      const Timeline& timeline = timelines[static_cast<std::size_t>(process) - 1];
      const json name = {{"name", "process_name"},
                         {"ph", "M"},
                         {"pid", process},
                         {"args", {{"name", process == 1 ? "one" : "two"}}}};
      ASSERT_EQ(events.at(next++), name);
      std::set<std::pair<DeviceId, Lane>> threads;
      for (const Span& span : timeline.spans) threads.insert({span.device, span.lane});
      for (const auto& [device, lane] : threads) {
        const json& thread = events.at(next++);
        ASSERT_EQ(thread.at("name"), "thread_name");
        ASSERT_EQ(thread.at("ph"), "M");
        ASSERT_EQ(thread.at("pid"), process);
        ASSERT_EQ(thread.at("tid"), device.value * 8 + static_cast<int>(lane));
        ASSERT_EQ(thread.at("args").at("name"),
                  "device " + std::to_string(device.value) + " " + std::string(lane_name(lane)));
      }
      for (const Span& span : timeline.spans) {
        ASSERT_EQ(events.at(next).at("ph"), "X");
        ASSERT_NO_FATAL_FAILURE(expect_same(events.at(next++), span, process));
      }
    }
    ASSERT_EQ(events.size(), next);
  }
}

TEST(ChromeTrace, OfNothingIsStillAFile) {
  EXPECT_TRUE(json::parse(to_chrome_json({})).at("traceEvents").empty());
}

TEST(ChromeTrace, RefusesANameThatIsNotText) {
  const Timeline timeline;
  EXPECT_THROW(to_chrome_json({{"\xff", &timeline}}), InputError);
  EXPECT_THROW(to_chrome_json({{"missing", nullptr}}), std::logic_error);
}

}  // namespace
}  // namespace frazil
