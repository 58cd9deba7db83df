// Chrome traces say all that a time line holds: a strict reader gives it back.

#include "tests/traces/chrome_trace_reader.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_text.h"
#include "tests/traces/sample_timelines.h"
#include "traces/chrome_trace.h"

namespace frazil {
namespace {

std::string refusal_of_chrome(const std::string& text) {
  try {
    parse_chrome_trace(text, "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

// Returns `text` with the first `from` replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

const Timeline kSmall{.devices = 3,
                      .spans = {make_span(1, "1:2SEND_F0-3.1>5", -1500, 12, Lane::kSend, 7),
                                make_span(0, "2F1", 3, 1000)}};

TEST(ChromeTraceReader, GivesBackWhatWasWritten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    // Spans are unsorted, and their order comes back too.
    const std::vector<OwnedTimeline> timelines = {{"predicted", make_random_timeline(random)},
                                                  {"\"measured\"\n", make_random_timeline(random)}};
    const std::string text = to_chrome_json(
        {{timelines[0].name, &timelines[0].timeline}, {timelines[1].name, &timelines[1].timeline}});
    ASSERT_EQ(parse_chrome_trace(text, "t.json"), timelines);
  }
}

TEST(ChromeTraceReader, KeepsFarTimesToTheNanosecond) {
  const std::int64_t far = (std::int64_t{1} << 62) - 1;
  const Timeline timeline{
      .devices = 1,
      .spans = {make_span(0, "0F0", -far, -far + 1), make_span(0, "0F1", 9007199254740993, far),
                make_span(0, "2MOVE(stash[3-5]0@7 d0>host)", 0, 0, Lane::kHost, 1L << 40)}};
  const std::vector<OwnedTimeline> again =
      parse_chrome_trace(to_chrome_json({{"t", &timeline}}), "t.json");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().timeline, timeline);
}

TEST(ChromeTraceReader, KeepsIdleDevicesAndEmptyTimelines) {
  const Timeline idle{.devices = 5, .spans = {}};
  const Timeline none;
  const std::vector<OwnedTimeline> expected = {{"idle", idle}, {"none", none}};
  EXPECT_EQ(parse_chrome_trace(to_chrome_json({{"idle", &idle}, {"none", &none}}), "t.json"),
            expected);
  EXPECT_TRUE(parse_chrome_trace(to_chrome_json({}), "t.json").empty());
}

TEST(ChromeTraceReader, RefusesOtherTracesWithTheLine) {
  const std::string good = to_chrome_json({{"t", &kSmall}});
  ASSERT_EQ(refusal_of_chrome(good), "taken");
  EXPECT_EQ(refusal_of_chrome(with(good, "frazil.timelines", "other")),
            "t.json:1: found the format \"other\" 1, expected a Chrome trace that frazil wrote");
  EXPECT_EQ(
      refusal_of_chrome(with(good, "\"version\":1", "\"version\":2")),
      "t.json:1: found the format \"frazil.timelines\" 2, expected a Chrome trace that frazil "
      "wrote");
  EXPECT_EQ(refusal_of_chrome("{\"traceEvents\":[]}"),
            "t.json:1: found the key \"traceEvents\", expected a Chrome trace that frazil wrote");
  EXPECT_EQ(refusal_of_chrome(KinetoText().op("aten::mul", 1, 0, 1).text()),
            "t.json:2: found the key \"schemaVersion\", expected a Chrome trace that frazil wrote");
  // The spans stand on lines 5 and 6.
  EXPECT_EQ(refusal_of_chrome(with(good, "\"ts\":-1.500", "\"ts\":-1.5")),
            "t.json:5: found the time -1.5, expected microseconds with three decimals");
  EXPECT_EQ(refusal_of_chrome(with(good, "\"dur\":1.512", "\"dur\":-1.512")),
            "t.json:5: found a span that ends before it starts or beyond 2^62 ns, expected an end "
            "after the start");
  EXPECT_EQ(refusal_of_chrome(with(good, "\"name\":\"2F1\"", "\"name\":\"2F01\"")).substr(0, 8),
            "t.json:6");
  EXPECT_EQ(
      refusal_of_chrome(with(good, "\"cat\":\"F\"", "\"cat\":\"B\"")),
      "t.json:6: found labels that are not those of 2F1, expected its kind and micro-batches");
  EXPECT_EQ(
      refusal_of_chrome(with(good, "\"micro_batch\":1", "\"micro_batch\":2")),
      "t.json:6: found labels that are not those of 2F1, expected its kind and micro-batches");
  EXPECT_EQ(refusal_of_chrome(with(good, "\"devices\":[3]", "\"devices\":[1]")),
            "t.json:5: found a span of device 1 on thread 9, expected one of 1 devices, and a lane "
            "of it");
  EXPECT_EQ(refusal_of_chrome(with(good, "\"devices\":[3]", "\"devices\":[3,1]")),
            "t.json:7: found 1 of 2 time lines, expected all of them");
  for (const char* change : {"\"pid\":1", "\"tid\":9", "\"step\":7", "\"ph\":\"X\""}) {
    EXPECT_NE(refusal_of_chrome(with(good, change, "\"x\":1")), "taken") << change;
  }
}

TEST(ChromeTraceReader, RefusesEveryTextCutShort) {
  const std::string good = to_chrome_json({{"t", &kSmall}});
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    ASSERT_NE(refusal_of_chrome(good.substr(0, size)), "taken") << size;
  }
}

}  // namespace
}  // namespace frazil
